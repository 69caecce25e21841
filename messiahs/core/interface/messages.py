"""Every message between scheduling modules (MESSIAHS 5.3, 6.2); `id` and `request` are the header's message ids.

The scheduling messages are answered to whoever sent them. The messages of a claim (from `TaskStatus` on) name it,
and each hop passes them along the path on which the claim was granted.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, MessageId, SearchId, SystemId, Ticket
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.core.vectors.vectors import Vector


class TaskState(StrEnum):
    """The six states that a `task_status` reports (MESSIAHS 5.3.2)."""

    EXECUTING = "executing"
    FINISHED = "finished"
    ABORTED = "aborted"
    KILLED = "killed"
    REVOKED = "revoked"
    DENIED = "denied"


class Substate(StrEnum):
    """What an executing task does at the moment, for people."""

    QUEUED = "queued"
    STAGING = "staging"
    RUNNING = "running"
    SUSPENDED = "suspended"
    VACATING = "vacating"


class DenyCode(StrEnum):
    """Why a request was denied."""

    REFUSED_BY_POLICY = "refused_by_policy"
    LIMIT_REACHED = "limit_reached"
    NO_CLASS = "no_class"
    REQUIREMENT_UNMET = "requirement_unmet"
    NO_CAPACITY = "no_capacity"
    HOP_LIMIT = "hop_limit"
    TIMED_OUT = "timed_out"
    ALREADY_ASKED = "already_asked"
    LOST = "lost"
    BAD_PREDICATE = "bad_predicate"
    UNREACHABLE = "unreachable"
    DRAINING = "draining"
    NO_SPACE = "no_space"
    NO_TASK = "no_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why one module denied, with the reasons of those that it had asked in turn.

    `rule` and `why`, the comparisons that were against it with the values found, are for its own people: what others
    see is the text that the rule names for them.
    """

    module: SystemId
    code: DenyCode
    rule: str = ""
    text: str = ""
    why: str = ""
    hops: tuple["Reason", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdsGiven:
    """How many submissions and claims a module has numbered; numbers that were skipped count."""

    submissions: int = 0
    claims: int = 0

    def exceeds(self, other: "IdsGiven") -> bool:
        """Say whether this counts ids that the other one does not know of."""
        return self.submissions > other.submissions or self.claims > other.claims

    def joined(self, other: "IdsGiven") -> "IdsGiven":
        """Count what either of them counts."""
        submissions, claims = max(self.submissions, other.submissions), max(self.claims, other.claims)
        return IdsGiven(submissions=submissions, claims=claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Opens every connection: what wire versions the sender speaks, and in which epoch it gives out ids.

    It has given out so many; it remembers that the receiver had given out `heard` in `heard_epoch`. Said again, at most
    every 10 s, when more ids were given out.
    """

    system: SystemId
    epoch: Epoch
    wire_versions: tuple[int, ...]
    release: str
    given: IdsGiven = IdsGiven()
    heard_epoch: Epoch | None = None
    heard: IdsGiven = IdsGiven()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedRequest:
    """Ask for up to `count` places for tasks of one shape: a TDV, and a requirement over SDVs (empty: none).

    Every answer names `id`. The search's budgets shrink from hop to hop; `remaining_ns` is a duration. With `answers`
    the tasks were promised to the sender of that `task_request`: who remembers it first asks the neighbor that brought
    it. `trust` names the roots of the origin, and `avoids` the executors that it could not reach (by digests).
    """

    id: MessageId
    search: SearchId
    origin: SystemId
    tdv: TDV
    requirement: str
    count: int
    hops_left: int
    asks_left: int
    remaining_ns: int
    answers: SearchId | None = None
    trust: Trust = UNKNOWN
    avoids: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedAccept:
    """Grant a claim: `places` at its executor, reached for tasks at `address` with `ticket`.

    `window` is how many attempts may be bound at once, and `lease_ns` how long the claim lives without renewal. If
    fewer places are granted than were asked for, more accepts or one deny for the rest follow.
    """

    request: MessageId
    claim: ClaimId
    address: str
    ticket: Ticket
    places: int
    window: int
    lease_ns: int
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedDeny:
    """Close what is left of a request: no (more) places, and why."""

    request: MessageId
    reasons: tuple[Reason, ...]
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """Ask for up to `count` tasks whose TDVs match a predicate (empty: any); the sender is willing to run them.

    Those that wait go first, then those that run and that their machine's owner lets go. It is passed on and its
    budgets shrink as those of a `sched_request`. `requester` is named as the last border shows it, `trust` names its
    roots.
    """

    id: MessageId
    search: SearchId
    requester: SystemId
    wanting: str
    count: int
    hops_left: int
    asks_left: int
    remaining_ns: int
    trust: Trust = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAccept:
    """Promise `count` tasks: a `sched_request` for them that names the request follows, along the same way.

    If fewer tasks are promised than were asked for, more accepts or one deny for the rest follow.
    """

    request: MessageId
    count: int
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDeny:
    """Close what is left of a request for tasks: none (more) that match, or none that may go, and why."""

    request: MessageId
    reasons: tuple[Reason, ...]
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A file that an attempt left behind at its executor: `stdout`, `stderr`, or `work/PATH` for a declared output."""

    name: str
    size_bytes: int
    is_executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStatus:
    """What became of one attempt.

    `exit_code` and `signal` are set when the process ended by itself or by a signal; `cause` is a `Cause`, or a word of
    a newer release. `text` is for people; while an attempt is suspended or vacating, it is the reason that the owner of
    the machine gives.
    """

    attempt: AttemptId
    state: TaskState
    substate: Substate | None = None
    exit_code: int | None = None
    signal: int | None = None
    cause: str = ""
    text: str = ""
    ran_ns: int = 0
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """Executor to origin: states of attempts, and the claim's current window.

    With `renewal` above 0 it renews the claim's lease, and with what was said since the last renewal `attempts` lists
    all that the executor holds of the claim.
    Without attempts and renewal it says only that the window has changed.
    """

    claim: ClaimId
    attempts: tuple[AttemptStatus, ...]
    window: int
    renewal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatusAck:
    """Origin to executor: final states taken, attempts that are not bound (any more), the renewal answered.

    With a renewal `moving` names all attempts of the claim of which the origin was told that they are to run elsewhere.
    """

    claim: ClaimId
    taken: tuple[AttemptId, ...] = ()
    unbound: tuple[AttemptId, ...] = ()
    renewal: int = 0
    moving: tuple[AttemptId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatusQuery:
    """Origin to executor: say what became of these attempts."""

    claim: ClaimId
    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKill:
    """Origin to executor: end these attempts.

    With `is_move` it answers a `task_revoke`: there are other places for them.
    """

    claim: ClaimId
    attempts: tuple[AttemptId, ...]
    is_move: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRevoke:
    """Executor to origin: these are all attempts of the claim that are to run elsewhere, for this reason.

    They run on until a `task_kill` for a move comes, or their machine's owner waits no longer. With `answers` they may
    as well stay, and are offered to the sender of that `task_request`; `toward` is the parent or sibling from which it
    came to whoever passes this on, for those whose neighbor that is too.
    """

    claim: ClaimId
    attempts: tuple[AttemptId, ...]
    text: str = ""
    answers: SearchId | None = None
    toward: SystemId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEnd:
    """From the origin: no further task comes in this claim. From the executor: none is taken any more.

    With `is_forgotten` it answers a task_status_query: the executor, or a hop on the way, does not know the claim.
    """

    claim: ClaimId
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatusQuery:
    """Ask a neighbor for its vector now; the answer comes through the update channel."""


class VectorKind(IntEnum):
    """Which of the three sums a status vector is (MESSIAHS 7.2)."""

    FOR_PARENTS = 1
    FOR_CHILDREN = 2
    FOR_SIBLINGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusVector:
    """The only message of the update channel.

    `age_ns` is the age of the vector's oldest part, `period_ns` when the next one is due at the latest. `hears`
    names, to a parent, the siblings from which the sender gets vectors itself. `waiting` counts the tasks that wait
    at the systems whose machines the vector sums up; 0 if that is not told. With `makes_room` one of them may make room
    for a task that comes before those that run: it is worth asking though nothing is free. With `lets_go` some that run
    at one of them may go to whoever asks for tasks. A child of another primary parent is told these three of the
    sender and what is below it alone, without what the child has said itself.
    """

    kind: VectorKind
    vector: Vector
    period_ns: int
    age_ns: int
    hears: tuple[SystemId, ...] = ()
    waiting: int = 0
    makes_room: bool = False
    lets_go: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that a task finds at `name`, a relative path in its working directory; its hash says what is in it."""

    name: str
    sha256: bytes
    size_bytes: int
    is_executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a task runs: argument vector, and environment variables beside the standard ones.

    `outputs` are relative paths of files and folders in its working directory that must be there when it has ended.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTask:
    """One task on its way to its executor, under the attempt that was bound to the claim."""

    attempt: AttemptId
    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTransfer:
    """The task channel's message: tasks for a claim, with its ticket. The first one answers the grant."""

    claim: ClaimId
    ticket: Ticket
    tasks: tuple[BoundTask, ...]


ClaimMessage = TaskStatus | TaskStatusAck | TaskStatusQuery | TaskKill | TaskRevoke | ClaimEnd
ControlMessage = (
    Hello
    | SchedRequest
    | SchedAccept
    | SchedDeny
    | TaskRequest
    | TaskAccept
    | TaskDeny
    | SystemStatusQuery
    | ClaimMessage
)
