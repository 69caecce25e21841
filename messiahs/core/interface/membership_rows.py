"""Rows of the membership, which win over the topology file: neighbors of run time, removed ones, and the own drain."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A neighbor that joined at run time, or whose relations were changed then.

    `address` is where this module dials it (host:port); empty: it dials. `text` says why, for the people of this site.
    `assigned_by` is the primary parent if that has assigned it as a sibling, and may take it back. A row that the
    topology file has left (`is_by_file`: by a change of the primary parent, of a neighbor that it dropped, or of one
    that was brought back as it lists it) yields to that file, as an assigned sibling does.
    """

    neighbor: Neighbor
    since: Instant
    address: str = ""
    text: str = ""
    assigned_by: SystemId | None = None
    is_by_file: bool = False

    @property
    def system(self) -> SystemId:
        """The name of the neighbor."""
        return self.neighbor.system

    @property
    def is_by_people(self) -> bool:
        """Whether people of this site have entered it, so that it wins over the topology file."""
        return self.assigned_by is None and not self.is_by_file


class RemovalCause(Enum):
    """Who or what has removed a neighbor. Only what people of this site have removed stays away from the file."""

    PEOPLE = "people"
    """People of this site."""
    FILE = "file"
    """The topology file, which no longer names it."""
    CONSEQUENCE = "consequence"
    """Its own `leave`, the end of the primary parent's link, or a cycle of parents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRow:
    """A system that is removed from the neighbors; unless `is_ended`, the link lasts until its claims have ended.

    `text` says why. One that the topology file has dropped has no row after the end; nor has a sibling that the primary
    parent had assigned, unless it is removed by hand.
    """

    system: SystemId
    since: Instant
    text: str = ""
    is_ended: bool = False
    cause: RemovalCause = RemovalCause.PEOPLE

    @property
    def is_by_people(self) -> bool:
        """Whether people of this site have removed it, so that it stays away although the topology file names it."""
        return self.cause is RemovalCause.PEOPLE


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRow:
    """The module is drained: it takes no new work, and revokes what still runs at the `deadline`.

    `text` is the reason, which the systems that ask for places get. With `begins`, the drain is announced: until then
    the module takes the work that ends before.
    """

    since: Instant
    deadline: Instant | None = None
    text: str = ""
    begins: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverRow:
    """The last change of the primary parent: from `old`, which counted this system, to `new`.

    Until it `is_done`, no parent counts this system. `old` is None if none counted it before.
    """

    number: int
    old: SystemId | None
    new: SystemId
    since: Instant
    text: str = ""
    is_done: bool = False
    is_by_file: bool = False


SHUT_OFF_HERE: Final = "this module's administrator has shut it off"
"""Why a module has no link with a neighbor, for other modules of its site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutOffRow:
    """A neighbor that the administrator has shut off, since when and why; it stays so until it is readmitted."""

    system: SystemId
    since: Instant
    text: str = ""
    """The reason for the people of this site; the neighbor never gets it."""

    @property
    def why(self) -> str:
        """Why there is no link, for the users of this module."""
        return f"{SHUT_OFF_HERE}: {self.text}" if self.text else SHUT_OFF_HERE
