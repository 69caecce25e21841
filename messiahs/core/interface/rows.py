"""What a module must not forget: rows, stored before anything that depends on them is done.

The core's tables hold these very rows; everything else it knows is soft and is made anew after a restart.
"""

from dataclasses import dataclass
from enum import IntEnum

from messiahs.core.interface.messages import AttemptStatus, Command, IdsGiven, InputFile, Reason, Substate, TaskState
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant


class RowKind(IntEnum):
    """The tables; the numbers are stored and never change."""

    COUNTERS = 1
    SUBMISSION = 2
    TASK = 3
    HELD_CLAIM = 4
    GRANTED_CLAIM = 5
    PASSED_CLAIM = 6
    ATTEMPT = 7
    REMEMBERED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEpoch:
    """An epoch in which no more ids are given out, and the last submission that was numbered in it."""

    epoch: Epoch
    submissions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersRow:
    """How many submissions and claims were numbered, in which epoch now (None: the first one), and in which before."""

    submissions: int = 0
    claims: int = 0
    epoch: Epoch | None = None
    earlier: tuple[EndedEpoch, ...] = ()
    renewed_at: Instant | None = None
    """When an older copy of the state was noticed last."""

    @property
    def given(self) -> IdsGiven:
        """How many ids were given out."""
        return IdsGiven(submissions=self.submissions, claims=self.claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class UntriedEnd:
    """Members `first` to `last` of a submission, which ended before they were tried."""

    first: int
    last: int
    state: TaskState
    ended_at: Instant
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedMembers:
    """How many members of a submission ended in one state with one exit code (None if they had none)."""

    state: TaskState
    exit_code: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRow:
    """What a user submitted in one call; `members` is 0 for a single task, else tasks 1 to `members`.

    A member without a `TaskRow` was never tried: it waits, or has ended with one of the runs in `untried`. `tdv`,
    `command` and `name` are templates (members.py), with one of `items`, or its number, for each member;
    `member_inputs` are inputs of one member alone.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One step in the life of a task, for people: an attempt bound, suspended, resumed, lost, ended."""

    at: Instant
    event: str
    attempt: int = 0
    module: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task at its origin, and with `claim` the binding of its current attempt.

    `attempt` counts from 1; 0 means never bound. A row with a final `state` never changes again.
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
    """Where the present or last attempt is or was; empty while the task waits for a place."""
    failures: int = 0
    is_cancelled: bool = False
    """It is over for its user, though its attempt may still run: cancelled, or overdue if there is a `result`."""
    result: AttemptStatus | None = None
    reasons: tuple[Reason, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    suspended_at: Instant | None = None
    """Since when the present attempt is suspended."""
    suspended_ns: int = 0
    """How long the present attempt was suspended before that."""
    is_wanted_again: bool = False
    """It is cancelled (or was overdue), and is to be tried again as soon as its last attempt is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaimRow:
    """A claim at its origin; `via` is the neighbor through which it was granted (or the module itself)."""

    id: ClaimId
    via: SystemId
    address: str
    ticket: Ticket
    lease_ns: int
    tdv: TDV
    requirement: str
    answered_at: Instant
    is_answer: bool = False
    """It was granted to tasks that were promised to whoever asked for some: it takes none of those that are kept."""
    places: int = 1
    """How many places were granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedClaimRow:
    """A claim at the executor that granted it; its lease runs out at `lease_until` unless a renewal is answered."""

    id: ClaimId
    origin: SystemId
    via: SystemId
    ticket: Ticket
    tdv: TDV
    places: int
    lease_ns: int
    lease_until: Instant
    is_ending: bool = False
    """It takes nothing more, and each place is free for others as soon as its attempt has ended."""
    is_answer: bool = False
    """It was granted to a search that answers a task_request: its tasks are not offered again."""
    slots: int = 0
    """How many slots each task gets; 0: as many as it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedClaimRow:
    """A claim that was granted through this module: where its messages go, in both directions."""

    id: ClaimId
    toward_origin: SystemId
    toward_executor: SystemId
    tdv: TDV
    slots: int
    """What all its places take, as it was granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """An attempt at its executor, from the moment it was taken until its origin has taken the result.

    A final `status` is repeated until it is acknowledged, and never taken back.
    """

    id: AttemptId
    claim: ClaimId
    command: Command
    status: AttemptStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedRow:
    """What a neighbor said of its ids: in which epoch it gives them out, and how many it has given out at least."""

    system: SystemId
    epoch: Epoch
    given: IdsGiven


Row = (
    CountersRow | SubmissionRow | TaskRow | HeldClaimRow | GrantedClaimRow | PassedClaimRow | AttemptRow | RememberedRow
)
RowId = TaskId | ClaimId | AttemptId | SystemId | None
RowKey = tuple[RowKind, RowId]


def key_of(row: Row) -> RowKey:
    """Give the key under which a row is stored; a later row with the same key replaces it."""
    match row:
        case CountersRow():
            return (RowKind.COUNTERS, None)
        case SubmissionRow():
            return (RowKind.SUBMISSION, row.id)
        case TaskRow():
            return (RowKind.TASK, row.id)
        case HeldClaimRow():
            return (RowKind.HELD_CLAIM, row.id)
        case GrantedClaimRow():
            return (RowKind.GRANTED_CLAIM, row.id)
        case PassedClaimRow():
            return (RowKind.PASSED_CLAIM, row.id)
        case AttemptRow():
            return (RowKind.ATTEMPT, row.id)
        case RememberedRow():
            return (RowKind.REMEMBERED, row.system)
