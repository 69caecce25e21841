"""What `reach` means: who can dial a system, and which end of a link dials (MESSIAHS 5).

`open` and `proxy` systems listen. Nobody can dial an `outbound` one: it dials its neighbors, and its bytes take
connections that it dials, too. A `proxy` is the border of the systems below it, which `borders.py` checks.
"""

from typing import Final, Protocol, TypeVar

from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor

OPEN: Final = "open"
PROXY: Final = "proxy"
OUTBOUND: Final = "outbound"
REACHES: Final = (OPEN, PROXY, OUTBOUND)


class Reachable(Protocol):
    """A system with its `reach`."""

    @property
    def reach(self) -> str:
        """One of `REACHES`."""


class Linked(Reachable, Protocol):
    """A system with links."""

    @property
    def name(self) -> SystemId:
        """Its name."""


_System = TypeVar("_System", bound=Reachable)


def is_dialable(system: Reachable) -> bool:
    """Whether others can dial a system, which then listens."""
    return system.reach != OUTBOUND


def is_border(system: Reachable) -> bool:
    """Whether a system is the border of the systems below it."""
    return system.reach == PROXY


def dialer(first: _System, second: _System) -> _System | None:
    """Return which of two linked systems dials the other: the first, unless nobody can dial the second.

    The first is the child, or of two siblings the one with the smaller name. None if neither can be dialed.
    """
    if is_dialable(second):
        return first
    return second if is_dialable(first) else None


def dials(system: Linked, other: Linked, *, neighbor: Neighbor) -> bool:
    """Whether a system dials another one, which it knows as this neighbor.

    Children dial parents, and of siblings the smaller name dials; the other way round if nobody can dial that end.
    """
    is_related = neighbor.is_parent or neighbor.is_child
    is_first = neighbor.is_parent if is_related else system.name < other.name
    return dialer(*((system, other) if is_first else (other, system))) is system
