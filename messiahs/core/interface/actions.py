"""All actions that a module requires of its host. The outcome of an action returns as an event.

The host commits the `Store` and `Forget` actions of a batch first, then performs the others in order (batches.py).
"""

from dataclasses import dataclass, field
from enum import StrEnum

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import Dependency
from messiahs.core.interface.events import AnswerTo
from messiahs.core.interface.messages import Command, ControlMessage, StatusVector, TaskTransfer
from messiahs.core.interface.notifications import NotificationRow
from messiahs.core.interface.rows import Row, RowKey
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.counted import Counted
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Address, Leg
from messiahs.core.model.task_files import Output
from messiahs.core.model.task_limits import TaskLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SendControl:
    """Send a message on the control channel of a neighbor: reliable and in order while the connection lasts."""

    to: SystemId
    message: ControlMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class SendVector:
    """Send a status vector; a newer one may replace it while it is queued."""

    to: SystemId
    message: StatusVector


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTasks:
    """Send tasks through the task channel of the next system at `address`; a failure returns as `TransferFailed`."""

    to: SystemId
    address: Address
    message: TaskTransfer


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseTransfer:
    """Answer the system with a key that tasks which it sent in a claim were dropped: `REFUSED`, `DENIED` or `BEYOND`.

    The answer goes to the stream that brought them, and is lost if that has ended.
    """

    to: SystemId
    key: bytes
    claim: ClaimId
    text: str
    kind: TransferFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Store a row, in place of an older one with its key."""

    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Delete a row; it need not exist."""

    key: RowKey


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAttempt:
    """Run a command as soon as fewer than `places` attempts of its claim run; a repeated start has no effect.

    It is ended with `time_limit` after it has run for `limit_ns`, and with `lease_expired` when the claim's lease ends.
    Its other `limits` hold as far as the back end can enforce them. It learns which counted things are `assigned` to
    it. With the hash of an `image`, which is one of its inputs, it runs in that image, or not at all; likewise with
    that of an `environment`, the name of a local `account`, and with a `network` that it may reach at most.
    """

    attempt: AttemptId
    claim: ClaimId
    command: Command
    places: int
    limit_ns: int | None
    lease_until: Instant
    limits: TaskLimits = field(default_factory=TaskLimits)
    assigned: tuple[Counted, ...] = ()
    image: str = ""
    account: str = ""
    network: str = ""
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt:
    """End an attempt: SIGTERM, and SIGKILL after `grace_ns`; `AttemptEnded` follows, also if it never started.

    With `only_if_queued` an attempt that has started continues, whether or not its start has been reported yet.
    """

    attempt: AttemptId
    grace_ns: int
    cause: Cause
    only_if_queued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendAttempt:
    """Stop all processes of a running attempt; its time limit is paused, its lease is not."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAttempt:
    """Continue a suspended attempt; without effect on one that runs."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureAttempts:
    """Measure the memory that running attempts use; `AttemptsMeasured` follows."""

    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLease:
    """Let attempts of a claim run until `until`."""

    claim: ClaimId
    until: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardAttempt:
    """Delete the files of an attempt: its origin has the result."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOutputs:
    """Fetch the outputs of an ended attempt on a leg of its claim; `OutputsHome` or `OutputsFailed` follows.

    A leg to the own system means the own machine.
    """

    attempt: AttemptId
    claim: ClaimId
    leg: Leg
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndFetch:
    """Stop fetching the outputs of an attempt, and delete what has arrived; no event follows."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class DropLink:
    """Refuse a connection with a neighbor; the text is for its administrator."""

    neighbor: SystemId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutOff:
    """End every connection and stream with a neighbor, in both directions, and refuse new ones until `Readmit`."""

    neighbor: SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmit:
    """Allow connections and streams with a neighbor again; a neighbor that is not shut off stays as it is."""

    neighbor: SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Keep a link with a neighbor from now on: dial it at `address`, or accept that it dials if that is empty.

    Repeated at every start for neighbors that are not in the topology file; with the same address it has no effect.
    """

    neighbor: Neighbor
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlink:
    """End the connection with a system, and neither dial nor accept it until another `Link`."""

    neighbor: SystemId
    text: str = ""


class ReportCode(StrEnum):
    """The kind of a protocol violation by a neighbor."""

    NO_COMMON_VERSION = "no_common_version"
    NOT_ITS_NAME = "not_its_name"
    NOT_A_NEIGHBOR = "not_a_neighbor"
    NO_LINK = "no_link"
    """No violation: what a neighbor sent over a link that has ended meanwhile, or a vector that overtook its hello."""
    NEW_EPOCH = "new_epoch"
    WRONG_TICKET = "wrong_ticket"
    WRONG_VECTOR = "wrong_vector"
    NO_SUCH_CLAIM = "no_such_claim"
    OUT_OF_RANGE = "out_of_range"
    UNDECLARED_OUTPUT = "undeclared_output"
    OVERSTATED = "overstated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A neighbor violated the protocol, or its link has ended: its message is dropped and counted under its name."""

    neighbor: SystemId
    code: ReportCode
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One line of the log: a decision about a task (or about a search for several), and its reason."""

    what: str
    task: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer a local user: the id of the task submitted or cancelled, or in `problem` the reason of a refusal.

    `count` is the number of tasks that a cancel ends, or that a retry runs again; with others nothing is to be done.
    To a workflow, it is the number of its submissions, of which `task` is the first, or the number, from 1, of the one
    that is refused.
    """

    answer_to: AnswerTo
    task: TaskId | None = None
    problem: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """A task of this origin has reached its final state: clients that wait for it can be notified."""

    task: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Notify a user of the end of a submission; the outcome returns as `Notified`, and a restart repeats the action."""

    notice: NotificationRow


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOutputs:
    """Delete the outputs of all tasks of a submission, which is forgotten; they may be gone, and no event follows.

    After a crash the host deletes what is left by itself: outputs of submissions without a row.
    """

    submission: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOutputs:
    """Store outputs of ended tasks as inputs of a submission that waits for them; `OutputsTaken` follows.

    `after` are those of its dependencies with outputs. A restart repeats the action until that event was handled.
    """

    submission: TaskId
    after: tuple[Dependency, ...]


Effect = (
    SendControl
    | SendVector
    | SendTasks
    | RefuseTransfer
    | StartAttempt
    | EndAttempt
    | SuspendAttempt
    | ResumeAttempt
    | MeasureAttempts
    | ExtendLease
    | DiscardAttempt
    | FetchOutputs
    | TakeOutputs
    | EndFetch
    | DropLink
    | ShutOff
    | Readmit
    | Link
    | Unlink
    | Report
    | Decision
    | Answer
    | TaskEnded
    | DropOutputs
    | Notify
)
Action = Store | Forget | Effect
