"""One module under test: events in, actions out, and every invariant checked after each of them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from messiahs.core.interface.actions import Action, Answer, Forget, Report, SendControl, SendTasks, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.dependencies import Predecessor
from messiahs.core.interface.events import (
    AnswerTo,
    ControlReceived,
    Event,
    LinkUp,
    Measured,
    RetryRequested,
    Submitted,
    VectorReceived,
)
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import UsageReport, UsageReportAck
from messiahs.core.interface.ledger_rows import ClaimBookRow, ConsumerRow, NeighborAccountRow, UsageRow
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import (
    AttemptStatus,
    BoundTask,
    Command,
    ControlMessage,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    Substate,
    TaskState,
    TaskStatus,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import CountersRow, RowKind, SubmissionRow, TaskRow
from messiahs.core.invariants import violations
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, MessageId, SearchId, SystemId, TaskId, Ticket
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Leg
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.core.module import SchedulingModule
from messiahs.core.origin.member_runs import run_of
from messiahs.core.recovery import Remains
from messiahs.core.state.module import Identity, ModuleState
from messiahs.core.vectors.vectors import Vector, vector_of
from messiahs.language.predicate.predicates import predicate_parser
from tests.unit.core.scripted_policy import ScriptedPolicy

Kind = TypeVar("Kind")

ME, CHILD, OTHER_CHILD, SIBLING, PARENT, STRANGER = map(
    SystemId, ("me", "child", "other-child", "sibling", "parent", "stranger")
)
FAR, ORIGIN = SystemId("far"), SystemId("origin")
NEIGHBORS = (
    Neighbor(system=CHILD, is_child=True, is_primary_child=True),
    Neighbor(system=OTHER_CHILD, is_child=True, is_primary_child=True),
    Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),
    Neighbor(system=SIBLING, is_sibling=True),
)
EPOCH = Epoch(7)
LEASE_NS = 15 * MINUTE
RENEWAL_NS = LEASE_NS // RENEWALS_PER_LEASE
COMMAND = Command(argv=("true",))
GIB = 1 << 30
TICKET = Ticket(b"t" * 16)
LEG = Leg(system=FAR, address="far:1", ticket=TICKET)
START = Instant(1_000 * SECOND)
CLAIM = ClaimId(FAR, Epoch(3), 1)
"""A claim that somebody else grants."""
TASK = TaskId(ME, EPOCH, 1)
REMOTE_TASK = TaskId(ORIGIN, Epoch(9), 1)
_MOST_AT_ONCE = 10_000
_LEDGER = (RowKind.OWN_BOOK, RowKind.OTHERS_BOOK, RowKind.USAGE, RowKind.CONSUMER, RowKind.NEIGHBOR_ACCOUNT)


def tdv(**said: Value) -> TDV:
    return TDV(sorted_pairs({"cpus": 1, "origin": "me", "user": "ann", **said}))


def sdv(**said: Value) -> SDV:
    typical: dict[str, Value] = {
        "slots": 4, "nproc": 4, "total_mem": 16 * GIB, "avail_mem": 16 * GIB,
        "total_disk": 64 * GIB, "avail_disk": 64 * GIB, "arch": "x86_64", "os": "Linux", "speed": 1000,
    }  # fmt: skip
    return SDV(sorted_pairs({**typical, **said}))


def view(**said: Value) -> Vector:
    return vector_of(sdv(**{"free_slots": 4, **said}))


def sent(actions: Iterable[Action], kind: type[Kind]) -> tuple[tuple[SystemId, Kind], ...]:
    """Return the messages of one kind with their receivers."""
    return tuple(
        (action.to, action.message)
        for action in actions
        if isinstance(action, SendControl | SendTasks) and isinstance(action.message, kind)
    )


def only(actions: Iterable[Action], kind: type[Kind]) -> tuple[Kind, ...]:
    """Return the actions of one kind."""
    return tuple(action for action in actions if isinstance(action, kind))


def message_in(actions: Iterable[Action], kind: type[Kind]) -> Kind:
    """Return the one message of a kind."""
    ((_, message),) = sent(actions, kind)
    return message


class Numbers:
    """Random numbers that are the same in every run."""

    def __init__(self) -> None:
        self._random = Random(1)

    def bits(self, count: int, /) -> int:
        """Return a random integer of `count` bits."""
        return self._random.getrandbits(count)


@dataclass(slots=True)
class Rig:
    """A module and its clock (mutable); only with `shows_ledger` the actions of the ledger are among those returned."""

    module: SchedulingModule
    now: Instant = START
    shows_ledger: bool = False
    _is_checked: bool = True

    @property
    def state(self) -> ModuleState:
        """Return the state of the module."""
        return self.module.state

    def check(self) -> None:
        """Require that every invariant holds."""
        assert not self._is_checked or violations(self.state) == ()

    @contextmanager
    def checked_at_the_end(self) -> Iterator[None]:
        """Check the invariants once, not after each event: with hundreds of neighbors, a check of all takes long."""
        self._is_checked = False
        try:
            yield
        finally:
            self._is_checked = True
        self.check()

    def resume(self, remains: Remains | None = None) -> tuple[Action, ...]:
        """Start the module."""
        actions = self.module.resume(remains if remains is not None else Remains(), self.now)
        self.check()
        return self._shown(actions)

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Let an event happen."""
        actions = self.module.handle(event, self.now)
        self.check()
        return self._shown(actions)

    def _shown(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return actions if self.shows_ledger else besides_ledger(actions)

    def end(self, event: AttemptEnded) -> tuple[Action, ...]:
        """Let an attempt end, and all be said that is due at once."""
        return (*self.handle(event), *self.wait(0))

    def hear(self, sender: SystemId, message: ControlMessage) -> tuple[Action, ...]:
        """Let a neighbor say something."""
        return self.handle(ControlReceived(sender=sender, message=message))

    def wait(self, duration_ns: int) -> tuple[Action, ...]:
        """Let time pass, firing every timeout at its instant."""
        end = after(self.now, duration_ns)
        actions: list[Action] = []
        at_once = 0
        while (deadline := self.module.next_deadline()) is not None and deadline <= end:
            at_once = at_once + 1 if deadline <= self.now else 0
            assert at_once < _MOST_AT_ONCE, f"timers fire for ever at {self.now}: {self.state.timers}"
            self.now = max(self.now, deadline)
            actions.extend(self._shown(self.module.expire(self.now)))
            self.check()
        self.now = end
        return tuple(actions)

    def greet(self, *systems: SystemId) -> tuple[Action, ...]:
        """Link neighbors, with hellos."""
        actions: list[Action] = []
        for system in systems:
            actions.extend(self.handle(LinkUp(neighbor=system)))
            actions.extend(self.hear(system, hello(system)))
        return tuple(actions)

    def see(
        self, system: SystemId, vector: Vector | None = None, *, kind: VectorKind | None = None
    ) -> tuple[Action, ...]:
        """Let a neighbor say what stands behind it."""
        neighbor = self.state.neighbors[system]
        kinds = {"child": VectorKind.FOR_PARENTS, "parent": VectorKind.FOR_CHILDREN, "sibling": VectorKind.FOR_SIBLINGS}
        message = StatusVector(
            kind=kind or kinds[neighbor.relation],
            vector=view() if vector is None else vector,
            period_ns=2 * SECOND,
            age_ns=0,
        )
        return self.handle(VectorReceived(sender=system, message=message))

    def measure(self, **said: Value) -> None:
        """Measure the own machine, and let the change be advertised."""
        self.handle(Measured(sdv=sdv(**said)))
        self.wait(SECOND // 10)

    def submit(self, members: int = 0, **more: object) -> tuple[Action, ...]:
        """Submit tasks as a local user."""
        given = {"tdv": tdv(), "requirement": "", "command": COMMAND, "key": ClientKey("k"), **more}
        return self.handle(Submitted(answer_to=AnswerTo(1), members=members, **given))  # type: ignore[arg-type]


def make_module(
    *,
    neighbors: tuple[Neighbor, ...] = NEIGHBORS,
    policy: Policy | None = None,
    system: SystemId = ME,
    trust: Trust = UNKNOWN,
    apart: tuple[SystemId, ...] = (),
    key: bytes = b"",
) -> SchedulingModule:
    return SchedulingModule(
        ModuleState(
            identity=Identity(system=system, epoch=EPOCH, address=f"{system}:1", trust=trust, apart=apart, key=key),
            neighbors={neighbor.system: neighbor for neighbor in neighbors},
            policy=policy if policy is not None else ScriptedPolicy(),
            parse=predicate_parser,
            randomness=Numbers(),
        )
    )


def hello(system: SystemId, *, versions: tuple[int, ...] = (1,)) -> Hello:
    return Hello(system=system, epoch=Epoch(3), wire_versions=versions, release="1")


def request(number: int = 1, /, **said: object) -> SchedRequest:
    """Return a request as a neighbor makes it."""
    given = {
        "search": SearchId(b"s" * 16), "origin": ORIGIN, "tdv": tdv(), "requirement": "", "count": 1,
        "hops_left": 32, "asks_left": 64, "remaining_ns": 10 * SECOND, **said,
    }  # fmt: skip
    return SchedRequest(id=MessageId(number), **given)  # type: ignore[arg-type]


def accept(ask: MessageId, *, places: int = 1, claim: ClaimId = CLAIM, window: int | None = None) -> SchedAccept:
    return SchedAccept(
        request=ask,
        claim=claim,
        address="far:1",
        ticket=TICKET,
        places=places,
        window=places if window is None else window,
        lease_ns=LEASE_NS,
        asks_left=60,
    )


def deny(ask: MessageId, *, asks_left: int = 60) -> SchedDeny:
    return SchedDeny(request=ask, reasons=(), asks_left=asks_left)


def transfer(claim: ClaimId, ticket: Ticket, *attempts: AttemptId) -> TaskTransfer:
    tasks = tuple(BoundTask(attempt=attempt, command=COMMAND) for attempt in attempts)
    return TaskTransfer(claim=claim, ticket=ticket, tasks=tasks)


def status(attempt: AttemptId, state: TaskState = TaskState.FINISHED, **said: object) -> AttemptStatus:
    by_itself = {"exit_code": 0} if state is TaskState.FINISHED else {}
    substate = {"substate": Substate.RUNNING} if state is TaskState.EXECUTING else {}
    return AttemptStatus(attempt=attempt, state=state, **{**by_itself, **substate, **said})  # type: ignore[arg-type]


def statuses(*said: AttemptStatus, claim: ClaimId = CLAIM, window: int = 4, renewal: int = 0) -> TaskStatus:
    return TaskStatus(claim=claim, attempts=said, window=window, renewal=renewal)


def have_results(rig: Rig, claim: ClaimId = CLAIM) -> None:
    """Let a held claim have delivered results, so that its window is believed."""
    rig.state.origin.claims[claim].results = 8


def attempt(number: int = 1, *, member: int = 0, task: TaskId = TASK) -> AttemptId:
    return AttemptId(task._replace(member=member), number)


def remote(number: int = 1, *, member: int = 0) -> AttemptId:
    return AttemptId(REMOTE_TASK._replace(member=member), number)


def retry_of(
    row: SubmissionRow, tried: Iterable[TaskRow], *, member: int = 0, after: tuple[Predecessor, ...] = ()
) -> RetryRequested:
    """Return the request to run failed tasks of a submission again: all, or one; `tried` are stored rows."""
    members = run_of(row, row.id._replace(member=member))
    among = tuple(each for each in tried if members[0] <= each.id.member <= members[1])
    return RetryRequested(answer_to=AnswerTo(3), submission=row, members=members, tried=among, after=after)


def answered(actions: tuple[Action, ...]) -> Answer:
    (answer,) = only(actions, Answer)
    return answer


def besides_audit(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions that are no rows of the audit log."""
    rows = (AuditRow, CountersRow)
    return tuple(each for each in actions if not (isinstance(each, Store) and isinstance(each.row, rows)))


def besides_ledger(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions that concern no row of the ledger and no report on one."""
    return tuple(each for each in actions if not _is_of_ledger(each))


def _is_of_ledger(action: Action) -> bool:
    match action:
        case Store(row=ClaimBookRow() | UsageRow() | ConsumerRow() | NeighborAccountRow()):
            return True
        case Forget(key=(kind, _)):
            return kind in _LEDGER
        case SendControl(message=UsageReport() | UsageReportAck()):
            return True
        case _:
            return False


def reported(actions: tuple[Action, ...]) -> str:
    """Return the code of a report that is the only action."""
    (report,) = actions
    assert isinstance(report, Report)
    return report.code
