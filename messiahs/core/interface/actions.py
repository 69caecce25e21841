"""Everything that a module asks of its host. An action's outcome comes back as an event.

The host commits the `Store` and `Forget` of a batch first, and only then does the rest, in order (batches.py).
"""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo
from messiahs.core.interface.messages import Command, ControlMessage, Output, StatusVector, TaskTransfer
from messiahs.core.interface.rows import Row, RowKey
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class SendControl:
    """Send a message on the control channel of a neighbor: reliable and in order while the connection lasts."""

    to: SystemId
    message: ControlMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class SendVector:
    """Send a status vector; a newer one may replace it on its way."""

    to: SystemId
    message: StatusVector


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTasks:
    """Bring tasks to their executor through the task channel at `address`; trouble comes back as `TransferFailed`."""

    to: SystemId
    address: str
    message: TaskTransfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Keep a row, in place of an older one with its key."""

    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Drop a row; it need not exist."""

    key: RowKey


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAttempt:
    """Run a command as soon as fewer than `places` attempts of its claim run; a repeated start changes nothing.

    It is ended (`time_limit`) when it ran for `limit_ns`, and (`lease_expired`) when the claim's lease ran out.
    """

    attempt: AttemptId
    claim: ClaimId
    command: Command
    places: int
    limit_ns: int | None
    lease_until: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt:
    """End an attempt: SIGTERM, and SIGKILL after `grace_ns`; `AttemptEnded` follows, also if it never started.

    With `only_if_queued` an attempt that has started goes on, whether or not its start has been reported yet.
    """

    attempt: AttemptId
    grace_ns: int
    cause: Cause
    only_if_queued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendAttempt:
    """Stop everything of a running attempt where it is; its time limit stands still, its lease does not."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAttempt:
    """Let a suspended attempt go on; one that runs just does so."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureAttempts:
    """Say what memory running attempts use; `AttemptsMeasured` follows."""

    attempts: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLease:
    """Attempts of a claim may now run until `until`."""

    claim: ClaimId
    until: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardAttempt:
    """The origin has taken the result: what the attempt left behind is no longer needed."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOutputs:
    """Bring home what an ended attempt left behind; `OutputsHome` or `OutputsFailed` follows."""

    attempt: AttemptId
    executor: SystemId
    address: str
    claim: ClaimId
    ticket: Ticket
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndFetch:
    """Stop bringing home the outputs of an attempt, and remove what has come; no event follows."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class DropLink:
    """Refuse a connection with a neighbor; the text is for its administrator."""

    neighbor: SystemId
    text: str


class ReportCode(StrEnum):
    """What a neighbor did that it should not do."""

    NO_COMMON_VERSION = "no_common_version"
    NOT_ITS_NAME = "not_its_name"
    NOT_A_NEIGHBOR = "not_a_neighbor"
    WRONG_TICKET = "wrong_ticket"
    WRONG_VECTOR = "wrong_vector"
    NO_SUCH_CLAIM = "no_such_claim"
    OUT_OF_RANGE = "out_of_range"
    UNDECLARED_OUTPUT = "undeclared_output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A neighbor broke the protocol: its message was dropped and is counted under its name."""

    neighbor: SystemId
    code: ReportCode
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One line for the log: what was decided about a task (or about a search for several), and why."""

    what: str
    task: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer a local user: the id of what was submitted or cancelled, or (`problem`) why not."""

    answer_to: AnswerTo
    task: TaskId | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """A task of this origin reached its final state: whoever waits for it can be told."""

    task: TaskId


Effect = (
    SendControl
    | SendVector
    | SendTasks
    | StartAttempt
    | EndAttempt
    | SuspendAttempt
    | ResumeAttempt
    | MeasureAttempts
    | ExtendLease
    | DiscardAttempt
    | FetchOutputs
    | EndFetch
    | DropLink
    | Report
    | Decision
    | Answer
    | TaskEnded
)
Action = Store | Forget | Effect
