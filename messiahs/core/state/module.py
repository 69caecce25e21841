"""The mutable state of one scheduling module, by role: neighbor, hop of searches, origin and executor.

Rows are kept as they are stored (rows.py); everything else here is soft and made anew after a restart.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from messiahs.core.interface.calendar import utc
from messiahs.core.interface.messages import AttemptStatus, IdsGiven, Reason, SchedRequest, TaskRequest, TaskState
from messiahs.core.interface.policies import Asker, Calendar, Need, Policy, Randomness
from messiahs.core.interface.predicates import PredicateParser
from messiahs.core.interface.rows import (
    AttemptRow,
    CountersRow,
    GrantedClaimRow,
    HeldClaimRow,
    PassedClaimRow,
    RememberedRow,
    SubmissionRow,
    TaskRow,
)
from messiahs.core.interface.timers import Timers
from messiahs.core.model.descriptions import TDV, Pairs
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, MessageId, SearchId, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Duration, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.core.state.rule_timing import Memory
from messiahs.core.state.run_clock import RunClock
from messiahs.core.state.views import Updates

ShapeKey = tuple[TDV, str]
"""Tasks with equal TDV (which names their user) and requirement are placed together."""

FIRST_ROUND_DELAY_NS = Duration(1 * SECOND)
TURN_NS = Duration(5 * SECOND)
"""How long a claim may keep a machine full that others may be waiting for; longer while nobody else comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a module is: `address` is where its task channel can be dialed (host:port)."""

    system: SystemId
    epoch: Epoch
    address: str
    release: str = ""
    trust: Trust = UNKNOWN
    apart: tuple[SystemId, ...] = ()
    """Neighbors for which other roots vouch than those of `trust`."""


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


@dataclass(slots=True)
class Shape:
    """Waiting tasks of one shape (mutable): `waiting` holds runs of members (submission, first, last)."""

    key: ShapeKey
    number: int
    need: Need
    waiting: deque[tuple[TaskId, int, int]] = field(default_factory=deque)
    count: int = 0
    """How many tasks wait."""
    claims: list[ClaimId] = field(default_factory=list)
    is_filled: bool = True
    """None of its claims has room for a task that waits."""
    request: MessageId | None = None
    """The search in flight."""
    delay_ns: Duration = FIRST_ROUND_DELAY_NS
    reasons: tuple[Reason, ...] = ()
    """Why the last round placed nothing (more)."""
    answers: SearchId | None = None
    """The task_request that the next round answers."""
    promised: int = 0
    """Tasks that were promised to whoever asked for them, until the round for them is over."""
    promised_at: Instant | None = None
    """When tasks of it were promised last."""
    has_lost: bool = False
    """The last attempt that came back was lost or refused."""
    moving: dict[AttemptId, bool] = field(default_factory=dict)
    """Bound attempts that are to run elsewhere; True once they were told to end for another place."""
    offered: dict[AttemptId, None] = field(default_factory=dict)
    """Those of them that may as well stay: their executor offered them to whoever asked for tasks."""
    turn_ended_at: Instant | None = None
    """When an executor last ended a claim of it."""


@dataclass(slots=True)
class Submission:
    """A submission with members that have not ended (mutable); those that have are counted by state and exit code."""

    row: SubmissionRow
    ended: Counter[tuple[TaskState, int | None]] = field(default_factory=Counter)

    @property
    def open_members(self) -> int:
        """How many of its tasks have not ended."""
        return max(1, self.row.members) - self.ended.total()


@dataclass(slots=True)
class HeldClaim:
    """A claim at its origin (mutable): attempts bound to it, and those of them that the executor has not reported."""

    row: HeldClaimRow
    shape: Shape
    window: int
    results: int = 0
    """Results of attempts that ended by themselves, since the claim was granted or the module restarted."""
    bound: dict[AttemptId, Instant] = field(default_factory=dict)
    unconfirmed: dict[AttemptId, None] = field(default_factory=dict)
    listed: dict[AttemptId, None] = field(default_factory=dict)
    """What its executor has spoken of since its last whole renewal."""
    is_ending: bool = False
    """No further task is bound to it."""
    is_for_offered: bool = False
    """It was granted to attempts that were offered to whoever asked for some; they move to such a claim alone. Soft."""
    offered_to: SearchId | None = None
    """The latest task_request for which its executor offered attempts of it."""
    moving_at: Instant | None = None
    """When inputs of its tasks were last seen on their way."""
    clocks: dict[AttemptId, RunClock] = field(default_factory=dict)
    """Of attempts with a time limit. Soft."""
    status_at: Instant | None = None
    """When its executor reported last."""
    is_refused: bool = False
    """Its executor can be reached, and would not take tasks that were brought last."""
    refusal: str = ""
    """Why it did not; soft."""
    stream_failure: str = ""
    """How its task stream failed last; empty if it is known to work."""
    heard_at: Instant | None = None
    """When its executor was heard of first while the stream failed, over the control channel."""
    is_unreachable: bool = False
    """Its task stream was given up: its tasks wait for the executor to say that they never arrived."""


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


@dataclass(slots=True)
class GrantedClaim:
    """A claim at its executor (mutable): its attempts whose results the origin has not taken yet."""

    row: GrantedClaimRow
    need: Need
    granted: int
    """Its places when it was granted; those that are not used are freed."""
    attempts: dict[AttemptId, Instant] = field(default_factory=dict)
    """When each was taken."""
    over: dict[AttemptId, AttemptStatus] = field(default_factory=dict)
    """The latest attempts that never start here any more, each with what its origin is told if it asks again."""
    live: int = 0
    """Attempts that have not ended."""
    still: int = 0
    """Those of them that are suspended: their places are kept, and their slots may be others' meanwhile."""
    started: dict[AttemptId, Instant] = field(default_factory=dict)
    unreported: dict[AttemptId, None] = field(default_factory=dict)
    renewals: int = 0
    renewal_sent_at: dict[int, Instant] = field(default_factory=dict)
    mean_run_ns: int = 0
    turn_began_at: Instant | None = None
    """Since when it may have kept others waiting."""
    is_yielding: bool = False
    """Its turn is over and its origin was told; it ends when what was on its way has had time to come."""
    is_shrinking: bool = False
    """The origin was told that places it does not fill go to others, but they have not gone yet."""
    offer: Offer | None = None
    """Soft: after a restart there is none, and the origin is told."""
    is_ending: bool = False
    is_over: bool = False
    """Its lease ran out: only results that its origin has not taken are left."""


@dataclass(slots=True)
class Origin:
    """Tasks of local users (mutable)."""

    keys: dict[ClientKey, TaskId] = field(default_factory=dict)
    submissions: dict[TaskId, Submission] = field(default_factory=dict)
    tasks: dict[TaskId, TaskRow] = field(default_factory=dict)
    """Tasks that were tried and have not ended."""
    shapes: dict[ShapeKey, Shape] = field(default_factory=dict)
    shapes_by_number: dict[int, Shape] = field(default_factory=dict)
    waiting: int = 0
    """Tasks that wait, of all shapes."""
    requests: dict[MessageId, Shape] = field(default_factory=dict)
    claims: dict[ClaimId, HeldClaim] = field(default_factory=dict)
    fetching: dict[AttemptId, AttemptStatus] = field(default_factory=dict)
    """Ended attempts whose outputs are on their way home."""
    fetch_failures: dict[AttemptId, int] = field(default_factory=dict)
    lost_at: dict[SystemId, Instant] = field(default_factory=dict)
    """Neighbors through which attempts were lost, and when last."""
    avoided: dict[SystemId, Instant] = field(default_factory=dict)
    """Executors whose task streams failed, and until when they are asked for no places."""
    shapes_made: int = 0


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


@dataclass(slots=True)
class Executor:
    """Claims granted on the own machine, and the attempts in them (mutable)."""

    claims: dict[ClaimId, GrantedClaim] = field(default_factory=dict)
    leaving: dict[ClaimId, GrantedClaim] = field(default_factory=dict)
    """Claims that are over, but for attempts that have been told to end and still take their places."""
    attempts: dict[AttemptId, AttemptRow] = field(default_factory=dict)
    guards: dict[AttemptId, Guard] = field(default_factory=dict)
    """Attempts at which the policy's rules were looked."""
    revoked: dict[tuple[SystemId, TDV], Instant] = field(default_factory=dict)
    """Whose tasks, of which shape, the owner's rules have ended, and until when such get no new places."""
    offers: dict[SearchId, tuple[ClaimId, ...]] = field(default_factory=dict)
    """Requests for which attempts were offered lately, and their claims; each has a timeout."""
    offered: dict[AttemptId, Instant] = field(default_factory=dict)
    """Attempts that were offered, and until when they are not offered again."""
    looked_at: Instant | None = None
    """When the owner's rules were looked at last."""
    mean_wait_ns: int = 0
    turn_ns: Duration = TURN_NS
    ranked_at: Instant | None = None
    first_in_turn: Pairs | None = None
    """What is known of the task that came first by the policy's `rank tasks` then; None if none waited."""
    turn_before: tuple[SystemId, TDV] | None = None
    """Whose turn ended, until a claim is granted again."""
    starved: dict[StarvedKey, Starved] = field(default_factory=dict)
    reservation: Reservation | None = None
    unreserved: dict[SystemId, Instant] = field(default_factory=dict)
    """Who left a reservation unused, and until when nothing is reserved for it again."""


@dataclass(slots=True, kw_only=True)
class ModuleState:
    """All that a module knows (mutable; only core handlers change it)."""

    identity: Identity
    neighbors: dict[SystemId, Neighbor]
    policy: Policy
    parse: PredicateParser
    randomness: Randomness
    calendar: Calendar = utc
    timers: Timers = field(default_factory=Timers)
    counters: CountersRow = field(default_factory=CountersRow)
    messages_sent: int = 0
    has_space: bool = True
    remembered: dict[SystemId, RememberedRow] = field(default_factory=dict)
    """What neighbors have said of their ids."""
    heard_of_self: dict[SystemId, None] = field(default_factory=dict)
    """Neighbors that have said, in this life, what they remember of this module. Soft."""
    has_renewed: bool = False
    """The epoch is one of this life. Soft."""
    told_given: IdsGiven = field(default_factory=IdsGiven)
    told_given_at: Instant | None = None
    updates: Updates = field(default_factory=Updates)
    origin: Origin = field(default_factory=Origin)
    hop: Hop = field(default_factory=Hop)
    executor: Executor = field(default_factory=Executor)

    @property
    def system(self) -> SystemId:
        """The module's own name."""
        return self.identity.system

    @property
    def epoch(self) -> Epoch:
        """The epoch in which ids are given out."""
        return self.counters.epoch if self.counters.epoch is not None else self.identity.epoch

    def next_message_id(self) -> MessageId:
        """Give the next message its number."""
        self.messages_sent += 1
        return MessageId(self.messages_sent)
