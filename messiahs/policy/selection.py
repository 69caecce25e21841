"""Default order of tasks: users by what they used lately (core/origin/giving_way.py), then priority, then arrival."""

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
    meaning="users who used less first, then by `$priority`, then by arrival",
    make=Arrival,
    keeps_arrival=True,
)
