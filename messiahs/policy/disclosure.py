"""What others are told where no policy says so: everything."""

from collections.abc import Hashable
from dataclasses import dataclass

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import Vector


@dataclass(frozen=True, slots=True)
class TellEverything:
    """Says everything to everybody, and drops nothing."""

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Say all that was measured."""
        del now
        return measured

    def pass_on(self, vector: Vector, /) -> Vector:
        """Pass on everything."""
        return vector

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Reveal everything."""
        del neighbor
        return vector

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Reveal."""
        del neighbor
        return True

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Treat all neighbors alike."""
        del neighbor
        return None

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Hide no name."""
        del neighbor
        return ""
