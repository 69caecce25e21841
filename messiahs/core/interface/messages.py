"""Every message between scheduling modules (MESSIAHS 5.3, 6.2); `id` and `request` are the header's message ids.

The answer to a scheduling message goes to its sender. The messages of a claim (from `TaskStatus` on) name the claim,
and each hop forwards them along the path on which it was granted.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import LinkMessage
from messiahs.core.model.counted import Counted
from messiahs.core.model.demand import Demand
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import (
    AttemptId,
    ClaimId,
    MessageId,
    SearchId,
    SystemId,
    Ticket,
)
from messiahs.core.model.link_costs import NO_PROBE, UNKNOWN_COSTS, LinkCosts, Probe
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.routes import SpliceEnd
from messiahs.core.model.task_files import InputFile, Output
from messiahs.core.model.terminals import TerminalSize
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.core.model.usage import Containment, Usage
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
    """The current activity of an executing task, as shown to users."""

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
    """Why one module denied, with the reasons of the modules that it had asked in turn.

    `rule` and `why` (failed comparisons, values found) are for its local users only; others get the text of the rule.
    """

    module: SystemId
    code: DenyCode
    rule: str = ""
    text: str = ""
    why: str = ""
    hops: tuple["Reason", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedRequest:
    """Ask for up to `count` places for tasks of one shape: a TDV, and a requirement over SDVs (empty: none).

    Every answer refers to `id`. The search's budgets shrink from hop to hop; `remaining_ns` is a duration. With
    `answers` the tasks were promised to the sender of that `task_request`: hops that remember it first ask the neighbor
    from which it came. `trust` names the roots of the origin, and `avoids` the executors that it could not reach (by
    digests). `dialers` are the key fingerprints of the systems that may use the ticket of a claim beside the neighbor
    through which it is granted; empty in requests of earlier releases: the origin, by its name. `near` is a claim whose
    attempts have to move: modules on its path first search in its direction. `is_foreign`: it came from another site.
    `lease_ns` bounds the lease, by the time of the tasks, or until an executor elsewhere has delivered (0: no bound).
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
    dialers: tuple[bytes, ...] = ()
    near: ClaimId | None = None
    is_foreign: bool = False
    lease_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedAccept:
    """Grant a claim: `places` at its executor. Its `server` accepts the claim's bytes at `address` with `ticket`.

    The server is the executor (None), or the last hop that took its place; `trust` names its roots. A hop adds its own
    address and ticket (None: the sender is the server, or passes no bytes on), and one of a third site the `splice` to
    which it passes connections on. `window` is how many attempts may be bound at once, `lease_ns` how long the claim
    lives without renewal. More accepts or a deny follow for the rest. A border gives the `place` of a hidden machine.
    A claim that `is_foreign` was granted at another site.
    """

    request: MessageId
    claim: ClaimId
    address: str
    ticket: Ticket
    places: int
    window: int
    lease_ns: int
    asks_left: int
    server: SystemId | None = None
    hop_address: str | None = None
    hop_ticket: Ticket | None = None
    trust: Trust = UNKNOWN
    place: bytes = b""
    splice: SpliceEnd | None = None
    is_foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedDeny:
    """Close the rest of a request: there are no places, or no more, for these reasons."""

    request: MessageId
    reasons: tuple[Reason, ...]
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """Ask for up to `count` tasks whose TDVs match a predicate (empty: any); the sender is willing to run them.

    Waiting tasks are promised first, then running ones that the owner of their machine offers. It is forwarded, and its
    budgets shrink, as for a `sched_request`. `requester` is the name shown by the last border; `trust` names its roots.
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
    """Promise `count` tasks: a `sched_request` for them that names the request follows, along the same path.

    If fewer tasks are promised than requested, more accepts or one deny for the rest follow.
    """

    request: MessageId
    count: int
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDeny:
    """Close the rest of a request for tasks: none, or no more, match or may leave, for these reasons."""

    request: MessageId
    reasons: tuple[Reason, ...]
    asks_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStatus:
    """The status of one attempt.

    Once the process has ended, `exit_code` or `signal` is set; `cause` is a `Cause`, or a word of a newer release.
    `text` is for users, such as the owner's reason; it crosses borders if a rule provides it (`is_rule_text`).
    `assigned` are the counted things that it has, or had.
    """

    attempt: AttemptId
    state: TaskState
    substate: Substate | None = None
    exit_code: int | None = None
    signal: int | None = None
    cause: str = ""
    text: str = ""
    is_rule_text: bool = False
    ran_ns: int = 0
    usage: Usage | None = None
    containment: Containment | None = None
    outputs: tuple[Output, ...] = ()
    assigned: tuple[Counted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """Executor to origin: states of attempts, and the claim's current window.

    With `renewal` above 0 it renews the claim's lease; `attempts`, with those reported since the last renewal, then
    lists all attempts that the executor holds for the claim. Without attempts and renewal it only reports a new window.
    """

    claim: ClaimId
    attempts: tuple[AttemptStatus, ...]
    window: int
    renewal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatusAck:
    """Origin to executor: acknowledged final states, attempts that are not or no longer bound, the renewal answered.

    With a renewal, `moving` names all attempts of the claim that are to run elsewhere as far as the origin knows, and
    `lease_ns` is the lease that it counts (0: as before).
    """

    claim: ClaimId
    taken: tuple[AttemptId, ...] = ()
    unbound: tuple[AttemptId, ...] = ()
    renewal: int = 0
    moving: tuple[AttemptId, ...] = ()
    lease_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatusQuery:
    """Origin to executor: report these attempts."""

    claim: ClaimId
    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKill:
    """Origin to executor: end these attempts; with `is_move`, because there are other places (a `task_revoke`)."""

    claim: ClaimId
    attempts: tuple[AttemptId, ...]
    is_move: bool = False
    is_barring: bool = False
    """Whether the machine is to take no task of the same origin and shape for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRevoke:
    """Executor to origin: all attempts of the claim that are to run elsewhere, for this reason.

    They continue until a `task_kill` for a move arrives, or until the owner of their machine ends them. With `answers`
    they may also stay, and are offered to the sender of that `task_request`; `toward` is the parent or sibling from
    which it reached the forwarding module, for receivers that have this neighbor too.
    """

    claim: ClaimId
    attempts: tuple[AttemptId, ...]
    text: str = ""
    answers: SearchId | None = None
    toward: SystemId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEnd:
    """From the origin: no more tasks follow in this claim. From the executor: no more are accepted."""

    claim: ClaimId
    is_forgotten: bool = False
    """It answers a task_status_query: the executor, or a hop on the path, does not know the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatusQuery:
    """Ask a neighbor for its vector now; the answer comes through the update channel."""


class VectorKind(IntEnum):
    """The kind of sum in a status vector (MESSIAHS 7.2)."""

    FOR_PARENTS = 1
    FOR_CHILDREN = 2
    FOR_SIBLINGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusVector:
    """The only message of the update channel.

    `age_ns` is the age of the vector's oldest part, and the next vector is due within `period_ns`. To a primary parent,
    `hears` names the siblings from which the sender receives vectors itself. `waiting` counts the tasks waiting at the
    systems whose machines the vector sums up; 0 if that is not reported. With `makes_room` one of these may make room
    for a task that ranks above running ones, although nothing is free. With `lets_go` running tasks at one of them may
    move to a system that requests tasks. For a child of another primary parent, these three cover only the sender and
    the systems below it, without the child's own report. `missing` has links that are down, of the sender and of
    systems behind it. A parent reads in `counted` whether it counts the sender, a sibling whether the primary parent of
    both does; None: as in the topology. To a parent, `handovers` is the number of changes of the sender's primary
    parent, `settling` marks those whose machines are not in the vector, and `demand` what tasks lacked here or below.
    `probe` measures the link; `behind` are the costs from the sender to the nearest machines of the vector.
    """

    kind: VectorKind
    vector: Vector
    period_ns: int
    age_ns: int
    hears: tuple[SystemId, ...] = ()
    waiting: int = 0
    makes_room: bool = False
    lets_go: bool = False
    missing: tuple[MissingLink, ...] = ()
    counted: bool | None = None
    handovers: int = 0
    settling: tuple[int, ...] = ()
    demand: Demand = ()
    probe: Probe = NO_PROBE
    behind: LinkCosts = UNKNOWN_COSTS

    @property
    def missing_links(self) -> frozenset[tuple[SystemId, SystemId]]:
        """The ends of each missing link, without the texts, which may change often."""
        return frozenset((each.module, each.neighbor) for each in self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a task runs: its input comes in frames to a `terminal`, and is empty without `takes_stdin`.

    `outputs` must exist at its end, or are patterns (output_names.py). With a terminal it runs once at most.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[str, ...] = ()
    takes_stdin: bool = False
    cwd: str = ""
    terminal: TerminalSize | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTask:
    """One task as it is sent to its executor, with the attempt that was bound to the claim."""

    attempt: AttemptId
    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTransfer:
    """The task channel's message: tasks for a claim, with the receiver's ticket. The first one answers the grant.

    `supplier` names the system behind a hop that supplied the inputs; only the hop understands it. Empty: the sender.
    """

    claim: ClaimId
    ticket: Ticket
    tasks: tuple[BoundTask, ...]
    supplier: bytes = b""


ClaimMessage = TaskStatus | TaskStatusAck | TaskStatusQuery | TaskKill | TaskRevoke | ClaimEnd
SearchMessage = SchedRequest | SchedAccept | SchedDeny | TaskRequest | TaskAccept | TaskDeny
ControlMessage = Hello | SystemStatusQuery | SearchMessage | ClaimMessage | LinkMessage
