"""What became of tasks, as their origin learns it: results, renewals, losses and the next attempt."""

from collections.abc import Iterator

import pytest

from messiahs.core.interface.actions import Action, FetchOutputs, SendControl, Store, TaskEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, TransferFailed
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedRequest,
    Substate,
    TaskKill,
    TaskState,
    TaskStatusAck,
    TaskStatusQuery,
    TaskTransfer,
)
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.rows import TaskRow
from messiahs.core.interface.spliced_bytes import InputsMoving
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND
from messiahs.core.model.task_files import Output
from messiahs.core.state.origin import Losses
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    LEG,
    PARENT,
    RENEWAL_NS,
    SIBLING,
    TASK,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    reported,
    sent,
    status,
    statuses,
)

OUTPUTS = (Output(name="stdout", size_bytes=5), Output(name="stderr", size_bytes=0))


def bind(rig: Rig, members: int = 0, *, places: int = 1, **more: object) -> None:
    """Submit tasks, and let them be bound to a claim that the child brings."""
    ((_, ask),) = sent(rig.submit(members, **more), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=places))


@pytest.fixture
def bound(rig: Rig) -> Iterator[Rig]:
    """Bind one single task."""
    bind(rig)
    yield rig
    rig.check()


def final(actions: tuple[Action, ...]) -> TaskRow:
    rows = [action.row for action in only(actions, Store) if isinstance(action.row, TaskRow)]
    return rows[0] if len(rows) == 1 and rows[0].ended_at is not None else pytest.fail(f"not one final row: {rows}")


def acked(actions: tuple[Action, ...]) -> TaskStatusAck:
    return message_in(actions, TaskStatusAck)


def test_a_result_is_taken_stored_and_acknowledged(bound: Rig) -> None:
    actions = bound.hear(CHILD, statuses(status(attempt(), exit_code=3)))
    row = final(actions)
    assert (row.state, row.executed_on, row.claim) == ("finished", "far", None)
    assert row.result is not None
    assert row.result.exit_code == 3
    assert acked(actions).taken == (attempt(),)
    assert TaskEnded(task=TASK) in actions
    assert not (bound.state.origin.submissions)
    assert not (bound.state.origin.tasks)


@pytest.mark.parametrize("state", [TaskState.ABORTED, TaskState.KILLED, TaskState.FINISHED])
def test_the_executor_says_how_a_task_ended(bound: Rig, state: TaskState) -> None:
    assert final(bound.hear(CHILD, statuses(status(attempt(), state)))).state == state


def test_only_the_bound_attempts_result_is_taken(bound: Rig) -> None:
    actions = bound.hear(CHILD, statuses(status(attempt(2)), status(attempt(1, member=4))))
    assert acked(actions) == TaskStatusAck(claim=CLAIM, unbound=(attempt(2), attempt(1, member=4)))
    assert only(actions, TaskEnded) == ()


def test_a_result_that_comes_twice_is_taken_once(rig: Rig) -> None:
    bind(rig, members=2, places=2)
    rig.hear(CHILD, statuses(status(attempt(member=1))))
    actions = rig.hear(CHILD, statuses(status(attempt(member=1), exit_code=9)))
    assert acked(actions).unbound == (attempt(member=1),)
    assert only(actions, TaskEnded) == ()


def test_a_result_in_a_claim_that_is_not_held_ends_that_claim(bound: Rig) -> None:
    other = CLAIM._replace(number=9)
    actions = bound.hear(CHILD, statuses(status(attempt()), claim=other))
    assert actions == (SendControl(to=CHILD, message=ClaimEnd(claim=other)),)


def test_a_result_from_off_the_path_of_its_claim_is_reported(bound: Rig) -> None:
    assert reported(bound.hear(PARENT, statuses(status(attempt())))) == "no_such_claim"
    assert bound.state.origin.tasks[TASK].claim == CLAIM


def test_outputs_are_fetched_before_a_result_is_taken(bound: Rig) -> None:
    actions = bound.hear(CHILD, statuses(status(attempt(), outputs=OUTPUTS)))
    (fetch,) = only(actions, FetchOutputs)
    assert fetch.outputs == OUTPUTS
    assert not (sent(actions, TaskStatusAck))
    assert not (only(actions, TaskEnded))
    home = bound.handle(OutputsHome(attempt=attempt()))
    assert final(home).state == "finished"
    assert acked(home).taken == (attempt(),)


def test_a_result_repeated_while_its_outputs_are_on_their_way_starts_no_second_fetch(bound: Rig) -> None:
    said = statuses(status(attempt(), outputs=OUTPUTS))
    bound.hear(CHILD, said)
    assert bound.hear(CHILD, said) == ()
    assert bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING))) == ()
    assert bound.state.origin.tasks[TASK].substate is Substate.STAGING


def test_empty_outputs_are_not_fetched(bound: Rig) -> None:
    actions = bound.hear(CHILD, statuses(status(attempt(), outputs=(OUTPUTS[1],))))
    assert final(actions).state == "finished"


def test_a_fetch_that_fails_is_repeated_with_growing_delays(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), outputs=OUTPUTS)))
    failed = OutputsFailed(attempt=attempt(), leg=LEG, text="connection refused", is_gone=False)
    for delay_ns in (250 * MILLISECOND, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 10 * SECOND):
        assert bound.handle(failed) == ()
        assert only(bound.wait(delay_ns - 1), FetchOutputs) == ()
        assert len(only(bound.wait(1), FetchOutputs)) == 1
    assert final(bound.handle(OutputsHome(attempt=attempt()))).state == "finished"


def test_outputs_that_are_gone_make_the_attempt_a_lost_one(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), outputs=OUTPUTS)))
    actions = bound.handle(OutputsFailed(attempt=attempt(), leg=LEG, text="no such file", is_gone=True))
    assert acked(actions).taken == (attempt(),)
    row = bound.state.origin.tasks[TASK]
    assert (row.claim, row.substate, row.failures, row.history[-1].event) == (None, Substate.QUEUED, 0, "lost")


def test_outputs_of_an_attempt_that_was_given_up_are_no_news(bound: Rig) -> None:
    assert bound.handle(OutputsHome(attempt=attempt())) == ()
    assert bound.handle(OutputsFailed(attempt=attempt(7), leg=LEG, text="", is_gone=True)) == ()


def test_a_non_zero_exit_is_tried_again_as_often_as_the_user_wants(rig: Rig) -> None:
    bind(rig, retries=2)
    for number in (1, 2):
        actions = rig.hear(CHILD, statuses(status(attempt(number), exit_code=1)))
        assert message_in(actions, TaskTransfer).tasks[0].attempt == attempt(number + 1)
    row = final(rig.hear(CHILD, statuses(status(attempt(3), exit_code=1))))
    assert (row.state, row.attempt, row.failures) == ("finished", 3, 2)


@pytest.mark.parametrize("state", [TaskState.ABORTED, TaskState.KILLED])
def test_only_a_non_zero_exit_counts_as_a_failure_to_be_retried(rig: Rig, state: TaskState) -> None:
    bind(rig, retries=2)
    assert final(rig.hear(CHILD, statuses(status(attempt(), state)))).attempt == 1


@pytest.mark.parametrize("cause", ["output_missing", "too_many_outputs"])
def test_a_non_zero_exit_is_tried_again_although_an_output_is_missing_too(rig: Rig, cause: str) -> None:
    bind(rig, retries=1)
    said = status(attempt(1), TaskState.ABORTED, exit_code=3, cause=cause)
    assert message_in(rig.hear(CHILD, statuses(said)), TaskTransfer).tasks[0].attempt == attempt(2)


@pytest.mark.parametrize("state", [TaskState.REVOKED, TaskState.DENIED])
def test_a_lost_or_denied_attempt_is_followed_by_the_next_elsewhere(bound: Rig, state: TaskState) -> None:
    actions = bound.hear(CHILD, statuses(status(attempt(), state)))
    assert acked(actions).taken == (attempt(),)
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=CLAIM)),)
    ((_, ask),) = sent(bound.wait(2 * SECOND), SchedRequest)
    actions = bound.hear(
        SIBLING if state is TaskState.REVOKED else CHILD, accept(ask.id, claim=CLAIM._replace(number=2))
    )
    assert message_in(actions, TaskTransfer).tasks[0].attempt == attempt(2)


def test_no_attempt_is_bound_while_the_last_one_may_still_run(bound: Rig) -> None:
    for _ in range(4):
        actions = bound.wait(LEASE_NS // 4)
        assert not (sent(actions, SchedRequest))
        assert not (sent(actions, TaskTransfer))
    assert bound.state.origin.tasks[TASK].attempt == 1


def test_when_the_lease_has_run_out_here_too_its_attempts_are_lost(bound: Rig) -> None:
    wait_ns = LEASE_NS + LEASE_NS // 10 + 10 * SECOND
    bound.wait(wait_ns - 1)
    assert bound.state.origin.tasks[TASK].claim == CLAIM
    actions = bound.wait(1)
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=CLAIM)),)
    assert bound.state.origin.claims == {}
    row = bound.state.origin.tasks[TASK]
    assert (row.attempt, row.claim, row.history[-1].event) == (1, None, "lost")


def test_a_lease_that_runs_out_while_outputs_come_home_leaves_nothing_behind(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), outputs=OUTPUTS)))
    bound.handle(OutputsFailed(attempt=attempt(), leg=LEG, text="", is_gone=False))
    bound.wait(2 * LEASE_NS)
    origin = bound.state.origin
    assert (origin.fetching, origin.fetch_failures, origin.fetch_legs) == ({}, {}, {})
    assert bound.handle(OutputsHome(attempt=attempt())) == ()


def test_a_renewal_is_answered_and_restarts_the_origins_timer(bound: Rig) -> None:
    bound.wait(LEASE_NS)
    actions = bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING), renewal=5))
    assert acked(actions) == TaskStatusAck(claim=CLAIM, renewal=5)
    bound.wait(LEASE_NS)
    assert CLAIM in bound.state.origin.claims


def test_a_bound_attempt_of_which_nothing_was_heard_is_brought_again_if_a_renewal_does_not_list_it(bound: Rig) -> None:
    early = bound.hear(CHILD, statuses(renewal=1))
    assert sent(early, TaskTransfer) == ()
    for renewal in (2, 3):
        bound.wait(6 * SECOND)
        actions = bound.hear(CHILD, statuses(renewal=renewal))
        assert [task.attempt for task in message_in(actions, TaskTransfer).tasks] == [attempt()]
        assert sent(actions, TaskStatusQuery) == ()


def test_what_could_not_be_brought_for_a_lease_is_asked_for_by_name(bound: Rig) -> None:
    for renewal in range(RENEWALS_PER_LEASE):
        bound.wait(RENEWAL_NS)
        assert sent(bound.hear(CHILD, statuses(renewal=renewal + 1)), TaskStatusQuery) == ()
    bound.wait(RENEWAL_NS)
    actions = bound.hear(CHILD, statuses(renewal=9))
    assert message_in(actions, TaskStatusQuery) == TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))
    assert sent(actions, TaskTransfer) == ()


def test_what_its_executor_refused_to_be_brought_is_asked_for_by_name(bound: Rig) -> None:
    bound.handle(TransferFailed(claim=CLAIM, text="the disk has no room for its inputs", kind=TransferFailure.REFUSED))
    bound.wait(6 * SECOND)
    actions = bound.hear(CHILD, statuses(renewal=1))
    assert message_in(actions, TaskStatusQuery) == TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))
    assert sent(actions, TaskTransfer) == ()
    bound.handle(TransferFailed(claim=CLAIM, text="reset"))
    bound.wait(6 * SECOND)
    assert sent(bound.hear(CHILD, statuses(renewal=2)), TaskStatusQuery) == ()


def test_an_attempt_that_was_there_and_that_a_renewal_does_not_list_is_asked_for_by_name(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING), renewal=1))
    bound.wait(6 * SECOND)
    actions = bound.hear(CHILD, statuses(renewal=2))
    assert message_in(actions, TaskStatusQuery) == TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))
    assert sent(actions, TaskTransfer) == ()


def test_a_status_says_whether_a_task_runs(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    row = bound.state.origin.tasks[TASK]
    assert (row.substate, row.started_at) == (Substate.RUNNING, bound.now)


def test_tasks_that_may_not_have_arrived_are_sent_again_until_they_are_heard_of(rig: Rig) -> None:
    bind(rig, members=2, places=2)
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.EXECUTING)))
    for _ in range(2):
        assert rig.handle(TransferFailed(claim=CLAIM, text="reset")) == ()
        again = message_in(rig.wait(SECOND), TaskTransfer)
        assert [task.attempt for task in again.tasks] == [attempt(member=2)]
    rig.hear(CHILD, statuses(status(attempt(member=2), TaskState.EXECUTING)))
    rig.handle(TransferFailed(claim=CLAIM, text="reset"))
    assert sent(rig.wait(2 * SECOND), TaskTransfer) == ()


def test_a_claim_that_its_executor_ends_gets_no_further_task_and_ends_with_its_last(rig: Rig) -> None:
    bind(rig, members=2, places=1)
    assert rig.hear(CHILD, ClaimEnd(claim=CLAIM)) == ()
    actions = rig.hear(CHILD, statuses(status(attempt(member=1))))
    assert sent(actions, TaskTransfer) == ()
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=CLAIM)),)
    (shape,) = rig.state.origin.shapes.values()
    assert (shape.count, shape.claims) == (1, [])


def test_a_claim_whose_window_has_shrunk_gets_no_task_beyond_it(rig: Rig) -> None:
    bind(rig, members=4, places=2)
    assert rig.hear(CHILD, statuses(window=1)) == ()
    taken = rig.hear(CHILD, statuses(status(attempt(member=1)), window=1))
    assert sent(taken, TaskTransfer) == ()
    assert rig.state.origin.claims[CLAIM].window == 1


def test_the_end_of_a_claim_from_off_its_path_is_reported(bound: Rig) -> None:
    assert reported(bound.hear(SIBLING, ClaimEnd(claim=CLAIM))) == "no_such_claim"
    assert not bound.state.origin.claims[CLAIM].is_ending


def test_an_executor_that_knows_the_claim_no_more_is_asked_by_name_and_its_word_is_final(bound: Rig) -> None:
    actions = bound.hear(CHILD, ClaimEnd(claim=CLAIM, is_forgotten=True))
    assert actions == (SendControl(to=CHILD, message=TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))),)
    bound.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.LOST), window=0))
    assert bound.state.origin.claims == {}
    assert len(sent(bound.wait(2 * SECOND), SchedRequest)) == 1


def test_a_cancelled_task_that_is_said_to_run_is_killed_again(bound: Rig) -> None:
    actions = bound.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    kill = TaskKill(claim=CLAIM, attempts=(attempt(),))
    assert message_in(actions, TaskKill) == kill
    again = bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert message_in(again, TaskKill) == kill


def test_a_cancelled_task_is_killed_whatever_its_executor_says_of_its_end(bound: Rig) -> None:
    bound.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    row = final(bound.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED))))
    assert (row.state, row.executed_on) == ("killed", "far")


def test_a_cancelled_task_that_cannot_be_reached_is_killed_when_its_lease_has_run_out(bound: Rig) -> None:
    bound.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    assert final(bound.wait(2 * LEASE_NS)).state == "killed"


def test_what_is_lost_after_its_deadline_is_not_tried_again(rig: Rig) -> None:
    bind(rig, deadline_ns=SECOND, retries=5)
    rig.wait(SECOND)
    assert rig.state.origin.tasks[TASK].claim == CLAIM
    assert final(rig.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED)))).state == "denied"


def test_a_non_zero_exit_after_the_deadline_is_the_result(rig: Rig) -> None:
    bind(rig, deadline_ns=SECOND, retries=5)
    rig.wait(2 * SECOND)
    assert final(rig.hear(CHILD, statuses(status(attempt(), exit_code=2)))).state == "finished"
    assert rig.state.origin.losses == {}


def test_a_claim_of_which_nothing_is_heard_is_asked_for(bound: Rig) -> None:
    assert sent(bound.wait(5 * MINUTE - 1), TaskStatusQuery) == ()
    assert message_in(bound.wait(1), TaskStatusQuery) == TaskStatusQuery(claim=CLAIM, attempts=())
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert sent(bound.wait(5 * MINUTE - 1), TaskStatusQuery) == ()


def test_an_attempt_whose_inputs_are_on_their_way_is_not_missed(bound: Rig) -> None:
    bound.wait(6 * SECOND)
    bound.handle(InputsMoving(claim=CLAIM))
    assert sent(bound.hear(CHILD, statuses(renewal=1)), TaskStatusQuery) == ()


def test_acts_of_the_machines_owner_are_reported_and_kept(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(1), TaskState.EXECUTING, substate=Substate.RUNNING)))
    began_at = bound.now
    bound.wait(SECOND)
    held = statuses(status(attempt(1), TaskState.EXECUTING, substate=Substate.SUSPENDED, text="the owner is back"))
    (stored,) = only(bound.hear(CHILD, held), Store)
    row = bound.state.origin.tasks[TASK]
    assert (stored, row.substate, row.started_at) == (Store(row=row), Substate.SUSPENDED, began_at)
    assert only(bound.hear(CHILD, held), Store) == ()
    bound.hear(CHILD, statuses(status(attempt(1), TaskState.EXECUTING, substate=Substate.RUNNING)))
    leaving = statuses(status(attempt(1), TaskState.EXECUTING, substate=Substate.VACATING, text="the day begins"))
    bound.hear(CHILD, leaving)
    row = bound.state.origin.tasks[TASK]
    assert row.started_at == began_at
    assert [(entry.event, entry.text) for entry in row.history[1:]] == [
        ("suspended", "the owner is back"),
        ("resumed", ""),
        ("vacating", "the day begins"),
    ]


def test_what_an_owner_revoked_is_tried_again_and_consumes_no_retry(rig: Rig) -> None:
    bind(rig, retries=1)
    ended = status(attempt(1), TaskState.REVOKED, cause=Cause.VACATED, text="the day begins", exit_code=0)
    rig.hear(CHILD, statuses(ended))
    row = rig.state.origin.tasks[TASK]
    assert (row.state, row.substate, row.failures, row.executed_on) == (TaskState.EXECUTING, Substate.QUEUED, 0, "")
    assert (row.history[-1].event, row.history[-1].text, row.history[-1].module) == ("vacated", "the day begins", "far")
    assert rig.state.origin.losses == {CHILD: Losses(latest_at=rig.now, count=1)}
