"""A module as executor: claims granted on the own machine, the attempts in them, and how owner rules affect them.

Rows are kept as they are stored (interface/rows.py); everything else is soft and made anew after a restart.
"""

from dataclasses import dataclass, field

from messiahs.core.interface.messages import AttemptStatus
from messiahs.core.interface.policies import Need
from messiahs.core.interface.rows import (
    AttemptRow,
    GrantedClaimRow,
)
from messiahs.core.model.descriptions import TDV, Pairs
from messiahs.core.model.ids import AttemptId, ClaimId, SearchId, SystemId
from messiahs.core.model.instants import SECOND, Duration, Instant
from messiahs.core.state.lives import GRANTED_LIFE, GrantedPhase, followed
from messiahs.core.state.rule_timing import Memory

QUANTUM_NS = Duration(5 * SECOND)
"""How long a claim may keep a machine full that others may be waiting for; longer while nobody else comes."""


@dataclass(slots=True, kw_only=True)
class Guard:
    """How an attempt that runs here stands with the rules of its machine's owner (mutable)."""

    slots: int
    memory: Memory = field(default_factory=Memory)
    mem_used: int | None = None
    """In bytes, as it was measured last."""
    suspended_at: Instant | None = None
    """Since when nothing of it runs."""
    paused_ns: int = 0
    """How long nothing of it ran before."""
    moving_text: str = ""
    """What its origin is told of the reason why it is to run elsewhere."""
    is_waiting: bool = False
    """It is to go on, and waits for its slots, which others have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Attempts of a claim that may go to whoever made a task_request, if their origin finds a place there."""

    search: SearchId
    attempts: tuple[AttemptId, ...]
    text: str


_ENDING = (GrantedPhase.ENDING, GrantedPhase.EXPIRED, GrantedPhase.RELEASED)


@dataclass(slots=True, kw_only=True)
class GrantedClaim:
    """A claim at its executor (mutable): its attempts whose results the origin has not taken yet."""

    row: GrantedClaimRow
    need: Need
    phase: GrantedPhase = GrantedPhase.OPEN
    granted: int
    """Its places when it was granted; those that are not used are freed."""
    attempts: dict[AttemptId, Instant] = field(default_factory=dict)
    """When each was taken."""
    acknowledged: dict[AttemptId, AttemptStatus] = field(default_factory=dict)
    """The latest attempts that never start here any more, each with what its origin is told if it asks again."""
    live: int = 0
    """Attempts that have not ended."""
    suspended: int = 0
    """Those of them that are suspended: their places are kept, and their slots may be others' meanwhile."""
    started: dict[AttemptId, Instant] = field(default_factory=dict)
    unreported: dict[AttemptId, None] = field(default_factory=dict)
    renewals: int = 0
    renewal_sent_at: dict[int, Instant] = field(default_factory=dict)
    mean_run_ns: int = 0
    quantum_began_at: Instant | None = None
    """Since when it may have kept others waiting."""
    offer: Offer | None = None
    """Soft: after a restart there is none, and the origin is told."""

    def enter(self, phase: GrantedPhase) -> None:
        """Go on to a phase; the current one again changes nothing."""
        self.phase = followed(self.phase, phase, GRANTED_LIFE)

    @property
    def is_ending(self) -> bool:
        """Whether it takes no more tasks."""
        return self.phase in _ENDING


StarvedKey = tuple[SystemId, SystemId, TDV, str]
"""Who asked (a neighbor, or the own system), the origin, the TDV and the requirement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starved:
    """A shape that has got no place here since `since`, because others have them; it last asked at `asked_at`."""

    since: Instant
    asked_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is kept free for one task of a shape that needs several of the places in use; it ends at `until`.

    `since` is when the shape was first denied, and `ready_at` since when all that it needs has been free.
    """

    key: StarvedKey
    slots: int
    mem_bytes: int
    disk_bytes: int
    since: Instant
    began_at: Instant
    until: Instant
    ready_at: Instant | None = None


@dataclass(slots=True)
class Executor:
    """Claims granted on the own machine, and the attempts in them (mutable)."""

    claims: dict[ClaimId, GrantedClaim] = field(default_factory=dict)
    released: dict[ClaimId, GrantedClaim] = field(default_factory=dict)
    """Claims that are forgotten, except for attempts that were told to end and still use their places."""
    attempts: dict[AttemptId, AttemptRow] = field(default_factory=dict)
    guards: dict[AttemptId, Guard] = field(default_factory=dict)
    """Attempts at which the policy's rules were looked."""
    revoked: dict[tuple[SystemId, TDV], Instant] = field(default_factory=dict)
    """Whose tasks, of which shape, the owner's rules have ended, and until when such get no new places."""
    offers: dict[SearchId, tuple[ClaimId, ...]] = field(default_factory=dict)
    """Requests for which attempts were offered lately, and their claims; each has a timeout."""
    offered: dict[AttemptId, Instant] = field(default_factory=dict)
    """Attempts that were offered, and until when they are not offered again."""
    evaluated_at: Instant | None = None
    """When the owner's rules were looked at last."""
    mean_wait_ns: int = 0
    quantum_ns: Duration = QUANTUM_NS
    ranked_at: Instant | None = None
    first_in_order: Pairs | None = None
    """What is known of the task that came first by the policy's `rank tasks` then; None if none waited."""
    quantum_before: tuple[SystemId, TDV] | None = None
    """Whose turn ended, until a claim is granted again."""
    starved: dict[StarvedKey, Starved] = field(default_factory=dict)
    reservation: Reservation | None = None
    unreserved: dict[SystemId, Instant] = field(default_factory=dict)
    """Who left a reservation unused, and until when nothing is reserved for it again."""
