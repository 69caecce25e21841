"""A module as executor: claims granted on the own machine, their attempts, and the effect of owner rules on these.

Rows are kept as they are stored (interface/rows.py); all other state is rebuilt after a restart.
"""

from dataclasses import dataclass, field

from messiahs.core.interface.lending import LendRow
from messiahs.core.interface.messages import AttemptStatus
from messiahs.core.interface.policies import Need
from messiahs.core.interface.rows import (
    AttemptRow,
    GrantedClaimRow,
)
from messiahs.core.model.counted import Uses
from messiahs.core.model.descriptions import TDV, Pairs
from messiahs.core.model.ids import AttemptId, ClaimId, SearchId, SystemId
from messiahs.core.model.instants import SECOND, Duration, Instant
from messiahs.core.state.lives import GRANTED_LIFE, GrantedPhase, followed
from messiahs.core.state.rule_timing import Memory

QUANTUM_NS = Duration(5 * SECOND)
"""How long a claim may keep a machine full while others may be waiting; longer if no other origin asks."""

Consumer = tuple[SystemId, SystemId, str] | SystemId
"""A user of this site, by the neighbor that asks, the origin and the name; or a neighbor of another site."""


@dataclass(slots=True, kw_only=True)
class Guard:
    """The owner-rule state of an attempt that runs here (mutable)."""

    slots: int
    memory: Memory = field(default_factory=Memory)
    mem_used: int | None = None
    """Memory used at the last measurement, in bytes."""
    suspended_at: Instant | None = None
    """When the present suspension began; None while the attempt runs."""
    paused_ns: int = 0
    """Total length of earlier suspensions."""
    moving_text: str = ""
    """Reason of the move, as reported to the origin."""
    is_waiting: bool = False
    """Whether the attempt is to resume, and waits for its slots, which are lent out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Attempts of a claim that may move to the system that made a task_request, if their origin finds places there."""

    search: SearchId
    attempts: tuple[AttemptId, ...]
    text: str


_ENDING = (GrantedPhase.ENDING, GrantedPhase.EXPIRED, GrantedPhase.RELEASED)


@dataclass(slots=True, kw_only=True)
class GrantedClaim:
    """A claim at its executor (mutable), with the attempts whose results the origin has not acknowledged."""

    row: GrantedClaimRow
    need: Need
    phase: GrantedPhase = GrantedPhase.OPEN
    granted: int
    """Its places when it was granted; unused ones are freed later."""
    attempts: dict[AttemptId, Instant] = field(default_factory=dict)
    """When each attempt was accepted."""
    acknowledged: dict[AttemptId, AttemptStatus] = field(default_factory=dict)
    """The latest attempts that can no longer start here, by the ids of their origin, each with the status that answers
    a query for it."""
    ended: dict[AttemptId, int] = field(default_factory=dict)
    """Attempts that have ended, each with the size of its status in bytes, the one reported least recently first."""
    page: dict[AttemptId, None] = field(default_factory=dict)
    """Of the latest page that did not list all of these, those that are not acknowledged (core/executor/reports.py)."""
    page_length: int = 0
    """How many attempts that page listed; 0 if the latest one listed all."""
    queried_at: Instant | None = None
    """When a query without names was answered last."""
    live: int = 0
    """Attempts that have not ended."""
    suspended: int = 0
    """Live attempts that are suspended: their places are kept, their slots may be lent out."""
    started: dict[AttemptId, Instant] = field(default_factory=dict)
    unreported: dict[AttemptId, None] = field(default_factory=dict)
    renewals: int = 0
    renewal_sent_at: dict[int, Instant] = field(default_factory=dict)
    mean_run_ns: int = 0
    quantum_began_at: Instant | None = None
    """Since when the claim may have kept other origins waiting."""
    quantum_ns: Duration = QUANTUM_NS
    """How long it may, as it was weighed at `weighed_at`."""
    weighed_at: Instant | None = None
    offer: Offer | None = None
    """Not stored: a restart withdraws the offer, and the origin is informed."""

    def enter(self, phase: GrantedPhase) -> None:
        """Enter a phase; entering the present phase has no effect."""
        self.phase = followed(self.phase, phase, GRANTED_LIFE)

    @property
    def is_ending(self) -> bool:
        """Whether the claim accepts no more tasks."""
        return self.phase in _ENDING


StarvedKey = tuple[SystemId, SystemId, TDV, str]
"""The asker (a neighbor, or the own system), the origin, the TDV and the requirement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starved:
    """A shape without a place here since `since`, because others hold them; it last asked at `asked_at`."""

    since: Instant
    asked_at: Instant
    is_foreign: bool = False
    """Whether it asks from another site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Resources kept free for one task of a shape that needs several of the places in use, until `until`.

    `since` is when the shape was first denied; since `ready_at` all reserved resources have been free. `missing` is the
    least that was missing, in thousandths of each resource, and `gathered_at` when that became less.
    """

    key: StarvedKey
    slots: int
    mem_bytes: int
    disk_bytes: int
    uses: Uses = ()
    """Counted things that this machine counts."""
    since: Instant
    began_at: Instant
    gathered_at: Instant
    until: Instant
    ready_at: Instant | None = None
    missing: int = 0


@dataclass(slots=True)
class Executor:
    """Claims granted on the own machine, and the attempts in them (mutable)."""

    claims: dict[ClaimId, GrantedClaim] = field(default_factory=dict)
    released: dict[ClaimId, GrantedClaim] = field(default_factory=dict)
    """Forgotten claims with attempts that were asked to end but still occupy their places."""
    attempts: dict[AttemptId, AttemptRow] = field(default_factory=dict)
    """By their local ids, as all tables here but `acknowledged` (core/executor/local_ids.py)."""
    aliases: dict[tuple[ClaimId, AttemptId], AttemptId] = field(default_factory=dict)
    """The local id of each attempt whose origin's id was in use in another claim, by its claim and that id."""
    kept_bytes: dict[SystemId, int] = field(default_factory=dict)
    """Size of the statuses of all `ended` attempts of claims, by the neighbor of the claim."""
    guards: dict[AttemptId, Guard] = field(default_factory=dict)
    """Attempts to which the policy's rules have been applied."""
    revoked: dict[tuple[SystemId, TDV], Instant] = field(default_factory=dict)
    """Origins and shapes of tasks that the owner's rules have ended, and until when they get no new places."""
    offers: dict[SearchId, tuple[ClaimId, ...]] = field(default_factory=dict)
    """Recent task_requests for which attempts were offered, and the claims of these; each has a timeout."""
    offered: dict[AttemptId, Instant] = field(default_factory=dict)
    """Attempts that were offered, and until when they are not offered again."""
    lacking: dict[str, Instant] = field(default_factory=dict)
    """Interpreters that an attempt has not found on this machine, hashes of environments that do not fit it, and until
    when none is granted a place for them."""
    evaluated_at: Instant | None = None
    """When the owner's rules were last evaluated."""
    mean_wait_ns: int = 0
    quantum_ns: Duration = QUANTUM_NS
    ranked_at: Instant | None = None
    first_in_order: Pairs | None = None
    """Facts of the task that the policy's `rank tasks` then put first; None if none waited."""
    quantum_before: tuple[SystemId, TDV] | None = None
    """The origin and TDV whose quantum ended last; None once a claim is granted again."""
    yielded: dict[Consumer, Instant] = field(default_factory=dict)
    """Whose quanta ended and when, the latest last; those that were granted places since then are not among them."""
    starved: dict[StarvedKey, Starved] = field(default_factory=dict)
    reservation: Reservation | None = None
    unreserved: dict[SystemId, Instant] = field(default_factory=dict)
    """Neighbors that left a reservation unused, and until when nothing is reserved for them."""
    lending: LendRow | None = None
    """The owner's dial; None: the policy decides."""

    @property
    def is_withheld(self) -> bool:
        """Whether the owner lends the machine to nobody now."""
        return self.lending is not None and not self.lending.is_on
