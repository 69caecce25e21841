"""A module as origin: tasks of local users, the shapes in which they wait, and the claims that they run in.

Rows are kept as they are stored (interface/rows.py); everything else is soft and made anew after a restart.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from messiahs.core.interface.messages import AttemptStatus, Reason, TaskState
from messiahs.core.interface.policies import Need
from messiahs.core.interface.rows import (
    HeldClaimRow,
    SubmissionRow,
    TaskRow,
)
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, MessageId, SearchId, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Duration, Instant
from messiahs.core.state.lives import HELD_LIFE, SHAPE_LIFE, HeldPhase, ShapePhase, followed
from messiahs.core.state.run_clock import RunClock

ShapeKey = tuple[TDV, str]
"""Tasks with equal TDV (which names their user) and requirement are placed together."""

FIRST_ROUND_DELAY_NS = Duration(1 * SECOND)


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
    phase: ShapePhase = ShapePhase.SETTLED
    request: MessageId | None = None
    """The search in flight, in that phase."""
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
    quantum_ended_at: Instant | None = None
    """When an executor last ended a claim of it."""

    def enter(self, phase: ShapePhase) -> None:
        """Go on to a phase; the current one again changes nothing."""
        self.phase = followed(self.phase, phase, SHAPE_LIFE)


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
    phase: HeldPhase = HeldPhase.OPEN
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
    refusal: str | None = None
    """Why its executor, which can be reached, did not take the tasks that were sent last; None: it took them. Soft."""
    stream_failure: str = ""
    """How its task stream failed last; empty if it is known to work."""
    heard_at: Instant | None = None
    """When its executor was heard of first while the stream failed, over the control channel."""

    def enter(self, phase: HeldPhase) -> None:
        """Go on to a phase; one that is unreachable stays so."""
        if self.phase is not HeldPhase.UNREACHABLE:
            self.phase = followed(self.phase, phase, HELD_LIFE)

    @property
    def is_ending(self) -> bool:
        """Whether no further task is bound to it."""
        return self.phase is not HeldPhase.OPEN


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
