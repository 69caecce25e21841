"""The spans of own attempts: one for each when it ends, with the id that its task was given, if it is sampled."""

from dataclasses import replace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from messiahs.core.interface.actions import Action, SendTasks, Store
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, ControlReceived, Event, HandRequested
from messiahs.core.interface.messages import ControlMessage, SchedRequest, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import ClaimId, Epoch, SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.trace_context import TRACEPARENT
from messiahs.daemon.otlp.attempt_spans import AttemptSpan, SpanWatcher
from messiahs.daemon.otlp.encoding import Encoder
from messiahs.trace.record.recorder import RecordedModule
from tests.collectors import attributes_of
from tests.unit.core.rig import (
    COMMAND,
    FAR,
    PARENT,
    TASK,
    Rig,
    accept,
    attempt,
    make_module,
    message_in,
    only,
    retry_of,
    status,
    statuses,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACED = replace(COMMAND, env=((TRACEPARENT, f"00-{TRACE}-{SPAN}-01"),))
SECOND_CLAIM = ClaimId(FAR, Epoch(3), 2)


class Watched(Rig):
    """A module whose attempts are seen (mutable)."""

    watcher: SpanWatcher
    spans: list[AttemptSpan]
    given: list[str]
    """The `TRACEPARENT` of each attempt that was sent."""

    def step(self, event: Event | None, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """See a step that has happened."""
        tasks = [task for action in only(actions, SendTasks) for task in action.message.tasks]
        self.given.extend(dict(task.command.env).get(TRACEPARENT, "") for task in tasks)
        self.watcher.on_step(event, actions, self.now)
        return actions

    def do(self, event: Event) -> tuple[Action, ...]:
        """Let an event happen, and see it."""
        return self.step(event, self.handle(event))

    def tell(self, message: ControlMessage) -> tuple[Action, ...]:
        """Let the parent say something, and see it."""
        return self.do(ControlReceived(sender=PARENT, message=message))

    def bound(self, members: int = 0, **more: object) -> None:
        """Submit tasks that get places at once."""
        search = message_in(self.step(None, self.submit(members, **{"command": TRACED, **more})), SchedRequest)
        self.tell(accept(search.id, places=max(1, members)))

    def bound_again(self) -> None:
        """Let the task that lost its place get another one."""
        search = message_in(self.step(None, self.wait(MINUTE)), SchedRequest)
        self.tell(accept(search.id, claim=SECOND_CLAIM))


@pytest.fixture
def module() -> Watched:
    module = Watched(module=make_module())
    module.spans, module.given = [], []
    module.watcher = SpanWatcher(RecordedModule(module.module), module.spans.append)
    module.resume()
    module.greet(PARENT)
    module.see(PARENT)
    return module


def test_an_attempt_is_a_span_from_its_place_to_its_end_below_that_of_the_submitter(module: Watched) -> None:
    module.bound()
    begun_at = module.now
    module.wait(2 * SECOND)
    assert not module.spans
    module.tell(statuses(status(attempt())))
    (span,) = module.spans
    assert (span.begun_at, span.ended_at, span.attempt) == (begun_at, begun_at + 2 * SECOND, attempt())
    assert (span.module, span.exit_code, span.cause, span.problem) == (FAR, 0, "", "")
    assert (span.context.trace_id, span.context.parent_id) == (TRACE, SPAN)
    assert module.given == [f"00-{TRACE}-{span.context.span_id}-01"]


def test_a_failed_attempt_and_its_retry_are_two_spans_with_their_exit_codes(module: Watched) -> None:
    module.bound(retries=1)
    module.tell(statuses(status(attempt(), exit_code=3)))
    module.tell(statuses(status(attempt(2))))
    first, second = module.spans
    assert (first.exit_code, first.problem, first.attempt.number) == (3, "exit code 3", 1)
    assert (second.exit_code, second.problem, second.attempt.number) == (0, "", 2)
    assert [f"00-{TRACE}-{each.context.span_id}-01" for each in module.spans] == module.given
    assert len(set(module.given)) == 2


def test_an_attempt_that_its_owner_revoked_ends_with_its_cause_and_no_text_of_others(module: Watched) -> None:
    module.bound()
    text = "the owner needs the machine"
    module.tell(statuses(status(attempt(), TaskState.REVOKED, cause=Cause.REVOKED, text=text)))
    (span,) = module.spans
    assert (span.cause, span.problem, span.exit_code) == ("revoked", "revoked", None)


def test_a_signal_and_a_limit_are_failures_with_their_names(module: Watched) -> None:
    module.bound(2)
    killed = status(attempt(member=1), TaskState.ABORTED, signal=9)
    limited = status(attempt(member=2), TaskState.ABORTED, signal=9, cause=Cause.TIME_LIMIT)
    module.tell(statuses(killed, limited))
    assert [(each.cause, each.problem) for each in module.spans] == [("", "signal 9"), ("time_limit", "time_limit")]


def test_a_cancelled_task_has_a_span_once_its_attempt_has_ended_and_none_if_it_had_no_place(module: Watched) -> None:
    module.bound()
    module.do(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    assert not module.spans
    module.tell(statuses(status(attempt(), TaskState.KILLED, signal=15, cause=Cause.KILLED)))
    (span,) = module.spans
    assert (span.cause, span.problem) == ("killed", "killed")
    module.spans.clear()
    module.step(None, module.submit(command=TRACED, key="l"))
    module.do(CancelRequested(answer_to=AnswerTo(3), task=TASK._replace(number=2)))
    assert not module.spans


def test_each_member_of_an_array_has_a_span_also_the_last_one_which_ends_the_array(module: Watched) -> None:
    module.bound(3)
    module.tell(statuses(*(status(attempt(member=member)) for member in (1, 2, 3))))
    assert [str(each.attempt.task) for each in module.spans] == ["me.1.1", "me.1.2", "me.1.3"]
    assert [f"00-{TRACE}-{each.context.span_id}-01" for each in module.spans] == module.given


def test_members_may_each_be_in_a_trace_of_their_own(module: Watched) -> None:
    traces = tuple(f"00-{number * 32}-{SPAN}-01" for number in "ab")
    module.bound(2, command=replace(COMMAND, env=((TRACEPARENT, "{}"),)), items=traces)
    module.tell(statuses(*(status(attempt(member=member)) for member in (1, 2))))
    assert [each.context.trace_id for each in module.spans] == ["a" * 32, "b" * 32]


@pytest.mark.parametrize("parent", ["", "malformed", f"00-{TRACE}-{SPAN}-00"])
def test_tasks_outside_of_traces_and_in_those_that_nobody_records_have_no_span(module: Watched, parent: str) -> None:
    module.bound(command=replace(COMMAND, env=((TRACEPARENT, parent), ("A", "1"))))
    module.tell(statuses(status(attempt())))
    assert not module.spans


def test_what_people_do_to_a_task_that_waits_again_is_no_end_of_an_attempt(module: Watched) -> None:
    module.bound()
    module.tell(statuses(status(attempt(), TaskState.REVOKED, cause=Cause.LOST)))
    assert len(module.spans) == 1
    module.wait(SECOND)
    hand = HandRequested(answer_to=AnswerTo(4), task=TASK, act=HandAct.HOLD, text="later")
    module.do(hand)
    assert len(module.spans) == 1
    assert module.state.origin.tasks[TASK].history[-1].event == "hold by hand"


def test_a_task_that_is_run_again_by_hand_has_a_new_span(module: Watched) -> None:
    module.bound()
    ended = [each.row for each in only(module.tell(statuses(status(attempt(), exit_code=1))), Store)]
    (task,) = (row for row in ended if isinstance(row, TaskRow))
    (submission,) = (row for row in ended if isinstance(row, SubmissionRow))
    search = message_in(module.do(retry_of(submission, (task,))), SchedRequest)
    module.tell(accept(search.id, claim=SECOND_CLAIM))
    module.tell(statuses(status(attempt(2)), claim=SECOND_CLAIM))
    assert [(each.attempt.number, each.exit_code) for each in module.spans] == [(1, 1), (2, 0)]


def test_spans_are_encoded_with_ids_times_attributes_and_status(module: Watched) -> None:
    module.bound(2)
    module.tell(statuses(status(attempt(member=1)), status(attempt(member=2), exit_code=3)))
    body = Encoder(federation="lab", module="me").body_of(module.spans, wall_offset_ns=5)
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    named = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert (named["service.name"], named["service.namespace"], named["service.instance.id"]) == (
        "messiahs",
        "lab",
        "me",
    )
    good, bad = resource.scope_spans[0].spans
    assert good.trace_id.hex() == TRACE
    assert good.parent_span_id.hex() == SPAN
    assert good.span_id.hex() == module.spans[0].context.span_id
    assert good.start_time_unix_nano == module.spans[0].begun_at + 5
    assert good.end_time_unix_nano == module.spans[0].ended_at + 5
    assert attributes_of(bad) == {
        "messiahs.task.id": "me.1.2",
        "messiahs.attempt.number": 1,
        "messiahs.attempt.module": "far",
        "process.exit.code": 3,
    }
    assert (good.status.code, bad.status.code) == (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR)
    assert bad.status.message == "exit code 3"


def test_who_submitted_a_task_and_what_it_does_are_not_in_its_span(module: Watched) -> None:
    command = replace(TRACED, argv=("secret-program",), env=(*TRACED.env, ("PASSWORD", "secret-value")))
    module.bound(command=command, name="secret-name")
    module.tell(statuses(status(attempt(), TaskState.REVOKED, cause=Cause.VACATED, text="secret-text")))
    body = Encoder(federation="lab", module=SystemId("me")).body_of(module.spans, wall_offset_ns=0)
    assert b"vacated" in body
    assert b"secret" not in body
    assert b"ann" not in body
