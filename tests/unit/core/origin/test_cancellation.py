"""A task that was cancelled while it was bound: killed until its executor answers, and never sent again."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Answer, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, LinkDown, TransferFailed
from messiahs.core.interface.messages import SchedRequest, TaskKill, TaskState, TaskStatusQuery, TaskTransfer
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant
from messiahs.core.model.task_files import InputFile
from messiahs.core.origin.task_kill import KILL_AGAIN_NS, may_run_until
from messiahs.core.queries import killed_but_open
from messiahs.core.recovery import Remains
from tests.unit.core.chain import EXECUTOR, HOP, ORIGIN, Chain
from tests.unit.core.origin.test_delivery import submitted
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
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
)

CANCEL = CancelRequested(answer_to=AnswerTo(2), task=TASK)
QUERY = TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))
KILL = TaskKill(claim=CLAIM, attempts=(attempt(),))
KILLED = status(attempt(), TaskState.KILLED, cause=Cause.KILLED)


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind a task to a claim that the child brought."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def row_of(rig: Rig) -> TaskRow:
    return rig.state.origin.tasks[TASK]


def retry(rig: Rig) -> tuple[Action, ...]:
    submission = rig.state.origin.submissions[TASK].row
    return rig.handle(retry_of(submission, [row_of(rig)]))


def test_the_kill_of_a_running_task_is_repeated_until_its_executor_answers(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert message_in(bound.handle(CANCEL), TaskKill) == KILL
    for _ in range(3):
        assert message_in(bound.wait(KILL_AGAIN_NS), TaskKill) == KILL
    bound.hear(CHILD, statuses(KILLED))
    assert sent(bound.wait(HOUR), TaskKill) == ()


def test_nothing_is_retried_while_the_end_of_a_task_is_not_stored(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    bound.handle(CANCEL)
    stored, submission = row_of(bound), bound.state.origin.submissions[TASK].row
    bound.hear(CHILD, statuses(KILLED))
    assert TASK not in bound.state.origin.tasks
    (answer,) = bound.handle(retry_of(submission, [stored]))
    assert isinstance(answer, Answer)
    assert answer.problem
    assert bound.state.origin.waiting == 0


def test_a_task_that_may_not_have_arrived_is_asked_for_by_name_and_not_sent_again(bound: Rig) -> None:
    assert message_in(bound.handle(CANCEL), TaskStatusQuery) == QUERY
    bound.handle(TransferFailed(claim=CLAIM, text="reset"))
    later = bound.wait(KILL_AGAIN_NS)
    assert sent(later, TaskTransfer) == ()
    assert message_in(later, TaskStatusQuery) == QUERY
    # Nor with a renewal that does not list it.
    assert sent(bound.hear(CHILD, statuses(renewal=1)), TaskTransfer) == ()
    denied = status(attempt(), TaskState.DENIED, cause=Cause.NEVER_ARRIVED)
    bound.hear(CHILD, statuses(denied))
    assert bound.state.origin.tasks == {}


def test_a_restarted_origin_kills_again_and_sends_nothing_of_what_was_cancelled(bound: Rig) -> None:
    bound.handle(CANCEL)
    origin = bound.state.origin
    rows = (origin.submissions[TASK].row, row_of(bound), origin.claims[CLAIM].row)
    after = Rig(module=make_module())
    resumed = after.resume(Remains(rows=rows))
    assert sent((*resumed, *after.wait(0)), TaskTransfer) == ()
    after.greet(CHILD)
    assert message_in(after.wait(KILL_AGAIN_NS), TaskStatusQuery) == QUERY


def test_a_cancelled_task_may_run_until_the_lease_as_its_origin_counts_it(bound: Rig) -> None:
    assert may_run_until(bound.state, row_of(bound)) is None
    bound.handle(CANCEL)
    bound.handle(LinkDown(neighbor=CHILD))
    until = may_run_until(bound.state, row_of(bound))
    assert until is not None
    bound.wait(until - bound.now)
    assert bound.state.origin.tasks == {}


def test_of_a_submission_all_of_which_is_cancelled_those_are_known_that_may_run_on(bound: Rig) -> None:
    assert killed_but_open(bound.state, TASK) == ()
    bound.handle(CANCEL)
    assert killed_but_open(bound.state, TASK) == (row_of(bound),)
    retry(bound)
    assert killed_but_open(bound.state, TASK) == ()
    bound.handle(CANCEL)
    bound.hear(CHILD, statuses(KILLED))
    assert killed_but_open(bound.state, TASK) == ()


def test_an_array_may_run_on_only_if_all_its_members_are_cancelled(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(3), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=2))
    for member in (1, 3):
        rig.handle(CancelRequested(answer_to=AnswerTo(1), task=TASK._replace(member=member)))
        assert killed_but_open(rig.state, TASK) == ()
    rig.handle(CancelRequested(answer_to=AnswerTo(1), task=TASK._replace(member=2)))
    assert [row.id.member for row in killed_but_open(rig.state, TASK)] == [1, 2]


def test_a_retry_waits_until_the_executor_has_said_that_the_cancelled_attempt_is_over(bound: Rig) -> None:
    bound.handle(CANCEL)
    assert sent((*retry(bound), *bound.wait(MINUTE)), SchedRequest) == ()
    actions = bound.hear(CHILD, statuses(KILLED))
    row = row_of(bound)
    assert (row.state, row.is_cancelled, row.is_wanted_again) == (TaskState.EXECUTING, False, False)
    assert message_in(actions, TaskTransfer).tasks[0].attempt == attempt(2)


def test_a_retry_replaces_inputs_also_for_a_task_whose_cancelled_attempt_is_not_over(rig: Rig) -> None:
    old, new = (InputFile(name="data", sha256=bytes([number]) * 32, size_bytes=1) for number in (1, 2))
    ((_, ask),) = sent(rig.submit(command=replace(COMMAND, inputs=(old,))), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.handle(CANCEL)
    submission = rig.state.origin.submissions[TASK].row
    actions = rig.handle(replace(retry_of(submission, [row_of(rig)]), inputs=(new,)))
    assert rig.state.origin.submissions[TASK].row in [store.row for store in only(actions, Store)]
    again = message_in(rig.hear(CHILD, statuses(KILLED)), TaskTransfer).tasks[0]
    assert (again.attempt, again.command.inputs) == (attempt(2), (new,))


def test_a_retry_waits_until_the_lease_of_an_executor_that_is_not_heard_has_run_out(bound: Rig) -> None:
    bound.handle(CANCEL)
    bound.handle(LinkDown(neighbor=CHILD))
    retry(bound)
    until = may_run_until(bound.state, row_of(bound))
    assert until is not None
    bound.wait(until - bound.now - 1)
    assert row_of(bound).attempt == 1
    bound.wait(1)
    assert (row_of(bound).claim, bound.state.origin.waiting) == (None, 1)


def test_a_task_that_is_cancelled_again_is_not_retried(bound: Rig) -> None:
    bound.handle(CANCEL)
    retry(bound)
    bound.handle(CANCEL)
    bound.hear(CHILD, statuses(KILLED))
    assert bound.state.origin.tasks == {}


@pytest.mark.parametrize("cut", [None, (ORIGIN, HOP), (HOP, EXECUTOR)])
def test_a_cancelled_task_never_runs_whatever_is_repaired(cut: tuple[SystemId, SystemId] | None) -> None:
    chain = Chain(stream_failure="refused")
    chain.start()
    chain.post(ORIGIN, submitted())
    chain.run(until=Instant(SECOND // 2))
    (row,) = chain.modules[ORIGIN].state.origin.tasks.values()
    assert row.claim is not None
    if cut is not None:
        chain.cut(cut)
    chain.post(ORIGIN, CancelRequested(answer_to=AnswerTo(2), task=row.id))
    chain.stream_failure = ""
    chain.run(until=Instant(2 * MINUTE))
    assert not chain.starts
    assert chain.modules[ORIGIN].state.origin.tasks == {}
