"""Default order of tasks: first come, first served."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.parts import PartKind, PartState
from messiahs.core.interface.policies import Randomness, TaskOrderQuery
from messiahs.policy.parts import DeclaredPart


@dataclass(frozen=True, slots=True)
class Arrival:
    """Keeps tasks in order of arrival."""

    initial: PartState = ()

    def decide(
        self, query: TaskOrderQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[int, ...], PartState]:
        """Order tasks."""
        del randomness
        return tuple(range(len(query.tasks))), state


ARRIVAL: Final = DeclaredPart(
    kind=PartKind.SELECTION,
    name="arrival",
    meaning="first come, first served",
    make=Arrival,
    keeps_arrival=True,
)
