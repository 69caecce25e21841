"""The status vectors received from neighbors, and the sums computed from them (MESSIAHS 5.3.1, 7.2)."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.parts import Policy
from messiahs.core.model.counted import Counted
from messiahs.core.model.demand import Demand
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.link_costs import UNKNOWN_COSTS, LinkCosts
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.histories import Histories
from messiahs.core.state.link_costs import MeasuredLink, PathCosts
from messiahs.core.vectors.division import Division
from messiahs.core.vectors.indexed import IndexedVector, Indexes
from messiahs.core.vectors.joined_views import Overview
from messiahs.core.vectors.split_tree import Memory
from messiahs.core.vectors.vectors import EMPTY, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The last status vector of a neighbor, and when it arrived."""

    message: StatusVector
    received_at: Instant

    def age_ns(self, now: Instant) -> int:
        """Return the present age of its oldest part."""
        return now - self.received_at + self.message.age_ns


def viewed_kind(neighbor: Neighbor) -> VectorKind:
    """Return the kind of vector from a neighbor that is the view for placing tasks with it."""
    if neighbor.is_child:
        return VectorKind.FOR_PARENTS
    return VectorKind.FOR_CHILDREN if neighbor.is_parent else VectorKind.FOR_SIBLINGS


class Annotations(NamedTuple):
    """The annotations of a vector."""

    waiting: int = 0
    """Tasks known to wait for these machines."""
    makes_room: bool = False
    """Whether one of the machines may make room for a task although nothing is free."""
    lets_go: bool = False
    """Whether tasks that run on one of them may move to the sender of a task_request."""
    missing: tuple[MissingLink, ...] = ()
    """Links that are down at systems from which the vector comes, or at systems behind them."""
    demand: Demand = ()
    """What tasks of these systems lacked."""
    behind: LinkCosts = UNKNOWN_COSTS
    """The costs of the path from here to the nearest machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Where this system is counted, and the neighbors as they are counted (update/counting.py)."""

    parent: SystemId | None
    """The parent that counts this system: its acting primary parent. None without parents."""
    is_in_place: bool
    """Whether that is the primary parent of the topology, which siblings share; also without parents."""
    neighbors: Mapping[SystemId, Neighbor]
    """All neighbors. Primary are those that are so now, and a sibling whose vector enters no sum is none."""


@dataclass(slots=True, kw_only=True)
class Sums:
    """U and every D as they are sent, with the values from which they were computed; filled in on use (mutable).

    They only save repeated work: every result is the same without them.
    """

    own: Vector
    heard: Mapping[tuple[SystemId, VectorKind], Vector]
    neighbors: Mapping[SystemId, Neighbor]
    """The neighbors as they are counted."""
    policy: Policy
    passed_on: Mapping[tuple[SystemId, VectorKind], Vector]
    """The received vectors, without the parts that the policy does not pass on."""
    up: Division | None = None
    everything: Division | None = None
    """D together with U of all primary children."""
    memory_up: Memory = field(default_factory=Memory)
    memory_everything: Memory = field(default_factory=Memory)
    down: dict[frozenset[SystemId], Vector] = field(default_factory=dict)
    """D by the primary children that are left out of it."""
    revealed_up: dict[Hashable, tuple[Vector, Vector]] = field(default_factory=dict)
    """By audience: a vector U, and the part of it that is sent."""
    revealed_down: dict[tuple[frozenset[SystemId], Hashable], Vector] = field(default_factory=dict)
    """By audience: the part of one of `down` that is sent."""


class Sources(NamedTuple):
    """The vectors from which one sum was computed: that of the own machine, and all that neighbors had sent by then."""

    own: Vector
    heard: Mapping[tuple[SystemId, VectorKind], Vector]


class Count(NamedTuple):
    """The annotations of several neighbors: their waiting tasks, and the number of neighbors with each flag."""

    waiting: int = 0
    makes_room: int = 0
    lets_go: int = 0

    def plus(self, other: "Count", sign: int = 1) -> "Count":
        """Add another count; with a sign of -1, subtract it."""
        return Count(*(one + sign * more for one, more in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLinks:
    """Links that are down: own ones, and those that neighbors report, with the neighbor."""

    upward: tuple[MissingLink, ...]
    """With parents, siblings and other sites."""
    downward: tuple[MissingLink, ...]
    """With children."""
    below: tuple[tuple[SystemId, MissingLink], ...]
    """Reported by children."""
    elsewhere: tuple[tuple[SystemId, MissingLink], ...]
    """Reported by parents and siblings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The annotations of all neighbors, with the age of the oldest part of each."""

    primary_children: Mapping[SystemId, View]
    """Views of the primary children that have sent one, the one with the oldest part first."""
    here: Annotations
    below: Count
    above: Count
    """The annotations of all that D contains."""
    oldest_above: Instant | None
    missing: MissingLinks
    paths: PathCosts


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """The facts known at one instant, which are summed up and sent in several turns (mutable)."""

    own: Vector
    views: dict[tuple[SystemId, VectorKind], View]
    settling: tuple[int, ...] = ()
    """Marks of handovers whose machines are in no sum of the snapshot."""
    turns: int = 0
    """The number of turns that have worked on the sum."""
    sums: Sums | None = field(default=None, compare=False, repr=False)
    """Derived from the rest, with the policy and the neighbors."""


@dataclass(slots=True)
class Round:
    """Children to which vectors remain to be sent, in one turn after the other (mutable)."""

    unsent: dict[SystemId, bool] = field(default_factory=dict)
    """True: sent even if unchanged."""
    again: dict[SystemId, bool] = field(default_factory=dict)
    """Children that are sent their last vector again: a period began during the round."""
    is_going: bool = False
    """Whether a further turn of the round follows."""
    snapshot: Snapshot | None = None
    """The facts that are sent. None: each child is sent its last vector again, with its age."""


@dataclass(slots=True)
class Updates:
    """The state of the update channel (mutable)."""

    links: dict[SystemId, bool] = field(default_factory=dict)
    """Connected neighbors; True once their hello has arrived."""
    unlinked: dict[SystemId, str] = field(default_factory=dict)
    """Why other neighbors have no connection, as far as this is known. Not stored."""
    views: dict[tuple[SystemId, VectorKind], View] = field(default_factory=dict)
    histories: Histories = field(default_factory=Histories)
    measured_links: dict[SystemId, MeasuredLink] = field(default_factory=dict)
    queried: dict[SystemId, bool] = field(default_factory=dict)
    """Silent neighbors that were queried for their status."""
    silent: dict[SystemId, None] = field(default_factory=dict)
    """Parents that were not heard for an input timeout. Not stored."""
    sent: dict[tuple[SystemId, VectorKind], StatusVector] = field(default_factory=dict)
    oldest_sent: dict[tuple[SystemId, VectorKind], Instant | None] = field(default_factory=dict)
    """The origin time of the oldest part of each vector sent; None if it described the own machine alone."""
    sent_from: dict[tuple[SystemId, VectorKind], Sources] = field(default_factory=dict, compare=False, repr=False)
    """The vectors from which each vector sent was computed, for an audit; the protocol reads none of them."""
    sent_to_at: dict[tuple[SystemId, VectorKind], Instant] = field(default_factory=dict)
    """When each vector was sent last, for the owner; the protocol reads none of them."""
    sent_at: Instant | None = None
    round: Round = field(default_factory=Round)
    are_others_outdated: bool = False
    are_children_outdated: bool = False
    """Whether parents and siblings, or children, have not been sent the latest change."""
    up_rests_until: Instant | None = None
    down_rests_until: Instant | None = None
    asked_rests_until: Instant | None = None
    """When U, D, and answers to queries may be computed again: they rest in proportion to their cost."""
    measured: SDV | None = None
    counted: tuple[Counted, ...] = ()
    """The counted things of the own machine."""
    described: SDV | None = None
    """The last description of the own machine."""
    own: Vector = EMPTY
    """The vector {x}, as last advertised."""
    up: Vector = EMPTY
    """U, as last computed."""
    up_from: Sources = field(default=Sources(EMPTY, {}), compare=False, repr=False)
    """The vectors from which it was computed."""
    oldest_up: Instant | None = None
    """The origin time of its oldest part."""
    settling: tuple[int, ...] = ()
    """Marks of handovers whose machines are not in U."""
    is_up_obsolete: bool = False
    """Whether U was computed under an earlier policy: it is not sent again."""
    summing: Snapshot | None = None
    """The snapshot from which U is being computed, in more than one turn."""
    has_changes: bool = True
    """Whether a view or a link has changed since the last advertisement to all neighbors."""
    had_waiting: bool = False
    """Whether tasks waited here at the last advertisement."""
    counting: Counting | None = field(default=None, compare=False, repr=False)
    sums: Sums | None = field(default=None, compare=False, repr=False)
    """Both are derived from the other fields: they may be dropped at any time."""
    indexes: Indexes = field(default_factory=Indexes, compare=False, repr=False)
    """The indexes of all vectors that are evaluated: the view of each neighbor, `own` and `up`."""
    overview: Overview = field(default_factory=Overview, compare=False, repr=False)

    @property
    def indexed_up(self) -> IndexedVector:
        """U with its indexes."""
        return self.indexes.of(VectorKind.FOR_PARENTS, self.up)

    def link_costs(self, neighbor: SystemId) -> LinkCosts:
        """Return what was measured of the link with a neighbor."""
        link = self.measured_links.get(neighbor)
        return UNKNOWN_COSTS if link is None else link.costs
