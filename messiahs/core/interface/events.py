"""Everything that can happen to a module (MESSIAHS 6): a message or a local fact. Timeouts are `expire`."""

from dataclasses import dataclass
from typing import NewType

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command, ControlMessage, InputFile, Output, StatusVector, TaskTransfer
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.descriptions import SDV, TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, SystemId, TaskId

AnswerTo = NewType("AnswerTo", int)
"""The host's number for a question of a local user; the core's `Answer` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlReceived:
    """A neighbor sent a control message."""

    sender: SystemId
    message: ControlMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReceived:
    """A neighbor sent a status vector through the update channel."""

    sender: SystemId
    message: StatusVector


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferReceived:
    """A task channel brought tasks; `sender` is the system that its certificate names."""

    sender: SystemId
    message: TaskTransfer


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFailed:
    """Tasks sent in this claim may or may not have arrived: the task channel broke, or they were refused on it."""

    claim: ClaimId
    text: str
    is_refused: bool = False
    is_untrusted: bool = False
    """No stream can be opened: one side does not trust the certificate of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUp:
    """A connection with a neighbor was made; nothing has been said on it yet."""

    neighbor: SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDown:
    """The connection with a neighbor ended, and everything in flight on it is lost."""

    neighbor: SystemId
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The probe measured the own machine (`free_slots`, `queue_length` and `utilization` are the core's own)."""

    sdv: SDV


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A local user submits tasks; the `Answer` is the id, the same one for the same `key`.

    `members` is 0 for a single task; `items` and `member_inputs` are empty or have one entry for each member. `waits`
    is False for a task that is rather denied than kept waiting.
    """

    answer_to: AnswerTo
    key: ClientKey
    tdv: TDV
    requirement: str
    command: Command
    members: int = 0
    items: tuple[str, ...] = ()
    member_inputs: tuple[tuple[InputFile, ...], ...] = ()
    name: str = ""
    retries: int = 0
    waits: bool = True
    deadline_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """A local user wants a task ended, or with member 0 all tasks of a submission."""

    answer_to: AnswerTo
    task: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequested:
    """A local user wants tasks of one submission that failed to run again; the host hands in all its stored rows.

    `member` is the only one that is meant; 0 means all of them.
    """

    answer_to: AnswerTo
    submission: SubmissionRow
    tried: tuple[TaskRow, ...]
    member: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRequested:
    """The administrator wants attempts off the own machine: with `kills` at once, else with the policy's grace.

    `text` is the reason that their origins are told. The `Answer` comes when the revocation is stored.
    """

    answer_to: AnswerTo
    attempts: tuple[AttemptId, ...]
    kills: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    """The executor back end spawned an attempt."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """An attempt is over, and nothing of it runs any more.

    Either it exited (`exit_code`), or a signal ended it (`signal`), or neither, and `cause` says why it never ran or
    was ended.
    """

    attempt: AttemptId
    exit_code: int | None = None
    signal: int | None = None
    cause: Cause = Cause.NONE
    text: str = ""
    ran_ns: int = 0
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsMeasured:
    """The back end measured what memory attempts use, in bytes; those that have ended meanwhile are not named."""

    memory: tuple[tuple[AttemptId, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsHome:
    """Everything that an ended attempt left behind is safe at the origin."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsFailed:
    """What an ended attempt left behind could not be fetched now.

    `is_gone` says that it never can be, `is_full` that there is no room for it at home.
    """

    attempt: AttemptId
    text: str
    is_gone: bool
    is_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsMoving:
    """Large inputs of a claim's tasks are on their way, from here or to here, and the tasks come after them."""

    claim: ClaimId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanged:
    """Commits fail (`has_space` False), or work again."""

    has_space: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged:
    """The administrator has put another policy in place of the running one."""

    policy: Policy


Event = (
    ControlReceived
    | VectorReceived
    | TransferReceived
    | TransferFailed
    | LinkUp
    | LinkDown
    | Measured
    | Submitted
    | CancelRequested
    | RetryRequested
    | RevokeRequested
    | AttemptStarted
    | AttemptEnded
    | AttemptsMeasured
    | OutputsHome
    | OutputsFailed
    | InputsMoving
    | StoreChanged
    | PolicyChanged
)
