"""Slots of a task, and places granted to a request (MESSIAHS 6.2 sched_accept)."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.parts import PartKind, PartState
from messiahs.core.interface.policies import Allocation, AllocationQuery, Randomness
from messiahs.policy.parts import DeclaredPart


@dataclass(frozen=True, slots=True)
class AsAsked:
    """Gives each task the slots that it requests, and grants as many places as fit."""

    initial: PartState = ()

    def decide(
        self, query: AllocationQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Allocation, PartState]:
        """Grant."""
        del randomness
        return Allocation(slots=query.slots, places=query.wanted), state


AS_ASKED: Final = DeclaredPart(
    kind=PartKind.ALLOCATION,
    name="as_asked",
    meaning="gives each task the slots that it requests, and grants as many places as fit",
    make=AsAsked,
)
