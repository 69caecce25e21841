"""Default disclosure: everything is sent to every neighbor."""

from collections.abc import Hashable
from dataclasses import dataclass

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import Vector


@dataclass(frozen=True, slots=True)
class TellEverything:
    """Sends everything to every neighbor, and drops nothing."""

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Return all measured attributes."""
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
        """Return True."""
        del neighbor
        return True

    def shows(self, attribute: str, neighbor: Neighbor, /) -> bool:
        """Return True."""
        del attribute, neighbor
        return True

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Return the same value for all neighbors."""
        del neighbor
        return None

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Return an empty text: no name is replaced."""
        del neighbor
        return ""
