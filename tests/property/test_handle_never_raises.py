"""For any messages of neighbors in any order, a module never raises, and every invariant holds after each event.

What it says in answer can always be written on the wire and on disk. Ids are drawn from those that the module knows, so
that messages hit conversations that are going on.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from messiahs.core.interface.actions import Action, Forget, SendControl, SendTasks, SendVector, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import WantedOutput, When
from messiahs.core.interface.events import (
    AnswerTo,
    CancelRequested,
    CleanRequested,
    ControlReceived,
    DrainRequested,
    Event,
    HandRequested,
    LeaveRequested,
    LendRequested,
    LinkDown,
    LinkRefused,
    LinkUp,
    Measured,
    MemberAdded,
    MemberRemoved,
    PolicyChanged,
    PrimaryParentChanged,
    RevokeRequested,
    RootsChanged,
    SettingsApplied,
    StoreChanged,
    Submitted,
    TransferFailed,
    TransferReceived,
    VectorReceived,
    WorkflowSubmitted,
)
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import UsageReport, UsageReportAck
from messiahs.core.interface.lending import Lent
from messiahs.core.interface.membership_messages import (
    CycleProbe,
    Handover,
    HandoverDone,
    Leave,
    SiblingAssignment,
    SiblingRequest,
    SumsSettled,
)
from messiahs.core.interface.messages import (
    AttemptStatus,
    BoundTask,
    ClaimEnd,
    ControlMessage,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    SystemStatusQuery,
    TaskAccept,
    TaskDeny,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
    TaskTransfer,
)
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.spliced_bytes import BytesSpliced
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.interface.transfer_answers import StraightFailed, TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, MessageId, SearchId, SystemId, TaskId, Ticket
from messiahs.core.model.instants import HOUR, SECOND, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_files import InputFile
from messiahs.core.model.trust import Trust
from messiahs.language.compiler.files import parse_policy
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.format.rows import encode_key, encode_row
from messiahs.wire.codec import control_to_bytes, status_vector_to_bytes, transfer_to_bytes
from tests.property import strategies as any_valid
from tests.property.budget import examples
from tests.unit.core.rig import (
    CHILD,
    COMMAND,
    EPOCH,
    LEG,
    ME,
    PARENT,
    SIBLING,
    START,
    STRANGER,
    Rig,
    hello,
    make_module,
    sdv,
    tdv,
)

SENDERS = st.sampled_from([CHILD, PARENT, SIBLING, STRANGER])
WITHIN = st.lists(st.tuples(st.just(0), st.sampled_from(["started", "ended", "ok"])), max_size=2).map(tuple)
WANTED = WantedOutput(name="out", to="in")
TAKEN = (InputFile(name="in", sha256=bytes(32), size_bytes=3),)
NEEDS = st.sampled_from([tdv(), tdv(cpus=2), tdv(mem=1 << 33)])
SEARCHES = st.sampled_from([SearchId(bytes([number] * 16)) for number in range(6)])
POLICIES: tuple[Policy, ...] = (
    OpenPolicy(),
    OpenPolicy(timeouts=Timeouts(update_period_ns=SECOND // 2, input_ns=SECOND, lease_ns=SECOND, status_ns=SECOND)),
    parse_policy("reveal to any { only $arch; hide counts below 3; } accept from any { limit 1 tasks; }", file="x"),
    parse_policy(
        """migrate { ask every 1s when $here.waiting < 3 wanting { $cpus <= 2 }; keep at least 1 tasks; }
        rank tasks by most $cpus, random; accept from any { limit 8 tasks; }""",
        file="y",
    ),
    parse_policy(
        """running {
            suspend when $here.load > 50%; resume when $here.load < 20% for 1s; kill when $mem_used > 100B;
            move when $ran >= 2s grace 2s then suspend; vacate when $suspended >= 3s grace 1s;
        }
        accept from any { limit 8 tasks; }""",
        file="z",
    ),
)
FEW = st.integers(1, 3)
MESSAGES = st.one_of(
    any_valid.control_messages, any_valid.sched_requests, any_valid.sched_accepts, any_valid.task_statuses
)


def writable(actions: tuple[Action, ...]) -> None:
    for action in actions:
        match action:
            case SendControl():
                assert action.to != ME
                control_to_bytes((action.message,))
            case SendVector():
                status_vector_to_bytes(action.message)
            case SendTasks():
                transfer_to_bytes(action.message)
            case Store():
                encode_row(action.row)
            case Forget():
                encode_key(action.key)
            case _:
                pass


class Drawing:
    """Draws events about a module's present conversations."""

    def __init__(self, data: st.DataObject, rig: Rig) -> None:
        self._data = data
        self._state = rig.state

    def event(self) -> Event:
        """Draw any event."""
        kinds = [self._control, self._control, self._control, self._control, self._local, self._local, self._other]
        make: Callable[[], Event] = self._draw(st.sampled_from(kinds))
        return make()

    def _draw(self, strategy: st.SearchStrategy[Any]) -> Any:  # noqa: ANN401 - as hypothesis types it
        return self._data.draw(strategy)

    def _claim(self) -> ClaimId:
        state = self._state
        known = [*state.origin.claims, *state.executor.claims, *state.hop.passed]
        made_up = [ClaimId(SystemId("far"), EPOCH, 1), ClaimId(SystemId("far"), EPOCH, 2), ClaimId(ME, EPOCH, 1)]
        claim: ClaimId = self._draw(st.sampled_from([*known, *known, *made_up]))
        return claim

    def _attempt(self) -> AttemptId:
        state = self._state
        bound = [attempt for claim in state.origin.claims.values() for attempt in claim.bound]
        here = list(state.executor.attempts)
        far = [AttemptId(_far(task), number) for task in (1, 2) for number in (1, 2)]
        attempt: AttemptId = self._draw(st.sampled_from([*bound, *bound, *here, *here, *far]))
        return attempt

    def _attempts(self) -> tuple[AttemptId, ...]:
        return tuple(self._attempt() for _ in range(self._draw(st.integers(0, 2))))

    def _control(self) -> Event:
        asks = self._state.hop.asks
        ask = self._draw(st.sampled_from([*asks, *asks, MessageId(0), MessageId(1)]))
        search = asks.get(ask)
        if search is not None and search.asked is not None and self._draw(st.booleans()):
            places, tasks = (
                any_valid.sched_accepts | any_valid.sched_denies,
                any_valid.task_accepts | any_valid.task_denies,
            )
            answer = self._message(ask, places if isinstance(search.request, SchedRequest) else tasks)
            return ControlReceived(sender=search.asked, message=answer)
        return ControlReceived(sender=self._draw(SENDERS), message=self._message(ask, MESSAGES))

    def _message(self, ask: MessageId, kinds: st.SearchStrategy[ControlMessage]) -> ControlMessage:
        drawn: ControlMessage = self._draw(kinds)
        match drawn:
            case Hello() | SystemStatusQuery() | Leave() | Handover() | HandoverDone() | SumsSettled():
                return drawn
            case SiblingRequest() | SiblingAssignment() | CycleProbe():
                return drawn
            case UsageReport():
                return replace(drawn, usages=tuple(replace(each, claim=self._claim()) for each in drawn.usages))
            case UsageReportAck():
                return replace(drawn, claims=tuple(self._claim() for _ in drawn.claims))
            case SchedRequest():
                known = {
                    "id": self._draw(FEW),
                    "search": self._draw(SEARCHES),
                    "tdv": self._draw(NEEDS),
                    "origin": "far",
                }
                requirement = self._draw(st.sampled_from(["", "$speed > 1", "("]))
                answers = self._draw(st.none() | SEARCHES)
                return replace(drawn, **known, requirement=requirement, answers=answers)
            case TaskRequest():
                wanting = self._draw(st.sampled_from(["", "$mem > 1", "$cpus = 1", "("]))
                return replace(drawn, id=self._draw(FEW), search=self._draw(SEARCHES), wanting=wanting)
            case TaskAccept():
                return replace(drawn, request=ask, count=self._draw(FEW))
            case SchedAccept():
                return replace(drawn, request=ask, claim=self._claim(), places=self._draw(FEW))
            case SchedDeny() | TaskDeny():
                return replace(drawn, request=ask)
            case TaskStatus():
                attempts = tuple(self._status(self._attempt()) for _ in range(self._draw(st.integers(0, 2))))
                return replace(drawn, claim=self._claim(), attempts=attempts)
            case TaskStatusAck():
                taken, unbound, moving = self._attempts(), self._attempts(), self._attempts()
                return replace(drawn, claim=self._claim(), taken=taken, unbound=unbound, moving=moving)
            case TaskRevoke():
                answers = self._draw(st.none() | SEARCHES)
                return replace(drawn, claim=self._claim(), attempts=self._attempts(), answers=answers)
            case TaskStatusQuery() | TaskKill():
                return replace(drawn, claim=self._claim(), attempts=self._attempts())
            case ClaimEnd():
                return replace(drawn, claim=self._claim())

    def _status(self, attempt: AttemptId) -> AttemptStatus:
        status: AttemptStatus = self._draw(any_valid.attempt_statuses)
        return replace(status, attempt=attempt)

    def _local(self) -> Event:
        attempt = self._attempt()
        leg = self._state.origin.fetch_legs.get(attempt, LEG)
        events: list[Event] = [
            AttemptStarted(attempt=attempt),
            AttemptEnded(attempt=attempt, exit_code=0, ran_ns=SECOND),
            AttemptEnded(attempt=attempt, cause=self._draw(st.sampled_from([Cause.LOST, Cause.KILLED, Cause.VACATED]))),
            AttemptsMeasured(memory=((attempt, self._draw(st.integers(0, 200))),)),
            OutputsHome(attempt=attempt),
            OutputsFailed(attempt=attempt, leg=leg, text="", is_gone=self._draw(st.booleans())),
            OutputsTaken(
                submission=attempt.task.submission,
                inputs=TAKEN,
                problem=self._draw(st.sampled_from(["", "x"])),
                delay=self._draw(st.sampled_from(["", "x"])),
            ),
            TransferFailed(claim=self._claim(), text="", kind=self._draw(st.sampled_from(TransferFailure))),
            StraightFailed(claim=self._claim(), text=""),
            CancelRequested(answer_to=AnswerTo(1), task=attempt.task._replace(member=self._draw(st.integers(0, 3)))),
            CleanRequested(answer_to=AnswerTo(5), tasks=(attempt.task.submission,)),
            HandRequested(
                answer_to=AnswerTo(4),
                task=attempt.task._replace(member=self._draw(st.integers(0, 3))),
                act=self._draw(st.sampled_from(HandAct)),
            ),
            RevokeRequested(answer_to=AnswerTo(3), attempts=self._attempts(), kills=self._draw(st.booleans())),
            self._submitted(str(self._draw(st.integers(1, 5)))),
            self._workflow(self._draw(st.integers(2, 3))),
        ]
        event: Event = self._draw(st.sampled_from(events))
        return event

    def _workflow(self, size: int) -> WorkflowSubmitted:
        within = ((), *(self._draw(WITHIN) for _ in range(size - 1)))
        return WorkflowSubmitted(
            answer_to=AnswerTo(5),
            key=ClientKey(str(self._draw(st.integers(1, 5)))),
            submissions=tuple(self._submitted("") for _ in range(size)),
            within=within,
            outputs=tuple(tuple((on, WANTED) for on, when in each if when == When.OK) for each in within),
        )

    def _submitted(self, key: str) -> Submitted:
        return Submitted(
            answer_to=AnswerTo(2),
            key=ClientKey(key),
            tdv=self._draw(NEEDS),
            requirement=self._draw(st.sampled_from(["", "$speed > 1"])),
            command=COMMAND,
            members=self._draw(st.integers(0, 3)),
            retries=self._draw(st.integers(0, 2)),
            waits=self._draw(st.booleans()),
            deadline_ns=self._draw(st.sampled_from([None, SECOND])),
            at_once=self._draw(st.sampled_from([0, 0, 1, 2])),
        )

    def _other(self) -> Event:
        sender = self._draw(SENDERS)
        claim = self._claim()
        granted = self._state.executor.claims.get(claim)
        passed = self._state.hop.passed.get(claim)
        known = granted.row.ticket if granted is not None else passed.ticket if passed is not None else None
        ticket = known or Ticket(b"x" * 16)
        tasks = tuple(BoundTask(attempt=attempt, command=COMMAND) for attempt in self._attempts())
        vector: StatusVector = self._draw(any_valid.status_vectors)
        events: list[Event] = [
            LinkUp(neighbor=sender),
            LinkDown(neighbor=sender),
            LinkRefused(neighbor=sender, text=self._draw(st.text(max_size=600))),
            ControlReceived(sender=sender, message=hello(sender)),
            Measured(sdv=sdv(load=self._draw(st.integers(0, 10_000)))),
            StoreChanged(has_space=self._draw(st.booleans())),
            BytesSpliced(toward_origin=sender, toward_executor=CHILD, connections=1, forth_bytes=1, back_bytes=2),
            PolicyChanged(policy=self._draw(st.sampled_from(POLICIES))),
            self._membership(),
            self._roots(),
            VectorReceived(sender=sender, message=vector),
            TransferReceived(
                sender=self._draw(st.sampled_from([SystemId("far"), CHILD, PARENT])),
                message=TaskTransfer(claim=claim, ticket=ticket, tasks=tasks),
            ),
        ]
        event: Event = self._draw(st.sampled_from(events))
        return event

    def _roots(self) -> Event:
        roots = self._draw(st.lists(st.sampled_from([b"a" * 16, b"b" * 16, b"c" * 16]), max_size=3, unique=True))
        apart = self._draw(st.sampled_from([(), (CHILD,), (CHILD, PARENT)]))
        return RootsChanged(
            key=self._draw(st.sampled_from([b"", b"k" * 16])),
            trust=Trust(roots=tuple(roots), vouchers=tuple(roots[:1]), trusts_relays=self._draw(st.booleans())),
            apart=apart,
            apart_roots=tuple((b"o" * 16,) for _ in apart),
        )

    def _membership(self) -> Event:
        system = self._draw(SENDERS)
        relation = self._draw(st.sampled_from(["is_child", "is_parent", "is_sibling", "is_primary_child"]))
        neighbor = Neighbor(system=system, **{relation: True, "is_child": "child" in relation})
        deadline_ns = self._draw(st.sampled_from([None, 0, SECOND]))
        event: Event = self._draw(
            st.sampled_from(
                [
                    MemberAdded(answer_to=AnswerTo(4), neighbor=neighbor, address="there:1"),
                    MemberRemoved(answer_to=AnswerTo(5), system=system, is_forced=self._draw(st.booleans())),
                    LeaveRequested(answer_to=AnswerTo(6), parent=system, text="gone"),
                    PrimaryParentChanged(answer_to=AnswerTo(9), parent=system),
                    DrainRequested(answer_to=AnswerTo(7), is_on=self._draw(st.booleans()), deadline_ns=deadline_ns),
                    LendRequested(
                        answer_to=AnswerTo(10),
                        lent=self._draw(st.sampled_from(Lent)),
                        until=self._draw(st.sampled_from([None, after(START, 5 * SECOND)])),
                    ),
                    SettingsApplied(answer_to=AnswerTo(8), neighbors=((neighbor, ""),)),
                ]
            )
        )
        return event


def _far(number: int) -> TaskId:
    return TaskId(SystemId("far"), EPOCH, number)


@settings(examples(20), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_module_never_raises_and_keeps_its_invariants_for_all_messages(data: st.DataObject) -> None:
    first: Policy = data.draw(st.sampled_from(POLICIES))
    apart = data.draw(st.sampled_from([(), (CHILD, PARENT, SIBLING)]))
    rig = Rig(module=make_module(policy=first, apart=apart))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system)
    if data.draw(st.booleans()):
        rig.measure()
    if data.draw(st.booleans()):
        rig.submit(members=3)
    drawing = Drawing(data, rig)
    for _ in range(data.draw(st.integers(1, 20))):
        if data.draw(st.integers(0, 9)):
            writable(rig.handle(drawing.event()))
        else:
            writable(rig.wait(data.draw(st.sampled_from([0, SECOND // 5, 2 * SECOND, HOUR // 6, HOUR // 2]))))
