"""Everything that can happen to a module (MESSIAHS 6): a message or a local fact. Timeouts are `expire`."""

from dataclasses import dataclass
from typing import NewType

from messiahs.core.interface.attempts import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.dependencies import Predecessor, WantedOutput
from messiahs.core.interface.lending import Lent
from messiahs.core.interface.messages import Command, ControlMessage, StatusVector, TaskTransfer
from messiahs.core.interface.notifications import Notification, Notified
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.spliced_bytes import BytesSpliced, FilesSent, InputsMoving
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.interface.transfer_answers import StraightFailed, TransferFailure
from messiahs.core.model.counted import Counted
from messiahs.core.model.descriptions import SDV, TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_files import InputFile
from messiahs.core.model.trust import OtherRoots, Trust

AnswerTo = NewType("AnswerTo", int)
"""The host's number for a request of a local user; the core's `Answer` refers to it."""


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
    """Tasks arrived on a task channel; `sender` is the system named by its certificate.

    `key` is the fingerprint of its public key; empty in recordings of earlier releases.
    """

    sender: SystemId
    message: TaskTransfer
    key: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFailed:
    """Tasks sent in this claim to `to` may or may not have arrived: its task channel failed, or it dropped them.

    If `to` is None, they were sent on the present leg of the claim. `public` is what other systems may read of the
    text, without addresses and files of this host; if it is empty, all of the text.
    """

    claim: ClaimId
    text: str
    public: str = ""
    kind: TransferFailure = TransferFailure.BROKEN
    to: SystemId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUp:
    """A connection with a neighbor was opened; no message has been sent on it yet."""

    neighbor: SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDown:
    """The connection with a neighbor ended; all messages in transit on it are lost."""

    neighbor: SystemId
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRefused:
    """There is no connection with a neighbor; `text`, which may quote it, says why. Repeated when that changes."""

    neighbor: SystemId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The probe measured the own machine (`free_slots`, `queue_length` and `utilization` are computed by the core)."""

    sdv: SDV
    counted: tuple[Counted, ...] = ()
    """The counted things of the machine; the core adds their attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A local user submits tasks; the `Answer` has their id, which is the same for the same `key`.

    `members` is 0 for a single task; `items` and `member_inputs` are empty or have one entry for each member. `waits`
    is False for tasks that are to be denied rather than kept waiting. They are placed once each condition of `after`
    was met, and at most `at_once` of them (0: all) at the same time.
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
    after: tuple[Predecessor, ...] = ()
    at_once: int = 0
    notification: Notification | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSubmitted:
    """A local user submits several submissions together: all are stored, in this order, or none is.

    The `Answer` has the id of the first one; the numbers of the others follow. `within` has for each its dependencies
    on earlier ones: their places, from 0, each with a `When`. `outputs`, if any are taken, has for each those of
    earlier ones, by their places, for which it waits with `OK`. Each is stored under the `part_key` of `key`, whatever
    its own is. The same key returns the same ids, unless it is of more or fewer submissions, or some are forgotten.
    """

    answer_to: AnswerTo
    key: ClientKey
    submissions: tuple[Submitted, ...]
    within: tuple[tuple[tuple[int, str], ...], ...]
    outputs: tuple[tuple[tuple[int, WantedOutput], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """A local user cancels a task, or all of a submission (member 0), or `members` of it, first and last."""

    answer_to: AnswerTo
    task: TaskId
    members: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequested:
    """A local user requests another run of the failed tasks of one submission from `members[0]` to `members[1]`.

    `tried` has all stored rows of these (0: a single task), and all of a submission whose row has no `endings`. With
    `is_of_killed`, those that exited by themselves, or were denied, are left alone. `after` are the dependencies that
    are not met. `inputs` replace those with the same names, for all later attempts of the submission: those
    that all members share, or that `members` have for themselves.
    """

    answer_to: AnswerTo
    submission: SubmissionRow
    members: tuple[int, int]
    tried: tuple[TaskRow, ...]
    is_of_killed: bool = False
    after: tuple[Predecessor, ...] = ()
    inputs: tuple[InputFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequested:
    """Submissions are to be forgotten now, as far as they have ended and nothing depends on them that has not."""

    answer_to: AnswerTo
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandRequested:
    """A user or the administrator acts on a task of this origin, or on all tasks of a submission, which `task` names.

    `text` is the reason for its user. The `Answer` follows when the act is stored, or has its problem.
    """

    answer_to: AnswerTo
    task: TaskId
    act: HandAct
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRequested:
    """The administrator removes attempts from the own machine: at once with `kills`, else with the policy's grace.

    `text` is the reason sent to their origins. The `Answer` follows when the revocation is stored.
    """

    answer_to: AnswerTo
    attempts: tuple[AttemptId, ...]
    kills: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutOffRequested:
    """The administrator shuts a neighbor off, or readmits it if `is_off` is False.

    `text` is the reason for the people of this site. The `Answer` follows when the change is stored.
    """

    answer_to: AnswerTo
    neighbor: SystemId
    is_off: bool = True
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAdded:
    """A neighbor is added, or gets other relations; `address` is where this module dials it (empty: it dials).

    One that is brought back as the topology file lists it (`is_by_file`) changes with that file.
    """

    answer_to: AnswerTo
    neighbor: Neighbor
    address: str = ""
    text: str = ""
    is_by_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRemoved:
    """A neighbor is removed: when its claims have ended, or with `is_forced` at once.

    The `Answer` follows when the removal is stored; the link may last longer.
    """

    answer_to: AnswerTo
    system: SystemId
    is_forced: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveRequested:
    """This module leaves a parent, as if that were removed; `text` is the reason, which the parent gets."""

    answer_to: AnswerTo
    parent: SystemId
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequested:
    """The module is to take no new work, or to take it again if `is_on` is False.

    What still runs after `deadline_ns` is revoked (None: never). `text` is the reason, which systems that ask get. With
    `begins`, all this is announced for that instant, from which the deadline counts.
    """

    answer_to: AnswerTo
    is_on: bool = True
    deadline_ns: int | None = None
    text: str = ""
    begins: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LendRequested:
    """The owner turns the dial, until `until` if that is set; `by` is the account of the host that asks."""

    answer_to: AnswerTo
    lent: Lent
    until: Instant | None = None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryParentChanged:
    """Another parent is to count this system; `text` is the reason, for the people of this site.

    The `Answer` follows when the handover is stored; it ends when the present primary parent has answered. One that the
    topology file asks for (`is_by_file`) leaves relations that the file may change again.
    """

    answer_to: AnswerTo
    parent: SystemId
    text: str = ""
    is_by_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsApplied:
    """The topology file has changed: its neighbors of this module, each with the address where this module dials it."""

    answer_to: AnswerTo
    neighbors: tuple[tuple[Neighbor, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanged:
    """Commits fail (`has_space` False), or work again."""

    has_space: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RootsChanged:
    """The certificate of this module, or a file of roots, has changed; the fields are those of `Identity`, all anew."""

    key: bytes
    trust: Trust
    apart: tuple[SystemId, ...] = ()
    apart_roots: tuple[tuple[bytes, ...], ...] = ()
    other_sites: tuple[OtherRoots, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged:
    """The administrator has replaced the running policy."""

    policy: Policy


Request = Submitted | WorkflowSubmitted | CancelRequested | RetryRequested | CleanRequested | HandRequested
Order = (
    RevokeRequested
    | ShutOffRequested
    | MemberAdded
    | MemberRemoved
    | LeaveRequested
    | DrainRequested
    | LendRequested
    | SettingsApplied
    | PrimaryParentChanged
    | PolicyChanged
    | RootsChanged
)
"""What the administrator of a module orders."""
Event = (
    ControlReceived
    | VectorReceived
    | TransferReceived
    | TransferFailed
    | StraightFailed
    | LinkUp
    | LinkDown
    | LinkRefused
    | Measured
    | Request
    | AttemptStarted
    | AttemptEnded
    | AttemptsMeasured
    | OutputsHome
    | OutputsFailed
    | OutputsTaken
    | InputsMoving
    | BytesSpliced
    | FilesSent
    | StoreChanged
    | Notified
    | Order
)
