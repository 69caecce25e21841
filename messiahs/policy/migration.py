"""Which running task moves; a task that moves loses its progress."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.parts import PartKind, PartState
from messiahs.core.interface.policies import MigrationQuery, Randomness, RunningQuery
from messiahs.policy.parts import DeclaredPart


@dataclass(frozen=True, slots=True)
class LeastRun:
    """Moves suspended tasks first, then those with the shortest run time."""

    initial: PartState = ()

    def decide(
        self, query: MigrationQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[int, ...], PartState]:
        """Order tasks."""
        del randomness
        return tuple(sorted(range(len(query.tasks)), key=lambda place: _what_is_lost(query.tasks[place]))), state


def _what_is_lost(query: RunningQuery) -> tuple[bool, int]:
    ran = query.task["ran"]
    assert isinstance(ran, int), "the core always sets it"
    return not query.task["suspended"], ran


LEAST_RUN: Final = DeclaredPart(
    kind=PartKind.MIGRATION,
    name="least_run",
    meaning="moves suspended tasks first, then those that have run least",
    make=LeastRun,
)
