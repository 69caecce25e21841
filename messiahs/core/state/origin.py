"""A module as origin: tasks of local users, the shapes in which they wait, and the claims that they run in.

Rows are kept as they are stored (interface/rows.py); all other state is rebuilt after a restart.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from messiahs.core.interface.messages import AttemptStatus, Reason, TaskState
from messiahs.core.interface.notifications import NotificationRow
from messiahs.core.interface.policies import Need
from messiahs.core.interface.rows import HeldClaimRow, SubmissionRow, TaskRow
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.demand import DemandKey
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, MessageId, SearchId, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Duration, Instant
from messiahs.core.model.routes import Leg
from messiahs.core.state.lives import HELD_LIFE, SHAPE_LIFE, HeldPhase, ShapePhase, followed
from messiahs.core.state.run_clock import RunClock
from messiahs.core.state.ways import Avoided

ShapeKey = tuple[TDV, str]
"""Tasks with equal TDV (which names their user) and requirement are placed together."""

FIRST_ROUND_DELAY_NS = Duration(1 * SECOND)
WINDOW_LIMIT: Final = 1_280
"""Most tasks of one claim that an executor gets at once, whatever window it reports."""
_NEVER: Final = Instant(0)


@dataclass(slots=True)
class Shape:
    """Waiting tasks of one shape (mutable): `waiting` holds runs of members (submission, first, last)."""

    key: ShapeKey
    number: int
    need: Need
    waiting: deque[tuple[TaskId, int, int]] = field(default_factory=deque)
    count: int = 0
    """Number of waiting tasks."""
    claims: list[ClaimId] = field(default_factory=list)
    is_filled: bool = True
    """No claim of the shape has room for a waiting task."""
    phase: ShapePhase = ShapePhase.SETTLED
    request: MessageId | None = None
    """The search in progress, in phase SEARCHING."""
    delay_ns: Duration = FIRST_ROUND_DELAY_NS
    reasons: tuple[Reason, ...] = ()
    """Why the last round placed nothing, or nothing more."""
    lacks: DemandKey | None = None
    """What its tasks lacked then; None if no round was denied since the last grant, or for another cause."""
    search: SearchRecord | None = None
    """What the last round has asked. Not stored."""
    answers: SearchId | None = None
    """The task_request that the next round answers."""
    promised: int = 0
    """Tasks promised in answer to a task_request, until the round for them has ended."""
    promised_at: Instant | None = None
    """When tasks of the shape were last promised."""
    has_lost: bool = False
    """Whether the last attempt that came back was lost or refused."""
    failed_starts: int = 0
    """Pauses since an attempt of the shape ended by itself."""
    pauses_until: Instant = _NEVER
    """Before that instant no round begins, because the own machine could not start an attempt. Not stored."""
    moving: dict[AttemptId, bool] = field(default_factory=dict)
    """Bound attempts that are to run elsewhere; True once they were asked to end because there is a place."""
    offered: dict[AttemptId, None] = field(default_factory=dict)
    """Moving attempts that may also stay: their executor offered them in answer to a task_request."""
    near: ClaimId | None = None
    """A claim behind another site's border whose attempts have to move: the next round searches at that site alone."""
    is_near: bool = False
    """Whether the present round does."""
    quantum_ended_at: Instant | None = None
    """When a claim of the shape last ended its quantum, or gave way."""
    user: str = ""
    priority: int = 0
    """The user and the priority that the TDV states."""
    denied_since: Instant | None = None
    """When the shape was first denied for lack of places; None once it has a claim."""

    def enter(self, phase: ShapePhase) -> None:
        """Enter a phase; entering the present phase has no effect."""
        self.phase = followed(self.phase, phase, SHAPE_LIFE)


@dataclass(slots=True)
class Submission:
    """A submission with members that have not ended (mutable); ended ones are counted by state and exit code."""

    row: SubmissionRow
    ended: Counter[tuple[TaskState, int | None]] = field(default_factory=Counter)
    aside: list[tuple[int, int]] = field(default_factory=list)
    """Runs of members (first, last) that wait on hold."""
    dependent: list[tuple[int, int]] = field(default_factory=list)
    """Runs of members that wait for other tasks: all that wait, while a condition for all of them is not met."""
    behind: list[tuple[int, int]] = field(default_factory=list)
    """Ascending runs of members that wait until fewer than `at_once` others are placed or run."""
    started: int = 0
    """How many of its tasks have started and not ended."""
    is_taking: bool = False
    """Whether the host was told to take outputs of others for it. Not stored."""
    why_not_taken: str = ""
    """Why the host cannot store those yet; empty if nothing is known."""

    @property
    def open_members(self) -> int:
        """The number of its tasks that have not ended."""
        return max(1, self.row.members) - self.ended.total()

    @property
    def admitted(self) -> int:
        """The number of its tasks that wait for a place, or are bound."""
        apart = (*self.aside, *self.dependent, *self.behind)
        return self.open_members - sum(last - first + 1 for first, last in apart)

    @property
    def has_all_started(self) -> bool:
        """Whether each of its tasks has started or ended."""
        return self.started == self.open_members


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedChange:
    """`on`, a task or all of a submission, has started, or ended well or not, and others may wait for that."""

    on: TaskId
    submission: Submission
    is_good: bool | None = None
    """None: it has started."""
    how: str = ""
    """How a task has ended, or the `members`, in words; empty for a whole array, whose counts say that."""
    members: tuple[tuple[int, int], ...] = ()
    """Runs of members that have ended, for those that wait for an array member by member; empty for all others."""


@dataclass(slots=True)
class HeldClaim:
    """A claim at its origin (mutable): its bound attempts, and those that the executor has not reported yet."""

    row: HeldClaimRow
    shape: Shape
    window: int
    began_at: Instant | None = None
    """When it was granted, or entered after a restart."""
    results: int = 0
    """Results of attempts that ended by themselves, since the grant or the last restart."""
    has_denied: bool = False
    """Whether its executor has denied a task that was bound to it. Not stored."""
    most: int = WINDOW_LIMIT
    """Most tasks that may be bound at once, as the window of its machine allowed when it was filled last."""
    bound: dict[AttemptId, Instant] = field(default_factory=dict)
    unconfirmed: dict[AttemptId, None] = field(default_factory=dict)
    listed: dict[AttemptId, None] = field(default_factory=dict)
    """Attempts that its executor has reported since its last complete renewal."""
    leased_at: Instant | None = None
    """When its lease was granted or extended last; None if that is unknown, after a restart. Not stored."""
    unanswered: int = 0
    """The last renewal that was not answered, because its tasks need no longer lease; 0 if there is none."""
    phase: HeldPhase = HeldPhase.OPEN
    is_for_offered: bool = False
    """Whether it was granted for attempts offered in answer to a task_request, which move only to such a claim."""
    offered_to: SearchId | None = None
    """The latest task_request for which its executor offered its attempts."""
    moving_at: Instant | None = None
    """When inputs of its tasks were last reported to be in transit."""
    clocks: dict[AttemptId, RunClock] = field(default_factory=dict)
    """The run times of attempts with a time limit. Not stored."""
    status_at: Instant | None = None
    """When its executor last reported."""
    refusal: str | None = None
    """Why its reachable executor refused the tasks sent last; None if it accepted them. Not stored."""
    has_delivered: bool = False
    """Whether tasks sent on the present way have arrived. Not stored."""
    stream_failure: str = ""
    """The last failure of its task stream; empty if the stream is known to work."""
    heard_at: Instant | None = None
    """When a control message of its executor first arrived after the stream had failed."""
    unknown_since: Instant | None = None
    """When its executor, or a system on its path, first reported that it does not know the claim. Not stored."""

    def enter(self, phase: HeldPhase) -> None:
        """Enter a phase; UNREACHABLE is permanent."""
        if self.phase is not HeldPhase.UNREACHABLE:
            self.phase = followed(self.phase, phase, HELD_LIFE)

    def is_from_path(self, sender: SystemId) -> bool:
        """Return whether messages of a neighbor about the claim count."""
        return sender == self.row.via and not self.row.is_cut_off

    @property
    def is_ending(self) -> bool:
        """Whether no further task is bound to it."""
        return self.phase is not HeldPhase.OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTrouble:
    """The last failure to fetch the outputs of an attempt, and when the first one was."""

    since: Instant
    text: str


@dataclass(slots=True, kw_only=True)
class Delivery:
    """What a machine has delivered to this origin since it lost a task last (mutable)."""

    results: int = 0
    """How many tasks it may have beyond the first one."""
    grew_at: Instant
    """When that number was changed last, or the record was made."""
    growth_limit: int = 0
    """Up to which number it grows with time, at another site."""


@dataclass(slots=True, kw_only=True)
class Losses:
    """The losses of a neighbor, or the ends by the owner of a machine, that no result has made up for (mutable)."""

    latest_at: Instant
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Denials:
    """How often in a row a neighbor has denied a shape while it showed room for it."""

    latest_at: Instant
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSubmission:
    """What is known of a submission that has ended: the key under which its row was submitted, its members, its end."""

    key: ClientKey
    members: int
    ended_at: Instant
    workflow_size: int = 0
    is_notified: bool = False
    """Whether its user is, or was, notified of its end."""


@dataclass(slots=True)
class Retention:
    """Submissions that have ended, until they are forgotten; each is in one of the tables (mutable)."""

    ended: dict[TaskId, EndedSubmission] = field(default_factory=dict)
    """Those that are not due, in the order of their ends."""
    needed: dict[TaskId, EndedSubmission] = field(default_factory=dict)
    """Those that are due, and kept because of others that depend on them and have not ended."""
    due: dict[TaskId, EndedSubmission] = field(default_factory=dict)
    """Those that are forgotten next."""
    forgetting: dict[TaskId, tuple[int, int]] = field(default_factory=dict)
    """Large arrays whose rows are gone: the member that is forgotten next, and the last one."""
    dependents: Counter[TaskId] = field(default_factory=Counter)
    """How many dependencies on a submission those have that have not ended."""


@dataclass(slots=True)
class Origin:
    """Tasks of local users (mutable)."""

    keys: dict[ClientKey, TaskId] = field(default_factory=dict)
    submissions: dict[TaskId, Submission] = field(default_factory=dict)
    tasks: dict[TaskId, TaskRow] = field(default_factory=dict)
    """Tasks that were tried and have not ended."""
    retention: Retention = field(default_factory=Retention)
    notifications: dict[TaskId, NotificationRow] = field(default_factory=dict)
    """Ends of submissions of which their users were not notified yet."""
    awaited: dict[TaskId, dict[TaskId, None]] = field(default_factory=dict)
    """Tasks, or all tasks of a submission, for which submissions wait, with those submissions."""
    awaited_each: dict[TaskId, dict[TaskId, None]] = field(default_factory=dict)
    """Arrays for which submissions wait member by member, with those submissions."""
    awaited_changes: list[AwaitedChange] = field(default_factory=list)
    """What has happened to them in the present step; empty between steps."""
    shapes: dict[ShapeKey, Shape] = field(default_factory=dict)
    shapes_by_number: dict[int, Shape] = field(default_factory=dict)
    admitted: dict[int, None] = field(default_factory=dict)
    """Numbers of shapes in which members wait since others of their array ended, in this step; empty between steps."""
    waiting: int = 0
    """Waiting tasks of all shapes."""
    requests: dict[MessageId, Shape] = field(default_factory=dict)
    claims: dict[ClaimId, HeldClaim] = field(default_factory=dict)
    fetching: dict[AttemptId, AttemptStatus] = field(default_factory=dict)
    """Ended attempts whose outputs are being fetched."""
    fetch_legs: dict[AttemptId, Leg] = field(default_factory=dict)
    """The legs on which they are being fetched, or were last."""
    fetch_failures: dict[AttemptId, int] = field(default_factory=dict)
    fetch_troubles: dict[AttemptId, FetchTrouble] = field(default_factory=dict)
    """Why outputs are not home yet, and since when."""
    losses: dict[SystemId, Losses] = field(default_factory=dict)
    """Neighbors through which attempts were lost. Not stored."""
    given_back: dict[tuple[SystemId, bytes], Losses] = field(default_factory=dict)
    """Machines that gave tasks back since their last result, by the same key as `deliveries`. Not stored."""
    denials: dict[tuple[SystemId, ShapeKey], Denials] = field(default_factory=dict)
    """By the neighbor and the shape, the latest one last. Not stored."""
    deliveries: dict[tuple[SystemId, bytes], Delivery] = field(default_factory=dict)
    """Machines of other sites, and those that have lost tasks, by the neighbor toward them and their mark.

    They are not stored.
    """
    avoided: dict[tuple[SystemId, bytes], Avoided] = field(default_factory=dict)
    """Machines whose task streams failed, by the neighbor toward them and their mark.

    They are kept for a while after their pause, for the length of the next one.
    """
    shapes_made: int = 0
    unserved: dict[int, None] = field(default_factory=dict)
    """Numbers of shapes without a claim that were denied for lack of places (giving_way.py)."""
    next_in_turn: tuple[tuple[int, int], ...] | None = None
    """The number of the first of them of each user, in their order, with the usage of the user, as of `chosen_at`."""
    running_users: dict[str, None] = field(default_factory=dict)
    """Users with a bound task, as of `chosen_at`."""
    chosen_at: Instant | None = None
