"""A module as hop: searches and claims that pass through it. Only the rows of claims are stored."""

from dataclasses import dataclass, field

from messiahs.core.interface.messages import Reason, SchedRequest, TaskRequest
from messiahs.core.interface.policies import Asker, Need
from messiahs.core.interface.rows import (
    PassedClaimRow,
)
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClaimId, MessageId, SearchId, SystemId
from messiahs.core.model.instants import Instant

SearchRequest = SchedRequest | TaskRequest
"""A request that is forwarded from neighbor to neighbor until it is accepted."""


@dataclass(slots=True)
class Search:
    """A request in progress at this module (mutable): one candidate is asked at a time (MESSIAHS 6.2, footnote 5)."""

    request: SearchRequest
    asker: Asker
    need: Need | None
    """Needs of one task of a `sched_request`; None for a `task_request`."""
    left: int
    """Places or tasks not found yet."""
    allowed: int
    """How many of them the policy's limits allow for this system and its children."""
    asks_left: int
    until: Instant
    """Deadline of the answer to the asker."""
    reason: Reason
    """Why this module itself gives no places; reasons of the hops below are added as they deny."""
    untried: list[SystemId] = field(default_factory=list)
    asked: SystemId | None = None
    asked_left: int = 0
    """Places requested from `asked` but not yet granted."""
    showing: int = 0
    """How many machines behind `asked` surely had room, by its view when it was asked; 0 in searches of others."""
    hops: list[tuple[SystemId, Reason]] = field(default_factory=list)
    """Denials of the asked systems, each with the neighbor that sent it."""
    is_hidden: bool = False
    """Whether `asked` sees this system as the origin, which is its border."""
    record: SearchRecord | None = None
    """What it has asked so far, of a search for the tasks of local users; None of any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A search that passed here: the neighbors that sent it first and last, and whether it ever climbed."""

    asker: SystemId
    latest: SystemId
    has_climbed: bool


DemandKey = tuple[SystemId, SystemId, TDV]
"""The asking neighbor, the origin and the TDV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Places that were requested in vain: first at `since`, remembered until `until`."""

    count: int
    since: Instant
    until: Instant


@dataclass(slots=True)
class Hop:
    """Searches and claims that pass through this module (mutable)."""

    searches: dict[tuple[SystemId, MessageId], Search] = field(default_factory=dict)
    asks: dict[MessageId, Search] = field(default_factory=dict)
    """Requests sent by this module that are not fully answered."""
    seen: dict[SearchId, Seen] = field(default_factory=dict)
    """Searches that passed here and may return."""
    seen_from: dict[SystemId, dict[SearchId, None]] = field(default_factory=dict)
    """The same searches by the neighbor that sent them first, the oldest first."""
    passed: dict[ClaimId, PassedClaimRow] = field(default_factory=dict)
    demands: dict[DemandKey, Demand] = field(default_factory=dict)
    """Places that neighbors requested in vain."""
