"""A module as hop: searches and claims that pass through it. Soft, but for the rows of claims."""

from collections import Counter
from dataclasses import dataclass, field

from messiahs.core.interface.messages import Reason, SchedRequest, TaskRequest
from messiahs.core.interface.policies import Asker, Need
from messiahs.core.interface.rows import (
    PassedClaimRow,
)
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClaimId, MessageId, SearchId, SystemId
from messiahs.core.model.instants import Instant

SearchRequest = SchedRequest | TaskRequest
"""What is passed on from neighbor to neighbor until somebody accepts."""


@dataclass(slots=True)
class Search:
    """A request that this module works on (mutable): it asks one candidate at a time (MESSIAHS 6.2, footnote 5)."""

    request: SearchRequest
    asker: Asker
    need: Need | None
    """What one task of a `sched_request` takes."""
    left: int
    """Places, or tasks, still wanted."""
    allowed: int
    """How many of them the policy's limits leave to this system and its children."""
    asks_left: int
    until: Instant
    """When the asker must have its answer."""
    reason: Reason
    """Why this module itself gives no places; the hops below are added as they deny."""
    untried: list[SystemId] = field(default_factory=list)
    asked: SystemId | None = None
    asked_left: int = 0
    """Places requested from `asked` but not yet granted."""
    hops: list[tuple[SystemId, Reason]] = field(default_factory=list)
    """Why those that were asked denied, each with the neighbor that said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A search that asked here: who brought it first, who brought it last, and whether it ever came climbing."""

    asker: SystemId
    latest: SystemId
    has_climbed: bool


DemandKey = tuple[SystemId, SystemId, TDV]
"""The neighbor that asked, the origin and the TDV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Places that were asked for and not to be had: since when, and until when it is remembered."""

    count: int
    since: Instant
    until: Instant


@dataclass(slots=True)
class Hop:
    """Searches and claims that pass through (mutable)."""

    searches: dict[tuple[SystemId, MessageId], Search] = field(default_factory=dict)
    asks: dict[MessageId, Search] = field(default_factory=dict)
    """Our own asks that are not fully answered."""
    seen: dict[SearchId, Seen] = field(default_factory=dict)
    """Searches that asked here."""
    seen_from: Counter[SystemId] = field(default_factory=Counter)
    """How many of them each neighbor brought."""
    passed: dict[ClaimId, PassedClaimRow] = field(default_factory=dict)
    demands: dict[DemandKey, Demand] = field(default_factory=dict)
    """What neighbors would have run here if there had been room."""
