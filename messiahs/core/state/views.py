"""What neighbors have said through the update channel, and what was made of it (MESSIAHS 5.3.1, 7.2)."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.parts import Policy
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.batch import Overview
from messiahs.core.vectors.division import Division
from messiahs.core.vectors.split_tree import Memory
from messiahs.core.vectors.vectors import EMPTY, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a neighbor last said, and when it arrived."""

    message: StatusVector
    received_at: Instant

    def age_ns(self, now: Instant) -> int:
        """Return how old the oldest part of it is by now."""
        return now - self.received_at + self.message.age_ns


class Beside(NamedTuple):
    """What a vector says beside its machines."""

    waiting: int = 0
    """How many tasks wait where the machines are, as far as that is known."""
    makes_room: bool = False
    """One of the machines may make room for a task though nothing is free."""
    lets_go: bool = False
    """Tasks that run on one of them may go to whoever asks for some."""


@dataclass(slots=True, kw_only=True)
class Sums:
    """U and every D as they leave, of what they were last computed from; they fill up (mutable).

    Nothing depends on whether it is there: it only saves the work of computing the same again.
    """

    own: Vector
    heard: Mapping[tuple[SystemId, VectorKind], Vector]
    neighbors: Mapping[SystemId, Neighbor]
    policy: Policy
    passed_on: Mapping[tuple[SystemId, VectorKind], Vector]
    """What was heard, less what the policy does not pass on."""
    up: Division | None = None
    everything: Division | None = None
    """D and beside it U of all primary children."""
    memory_up: Memory = field(default_factory=Memory)
    memory_everything: Memory = field(default_factory=Memory)
    down: dict[frozenset[SystemId], Vector] = field(default_factory=dict)
    """By the primary children that are not in it."""
    revealed_up: dict[Hashable, tuple[Vector, Vector]] = field(default_factory=dict)
    """By audience: a vector U, and what is told of it."""
    revealed_down: dict[tuple[frozenset[SystemId], Hashable], Vector] = field(default_factory=dict)
    """What is told of one of `down`, by audience."""


class Count(NamedTuple):
    """What several neighbors say beside their vectors: how many tasks wait, and how many neighbors say the rest."""

    waiting: int = 0
    makes_room: int = 0
    lets_go: int = 0

    def plus(self, other: "Count", sign: int = 1) -> "Count":
        """Add another count, or with a sign of -1 take it off."""
        return Count(*(one + sign * more for one, more in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What all neighbors say beside their vectors, and when the oldest part of each came about."""

    primary_children: Mapping[SystemId, View]
    """Those that have said something, the one with the oldest part first."""
    here: Beside
    below: Count
    above: Count
    """Of everything that stands in D."""
    oldest_above: Instant | None


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """What was known at one instant, and is summed up and told in several turns (mutable)."""

    own: Vector
    views: dict[tuple[SystemId, VectorKind], View]
    turns: int = 0
    """How many turns have worked on the sum."""
    sums: Sums | None = field(default=None, compare=False, repr=False)
    """Derived from the rest, with the policy and the neighbors."""


@dataclass(slots=True)
class Round:
    """Children that are still to be told something, one turn after the other (mutable)."""

    unsent: dict[SystemId, bool] = field(default_factory=dict)
    """True: also if it says nothing new."""
    again: dict[SystemId, bool] = field(default_factory=dict)
    """Children that are told their last vector once more: a period has come while the round goes on."""
    is_going: bool = False
    """Some of them are told in a further turn."""
    snapshot: Snapshot | None = None
    """What they are told of. None: each is told again what it was told last, with its age."""


@dataclass(slots=True)
class Updates:
    """The update channel's side of a module (mutable)."""

    links: dict[SystemId, bool] = field(default_factory=dict)
    """Neighbors that are connected; True once they have said hello."""
    views: dict[tuple[SystemId, VectorKind], View] = field(default_factory=dict)
    queried: dict[SystemId, bool] = field(default_factory=dict)
    """Silent neighbors that were asked for their status."""
    sent: dict[tuple[SystemId, VectorKind], StatusVector] = field(default_factory=dict)
    oldest_sent: dict[tuple[SystemId, VectorKind], Instant | None] = field(default_factory=dict)
    """When the oldest part of what was sent came about; None if it was of the own machine alone."""
    sent_at: Instant | None = None
    round: Round = field(default_factory=Round)
    others_have_news: bool = False
    children_have_news: bool = False
    """Something has changed of which parents and siblings, or children, are to be told."""
    up_rests_until: Instant | None = None
    down_rests_until: Instant | None = None
    asked_rests_until: Instant | None = None
    """U, D, and either for whoever asked, have taken so much work that they rest until then."""
    measured: SDV | None = None
    described: SDV | None = None
    """What the own machine was last said to be."""
    own: Vector = EMPTY
    """The vector {x}, as it was advertised last."""
    up: Vector = EMPTY
    """U, as it was computed last."""
    oldest_up: Instant | None = None
    """When its oldest part came about."""
    is_up_obsolete: bool = False
    """U was computed under a policy that has changed: it is not sent again."""
    summing: Snapshot | None = None
    """U is being computed from it, in more than one turn."""
    has_news: bool = True
    """A view or a link has changed since every neighbor was told of what did."""
    had_waiting: bool = False
    """Tasks waited here when neighbors were told last."""
    sums: Sums | None = field(default=None, compare=False, repr=False)
    """Derived from the rest: it may be dropped at any time."""
    overview: Overview = field(default_factory=Overview, compare=False, repr=False)
