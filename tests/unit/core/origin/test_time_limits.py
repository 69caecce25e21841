"""The time limit of a task as its origin counts it, if its executor does not end it."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, FetchOutputs, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, LinkDown
from messiahs.core.interface.messages import SchedRequest, Substate, TaskKill, TaskState, TaskStatusQuery, TaskTransfer
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import HOUR, MINUTE, SECOND
from messiahs.core.model.task_files import InputFile, Output
from messiahs.core.origin.task_kill import KILL_AGAIN_NS, may_run_until
from messiahs.core.origin.time_limits import ASK_AGAIN_NS, COPYING_NS_PER_BYTE, GRACE_NS
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
    RENEWAL_NS,
    TASK,
    Rig,
    accept,
    attempt,
    make_module,
    message_in,
    only,
    retry_of,
    sent,
    status,
    statuses,
    tdv,
)

LIMIT_SECONDS = 100
ALLOWED_NS = 110 * SECOND + GRACE_NS
QUERY = TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))
KILL = TaskKill(claim=CLAIM, attempts=(attempt(),))
KILLED = status(attempt(), TaskState.KILLED, cause=Cause.KILLED, signal=9)
CANCEL = CancelRequested(answer_to=AnswerTo(2), task=TASK)


@pytest.fixture
def running(rig: Rig) -> Rig:
    """Let a task with a limit run at the child."""
    ((_, ask),) = sent(rig.submit(tdv=tdv(est_time=LIMIT_SECONDS)), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    report(rig)
    return rig


@pytest.fixture
def overdue(running: Rig) -> Rig:
    """Let it be reported as running when it should have ended."""
    running.wait(ALLOWED_NS)
    report(running)
    return running


def test_time_to_copy_large_inputs_does_not_count_against_the_limit(rig: Rig) -> None:
    large = InputFile(name="in", sha256=bytes(32), size_bytes=1_000_000_000)
    command = replace(COMMAND, inputs=(large,))
    ((_, ask),) = sent(rig.submit(tdv=tdv(est_time=LIMIT_SECONDS), command=command), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    report(rig)
    rig.wait(COPYING_NS_PER_BYTE * large.size_bytes)
    assert ends(report(rig)) == []
    rig.wait(ALLOWED_NS - 1)
    assert ends(report(rig)) == []
    rig.wait(1)
    assert ends(report(rig)) == [(TaskState.ABORTED, "time_limit")]


def row_of(rig: Rig) -> TaskRow:
    return rig.state.origin.tasks[TASK]


def retry(rig: Rig) -> tuple[Action, ...]:
    submission = rig.state.origin.submissions[TASK].row
    return rig.handle(retry_of(submission, [row_of(rig)]))


def report(rig: Rig, substate: Substate = Substate.RUNNING) -> tuple[Action, ...]:
    return rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING, substate=substate)))


def rows_in(actions: tuple[Action, ...]) -> list[TaskRow]:
    return [store.row for store in only(actions, Store) if isinstance(store.row, TaskRow)]


def ends(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    """Return how tasks ended, finally or at first only for their users."""
    return [(row.result.state, row.result.cause) for row in rows_in(actions) if row.result is not None]


def test_a_task_that_is_reported_as_running_past_its_limit_and_a_tenth_is_ended(running: Rig) -> None:
    assert sent(running.wait(ALLOWED_NS - 1), TaskStatusQuery) == ()
    assert ends(report(running)) == []
    assert message_in(running.wait(1), TaskStatusQuery) == QUERY
    actions = report(running)
    assert ends(actions) == [("aborted", "time_limit")]
    assert message_in(actions, TaskKill).attempts == (attempt(),)


def test_a_task_of_which_nothing_is_heard_is_only_asked_about(running: Rig) -> None:
    asked = [message for _, message in sent(running.wait(ALLOWED_NS + ASK_AGAIN_NS), TaskStatusQuery)]
    assert asked.count(QUERY) == 2
    assert TASK in running.state.origin.tasks


def test_a_result_that_comes_late_is_taken(running: Rig) -> None:
    running.wait(ALLOWED_NS + MINUTE)
    assert ends(running.hear(CHILD, statuses(status(attempt())))) == [("finished", "")]


def test_the_time_in_which_a_task_is_suspended_does_not_count(running: Rig) -> None:
    running.wait(ALLOWED_NS // 2)
    report(running, Substate.SUSPENDED)
    for _ in range(10):
        running.wait(MINUTE)
        assert ends(report(running, Substate.SUSPENDED)) == []
    report(running)
    running.wait(ALLOWED_NS // 2 - 1)
    assert ends(report(running)) == []
    running.wait(1)
    assert ends(report(running)) == [("aborted", "time_limit")]


def test_the_count_restarts_after_a_long_silence_in_which_the_task_may_have_been_suspended(running: Rig) -> None:
    running.wait(2 * RENEWAL_NS + 1)
    assert ends(report(running)) == []
    running.wait(ALLOWED_NS)
    assert ends(report(running)) == [("aborted", "time_limit")]


def test_a_task_without_a_limit_runs_for_as_long_as_it_likes(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    for _ in range(100):
        assert ends(report(rig)) == []
        rig.wait(MINUTE)


def test_an_overdue_task_is_killed_until_its_executor_answers_and_ends_as_reported_to_its_user(overdue: Rig) -> None:
    for _ in range(3):
        assert message_in(overdue.wait(KILL_AGAIN_NS), TaskKill) == KILL
    assert message_in(report(overdue), TaskKill) == KILL
    (row,) = rows_in(overdue.hear(CHILD, statuses(KILLED)))
    assert (row.state, row.result and row.result.cause) == (TaskState.ABORTED, "time_limit")
    assert row.history[-1].event == "time_limit"
    assert sent(overdue.wait(HOUR), TaskKill) == ()


def test_an_overdue_task_that_has_finished_after_all_stays_aborted(overdue: Rig) -> None:
    (row,) = rows_in(overdue.hear(CHILD, statuses(status(attempt()))))
    assert (row.state, row.result and row.result.exit_code) == (TaskState.ABORTED, None)


def test_what_an_overdue_task_wrote_comes_home_when_its_executor_answers(overdue: Rig) -> None:
    wrote = (Output(name="stdout", size_bytes=5),)
    actions = overdue.hear(CHILD, statuses(status(attempt(), TaskState.KILLED, cause=Cause.KILLED, outputs=wrote)))
    assert [fetch.outputs for fetch in only(actions, FetchOutputs)] == [wrote]
    (row,) = rows_in(overdue.handle(OutputsHome(attempt=attempt())))
    assert row.state is TaskState.ABORTED
    assert row.result is not None
    assert (row.result.cause, row.result.outputs) == ("time_limit", wrote)


def test_an_overdue_task_may_run_until_the_lease_as_its_origin_counts_it(overdue: Rig) -> None:
    overdue.handle(LinkDown(neighbor=CHILD))
    until = may_run_until(overdue.state, row_of(overdue))
    assert until is not None
    overdue.wait(until - overdue.now - 1)
    assert row_of(overdue).attempt == 1
    assert ends(overdue.wait(1)) == [("aborted", "time_limit")]
    assert overdue.state.origin.tasks == {}


def test_a_retry_of_an_overdue_task_waits_until_its_executor_has_answered(overdue: Rig) -> None:
    actions = (*retry(overdue), *overdue.wait(MINUTE))
    assert (sent(actions, SchedRequest), sent(actions, TaskTransfer)) == ((), ())
    actions = overdue.hear(CHILD, statuses(KILLED))
    assert message_in(actions, TaskTransfer).tasks[0].attempt == attempt(2)
    assert (row_of(overdue).is_cancelled, row_of(overdue).result) == (False, None)


def test_a_retry_of_an_overdue_task_waits_until_the_lease_has_run_out(overdue: Rig) -> None:
    overdue.handle(LinkDown(neighbor=CHILD))
    retry(overdue)
    until = may_run_until(overdue.state, row_of(overdue))
    assert until is not None
    overdue.wait(until - overdue.now - 1)
    assert (row_of(overdue).attempt, overdue.state.origin.waiting) == (1, 0)
    overdue.wait(1)
    assert (row_of(overdue).claim, overdue.state.origin.waiting) == (None, 1)


def test_a_cancel_leaves_an_overdue_task_aborted_unless_it_was_to_be_tried_again(overdue: Rig) -> None:
    overdue.handle(CANCEL)
    assert ends((Store(row=row_of(overdue)),)) == [("aborted", "time_limit")]
    retry(overdue)
    overdue.handle(CANCEL)
    *_, row = rows_in(overdue.hear(CHILD, statuses(KILLED)))
    assert row.state is TaskState.KILLED


def test_a_restarted_origin_asks_for_an_overdue_task_and_does_not_send_it_again(overdue: Rig) -> None:
    origin = overdue.state.origin
    rows = (origin.submissions[TASK].row, row_of(overdue), origin.claims[CLAIM].row)
    after = Rig(module=make_module())
    resumed = after.resume(Remains(rows=rows))
    assert sent((*resumed, *after.wait(0)), TaskTransfer) == ()
    after.greet(CHILD)
    assert message_in(after.wait(KILL_AGAIN_NS), TaskStatusQuery) == QUERY
    assert message_in(report(after), TaskKill) == KILL
    (row,) = rows_in(after.hear(CHILD, statuses(KILLED)))
    assert (row.state, row.result and row.result.cause) == (TaskState.ABORTED, "time_limit")


def test_an_executor_that_disobeys_until_its_lease_ends_delays_the_next_attempt_so_long(overdue: Rig) -> None:
    retry(overdue)
    for _ in range(20):
        overdue.wait(KILL_AGAIN_NS)
        assert sent(report(overdue), TaskTransfer) == ()
        assert row_of(overdue).attempt == 1
