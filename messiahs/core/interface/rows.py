"""Rows: the state of a module that survives a restart, stored before any action that depends on it is performed.

The core's tables hold these rows themselves; all other state is rebuilt after a restart.
"""

from dataclasses import dataclass
from enum import IntEnum

from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.by_hand import HoldRun
from messiahs.core.interface.dependencies import Dependency
from messiahs.core.interface.ended_members import EndedMembers, UntriedEnd
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.ledger_rows import ClaimBookRow, ConsumerRow, NeighborAccountRow, UsageRow
from messiahs.core.interface.lending import LendRow
from messiahs.core.interface.membership_rows import DrainRow, HandoverRow, MemberRow, RemovedRow, ShutOffRow
from messiahs.core.interface.messages import AttemptStatus, Command, Reason, Substate, TaskState
from messiahs.core.interface.notifications import Notification, NotificationRow
from messiahs.core.interface.retention_rows import ForgettingRow
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.counted import Counted, Uses
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import (
    AttemptId,
    ClaimId,
    ClientKey,
    EndedEpoch,
    Epoch,
    IdsGiven,
    LostNumbers,
    SystemId,
    TaskId,
    Ticket,
)
from messiahs.core.model.instants import Instant
from messiahs.core.model.places import Machine, machine_of
from messiahs.core.model.routes import Address, Leg, Route
from messiahs.core.model.task_files import InputFile


class RowKind(IntEnum):
    """The tables; the numbers are stored and must not change."""

    COUNTERS = 1
    SUBMISSION = 2
    TASK = 3
    HELD_CLAIM = 4
    GRANTED_CLAIM = 5
    PASSED_CLAIM = 6
    ATTEMPT = 7
    REMEMBERED = 8
    HIDDEN_SUBMISSION = 9
    SHUT_OFF = 10
    OPEN_AUDIT = 11
    AUDIT = 12
    MEMBER = 13
    REMOVED = 14
    DRAIN = 15
    HANDOVER = 16
    OWN_BOOK = 17
    OTHERS_BOOK = 18
    USAGE = 19
    CONSUMER = 20
    NEIGHBOR_ACCOUNT = 21
    FORGETTING = 22
    NOTIFICATION = 23
    NOTIFIED = 24
    LENDING = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersRow:
    """How many submissions and claims were numbered, in the present epoch (None: the first), and `earlier` epochs."""

    submissions: int = 0
    claims: int = 0
    epoch: Epoch | None = None
    earlier: tuple[EndedEpoch, ...] = ()
    renewed_at: Instant | None = None
    """When an older copy of the state was last detected."""
    former: tuple[Epoch, ...] = ()
    """All earlier epochs, the latest last; rows of earlier releases list those of `earlier` only."""
    audited: int = 0
    """How many rows of the audit log were numbered."""
    lost: tuple[LostNumbers, ...] = ()
    """Numbers that were skipped; those that an earlier release skipped are not in it."""
    kept_since: Instant | None = None
    """No task is forgotten before the retention time has passed since then; None in rows of earlier releases."""

    @property
    def given(self) -> IdsGiven:
        """The number of issued ids."""
        return IdsGiven(submissions=self.submissions, claims=self.claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRow:
    """The tasks that a user submitted in one call; `members` is 0 for a single task, else they are 1 to `members`.

    A member without a `TaskRow` was never tried: it waits, or has ended with one of the runs in `untried`. `tdv`,
    `command` and `name` are templates (array_members.py) that each member fills with its entry of `items`, or its
    number; `member_inputs` are inputs of single members. Its workflow has `workflow_size` submissions (0: it has none).
    """

    id: TaskId
    key: ClientKey
    tdv: TDV
    requirement: str
    command: Command
    members: int
    submitted_at: Instant
    items: tuple[str, ...] = ()
    member_inputs: tuple[tuple[InputFile, ...], ...] = ()
    name: str = ""
    retries: int = 0
    waits: bool = True
    deadline_at: Instant | None = None
    ended_at: Instant | None = None
    """When its last member ended."""
    untried: tuple[UntriedEnd, ...] = ()
    endings: tuple[EndedMembers, ...] = ()
    """The final counts, once the last member has ended; empty in rows of earlier releases."""
    holds: tuple[HoldRun, ...] = ()
    """Members that were put on hold and not released; those that run or have ended may be among them."""
    after: tuple[Dependency, ...] = ()
    """What has to have happened to other tasks before its own are placed."""
    taken: int = 0
    """How many of the inputs, the last ones, were outputs of the tasks that it waited for; 0: none is there yet."""
    at_once: int = 0
    """The most members that may be placed or run at once; 0: all."""
    workflow_size: int = 0
    notification: Notification | None = None
    """How its user learns of its end; None: only by asking."""

    @property
    def user(self) -> str:
        """The user who has submitted it."""
        return str(self.tdv.description().get("user", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task at its origin; `claim` is the binding of its current attempt.

    `attempt` counts from 1; 0 means never bound. A row with a final `state` never changes again. `assigned` are the
    counted things of the present attempt, once it has begun.
    """

    id: TaskId
    state: TaskState = TaskState.EXECUTING
    substate: Substate | None = Substate.QUEUED
    attempt: int = 0
    claim: ClaimId | None = None
    bound_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    executed_on: str = ""
    """The system of the present or last attempt; empty while the task waits for a place."""
    assigned: tuple[Counted, ...] = ()
    failures: int = 0
    is_cancelled: bool = False
    """It has ended for its user, though its attempt may still run: cancelled, or overdue if there is a `result`."""
    result: AttemptStatus | None = None
    reasons: tuple[Reason, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    suspended_at: Instant | None = None
    """When the present suspension of its attempt began; None while it is not suspended."""
    suspended_ns: int = 0
    """Total length of earlier suspensions of the present attempt."""
    is_wanted_again: bool = False
    """It is cancelled (or was overdue), and is to be tried again as soon as its last attempt has ended."""
    is_revoked: bool = False
    """It is cancelled and wanted again because its attempt was revoked by hand: if that ends by itself, it counts."""
    is_barred: bool = False
    """Its revoked attempt was moved: the machine is to take no task of its shape for a while."""
    search: SearchRecord | None = None
    """The search that found the place of the present or last attempt, or the last one of a task that was denied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaimRow:
    """A claim at its origin; `via` is the neighbor through which it was granted (or the module itself).

    `address` and `ticket` are those of the server.
    """

    id: ClaimId
    via: SystemId
    address: Address
    ticket: Ticket
    lease_ns: int
    tdv: TDV
    requirement: str
    answered_at: Instant
    is_answer: bool = False
    """Whether it was granted for tasks promised to a task_request: it leaves the tasks that the policy keeps here."""
    places: int = 1
    """The number of places granted."""
    server: SystemId | None = None
    """The system that accepts the claim's bytes at `address`; None: the executor."""
    is_cut_off: bool = False
    """Whether `via` has become another system, whose messages about the claim do not count."""
    path: Leg | None = None
    """The leg to `via`; None if that passes no bytes on, or is the server."""
    place: bytes = b""
    """The place of its machine behind the border of another site; empty if the claim has the executor's own name."""
    is_foreign: bool = False
    """Whether it was granted at another site."""
    search: SearchRecord | None = None
    """The search that found it."""

    @property
    def machine(self) -> Machine:
        """The machine on which its tasks run."""
        return machine_of(self.id, self.place)

    @property
    def route(self) -> Route:
        """The legs that the claim's bytes may take."""
        straight = Leg(system=self.server or self.id.executor, address=self.address, ticket=self.ticket)
        return Route(straight=straight, path=self.path or straight)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedClaimRow:
    """A claim at the executor that granted it; its lease expires at `lease_until` unless a renewal is answered."""

    id: ClaimId
    origin: SystemId
    via: SystemId
    ticket: Ticket
    tdv: TDV
    places: int
    lease_ns: int
    lease_until: Instant
    is_ending: bool = False
    """Whether it accepts no more tasks, and each place is free for others as soon as its attempt has ended."""
    is_answer: bool = False
    """Whether it was granted to a search that answers a task_request: its tasks are not offered again."""
    slots: int = 0
    """Slots granted to each task; 0: as many as it requests."""
    dialers: tuple[bytes, ...] = ()
    """The key fingerprints to which the ticket is bound, beside the neighbor `via`; empty: to the origin, by name."""
    is_anchored: bool = False
    """Whether `via` belongs to a third site, through which the origin's side opens its own connections."""
    is_foreign: bool = False
    """Whether the origin belongs to another site (core/search/foreign_tasks.py)."""
    uses: Uses = ()
    """Counted things of this machine that each place takes; none in rows of earlier releases."""
    account: str = ""
    network: str = ""
    """The account and the network of its tasks by the policy; empty, as in earlier releases: those that are usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedClaimRow:
    """A claim that was granted through this module, with the next hop of its messages in both directions.

    A row of an earlier release has no route, and bytes of its claim do not pass through here.
    """

    id: ClaimId
    toward_origin: SystemId
    toward_executor: SystemId
    tdv: TDV
    slots: int
    """The slots of all its places together, as granted."""
    origin: SystemId | None = None
    ticket: Ticket | None = None
    """The ticket that this module made for the claim."""
    dialers: tuple[bytes, ...] = ()
    """Key fingerprints to which the ticket is bound, beside the neighbor toward the origin; empty: origin's name."""
    route: Route | None = None
    shown: ClaimId | None = None
    """The id that the side of the origin sees, if this module hides the executor from it."""
    hides_origin: bool = False
    """Whether this module hides the origin from the executor, which sees other ids of the tasks."""
    is_spliced: bool = False
    """Whether this module belongs to a third site, and passes only connections on that it cannot read."""
    is_anchored: bool = False
    """Whether `toward_origin` belongs to a third site, through which the origin's side opens its own connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenSubmissionRow:
    """A submission whose origin this module hides: the id that executors see, with the members unchanged.

    It is stored before the first of its tasks is passed on, and as long as there is one of the `claims` in which its
    tasks were brought.
    """

    id: TaskId
    shown: TaskId
    claims: tuple[ClaimId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """An attempt at its executor, from its acceptance until its origin has acknowledged the result.

    A final `status` is repeated until it is acknowledged, and never changes. `id` is the executor's own, and differs
    from that of the origin if another claim had the same id here (core/executor/local_ids.py). While it is suspended,
    `is_withheld` says that only the owner's dial holds it (`lend off`): the policy would let it run.
    """

    id: AttemptId
    claim: ClaimId
    command: Command
    status: AttemptStatus
    is_withheld: bool = False

    @property
    def named(self) -> AttemptId:
        """The id by which its origin knows it."""
        return self.status.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedRow:
    """The ids issued by a neighbor: in which epoch, and the least number of them."""

    system: SystemId
    epoch: Epoch
    given: IdsGiven


Row = (
    CountersRow
    | SubmissionRow
    | TaskRow
    | HeldClaimRow
    | GrantedClaimRow
    | PassedClaimRow
    | HiddenSubmissionRow
    | AttemptRow
    | RememberedRow
    | ShutOffRow
    | AuditRow
    | MemberRow
    | RemovedRow
    | DrainRow
    | HandoverRow
    | LendRow
    | ClaimBookRow
    | UsageRow
    | ConsumerRow
    | NeighborAccountRow
    | ForgettingRow
    | NotificationRow
)
RowId = TaskId | ClaimId | AttemptId | SystemId | int | None
RowKey = tuple[RowKind, RowId]


def key_of(row: Row) -> RowKey:
    """Return the key under which a row is stored; a later row with the same key replaces it."""
    match row:
        case CountersRow():
            return (RowKind.COUNTERS, None)
        case SubmissionRow() | ForgettingRow():
            return (RowKind.SUBMISSION if isinstance(row, SubmissionRow) else RowKind.FORGETTING, row.id)
        case NotificationRow():
            return (RowKind.NOTIFICATION if row.given_at is None else RowKind.NOTIFIED, row.id)
        case TaskRow():
            return (RowKind.TASK, row.id)
        case HeldClaimRow():
            return (RowKind.HELD_CLAIM, row.id)
        case GrantedClaimRow():
            return (RowKind.GRANTED_CLAIM, row.id)
        case PassedClaimRow():
            return (RowKind.PASSED_CLAIM, row.id)
        case HiddenSubmissionRow():
            return (RowKind.HIDDEN_SUBMISSION, row.id)
        case AttemptRow():
            return (RowKind.ATTEMPT, row.id)
        case RememberedRow() | ShutOffRow():
            return (RowKind.REMEMBERED if isinstance(row, RememberedRow) else RowKind.SHUT_OFF, row.system)
        case AuditRow():
            return (RowKind.AUDIT if row.is_closed else RowKind.OPEN_AUDIT, row.number)
        case MemberRow() | RemovedRow():
            return (RowKind.MEMBER if isinstance(row, MemberRow) else RowKind.REMOVED, row.system)
        case DrainRow() | HandoverRow():
            return (RowKind.DRAIN if isinstance(row, DrainRow) else RowKind.HANDOVER, None)
        case LendRow():
            return (RowKind.LENDING, None)
        case ClaimBookRow():
            return (RowKind.OWN_BOOK if row.is_own else RowKind.OTHERS_BOOK, row.id)
        case UsageRow() | ConsumerRow():
            return (RowKind.USAGE if isinstance(row, UsageRow) else RowKind.CONSUMER, row.number)
        case NeighborAccountRow():
            return (RowKind.NEIGHBOR_ACCOUNT, row.system)
