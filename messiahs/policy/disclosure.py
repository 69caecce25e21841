"""Default disclosure: everything is sent to every neighbor; unmet demand and costs of links within the site."""

from collections.abc import Hashable
from dataclasses import dataclass

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import Vector


@dataclass(frozen=True, slots=True)
class TellEverything:
    """Sends everything to every neighbor, and drops nothing; unmet demand and costs of links stay within the site."""

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

    def reveals_demand_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Reveal it within the site: what users of one administration lack is no matter of another one."""
        del neighbor
        return not is_apart

    def reveals_costs_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Reveal them within the site: how it is wired is no matter of another one."""
        del neighbor
        return not is_apart

    def least_shown_to(self, neighbor: Neighbor, /) -> int:
        """Return 0."""
        del neighbor
        return 0
