"""Neighbors that come and go, and the drain of this module; `ModuleState.neighbors` has those of now."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment, SiblingRequest
from messiahs.core.interface.membership_rows import DrainRow, HandoverRow, MemberRow, RemovalCause, RemovedRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A child's handover at the parent that counted it: vectors of the child from before it (`number`) do not count.

    `mark` is in the vectors for parents until no system above counts the child through this one (`is_settled`).
    """

    number: int
    mark: int
    is_settled: bool = False


@dataclass(slots=True, kw_only=True)
class SiblingsOf:
    """The siblings of a child that asks for some: those of its own file, and those `assigned` here (mutable).

    Others may dial it at `address`, unless that is empty; it takes at most `most` in all, and none of `refused`.
    """

    address: str
    of_file: dict[SystemId, None]
    assigned: dict[SystemId, None]
    most: int
    refused: dict[SystemId, None] = field(default_factory=dict)

    def has(self, system: SystemId) -> bool:
        """Return whether a system is among them."""
        return system in self.of_file or system in self.assigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A sibling that this module did not take when its primary `parent` assigned it."""

    sibling: AssignedSibling
    parent: SystemId


@dataclass(slots=True, kw_only=True)
class Assigning:
    """What a parent has assigned within half a minute: `heard` messages at once, the others `later` (mutable)."""

    heard: int = 0
    later: SiblingAssignment | None = None


@dataclass(slots=True, kw_only=True)
class Cycles:
    """The search for cycles of parents (mutable). Not stored."""

    own: dict[int, SystemId] = field(default_factory=dict)
    """Own numbers since the last round, with the parent that got each."""
    found: dict[SystemId, Instant] = field(default_factory=dict)
    """Parents that stay although they are also below this system, and when that was found last."""
    passed: dict[int, None] = field(default_factory=dict)
    """Numbers passed on since `since`."""
    passed_before: dict[int, None] = field(default_factory=dict)
    of_child: dict[SystemId, int] = field(default_factory=dict)
    """How many numbers of each child have come since then that were not known yet."""
    since: Instant | None = None


@dataclass(slots=True, kw_only=True)
class Membership:
    """The neighbors of the topology file, and the rows that win over them (mutable).

    The neighbors of now are those of the file, overlaid by `members`, without those whose removal has ended.
    """

    configured: dict[SystemId, Neighbor] = field(default_factory=dict)
    """The neighbors of the topology file, as last applied. Not stored."""
    addresses: dict[SystemId, str] = field(default_factory=dict)
    """Where this module dials those of the topology file. Not stored."""
    members: dict[SystemId, MemberRow] = field(default_factory=dict)
    removed: dict[SystemId, RemovedRow] = field(default_factory=dict)
    done: dict[SystemId, Instant] = field(default_factory=dict)
    """Leaving neighbors that were told that no claim is left here. Not stored."""
    settling: dict[SystemId, Instant] = field(default_factory=dict)
    """Leaving neighbors with which no claim is left, and since when final sums are awaited. Not stored."""
    drain: DrainRow | None = None
    announced: DrainRow | None = None
    """A drain that has not begun; never beside one that has."""
    unheard: dict[SystemId, Instant] = field(default_factory=dict)
    """Since when those were not connected whose claims pass here after the deadline of the drain. Not stored."""
    handover: HandoverRow | None = None
    """The last change of the primary parent."""
    released: dict[SystemId, Release] = field(default_factory=dict)
    """Children that are counted elsewhere from now on. Not stored: they say it anew on each connection."""
    siblings_of: dict[SystemId, SiblingsOf] = field(default_factory=dict)
    """What children have said of their siblings. Not stored: they say it anew on each connection."""
    asked: dict[SystemId, SiblingRequest] = field(default_factory=dict)
    """The last request of each child that has asked for siblings again too soon. Not stored."""
    assigning: dict[SystemId, Assigning] = field(default_factory=dict)
    """Parents that have assigned siblings a short time ago. Not stored."""
    refused: dict[SystemId, Refusal] = field(default_factory=dict)
    """Assigned siblings that this module does not take. Not stored: they are assigned anew after a restart."""
    cycles: Cycles = field(default_factory=Cycles)

    @property
    def is_handing_over(self) -> bool:
        """Return whether this system is counted by no parent, because its primary parent changes."""
        return self.handover is not None and not self.handover.is_done

    def is_leaving(self, system: SystemId) -> bool:
        """Return whether the link with a neighbor is being ended: it is no relation, but its claims go on."""
        row = self.removed.get(system)
        return row is not None and not row.is_ended

    def is_assigned(self, system: SystemId) -> bool:
        """Return whether a neighbor is a sibling that the primary parent has assigned."""
        row = self.members.get(system)
        return row is not None and row.assigned_by is not None

    def is_parent_of_file(self, system: SystemId) -> bool:
        """Return whether the topology file makes a system a parent of this one."""
        configured = self.configured.get(system)
        return configured is not None and configured.is_parent

    def cycle_advice(self, own: SystemId, parent: SystemId) -> str:
        """Return what an administrator of `own` does about a parent that is also below it."""
        in_file = "remove one of these relations in the topology file, or " if self.is_parent_of_file(parent) else ""
        return f"{in_file}type `messiahs module leave {parent} --module {own}`"

    def is_passing(self, row: RemovedRow) -> bool:
        """Return whether a removal is forgotten once it has ended: the file or the primary parent may add it again."""
        return row.cause is RemovalCause.FILE or (self.is_assigned(row.system) and not row.is_by_people)

    def leaving(self) -> Iterator[RemovedRow]:
        """Yield the neighbors whose link is being ended."""
        return (row for row in self.removed.values() if not row.is_ended)
