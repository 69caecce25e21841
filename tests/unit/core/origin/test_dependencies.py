"""Tasks that wait for other tasks of their origin: until those have started, ended, or ended well."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Store, TaskEnded
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import DEPENDENCY_FAILED, Dependency, Predecessor, When
from messiahs.core.interface.events import AnswerTo, CancelRequested, HandRequested
from messiahs.core.interface.messages import SchedRequest, Substate, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import SECOND
from messiahs.core.origin.awaited import note_ended, note_started
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    TASK,
    Rig,
    accept,
    answered,
    attempt,
    deny,
    make_module,
    only,
    retry_of,
    sent,
    status,
    statuses,
    tdv,
)

ENDINGS = {
    "well": status(attempt()),
    "badly": status(attempt(), exit_code=1),
    "by a signal": status(attempt(), TaskState.ABORTED, exit_code=None, signal=9),
}
LATER = TASK._replace(number=2)


def submit_after(
    rig: Rig,
    on: TaskId = TASK,
    *,
    when: When = When.OK,
    number: int = 2,
    members: int = 0,
    is_good: bool | None = None,
    **more: object,
) -> tuple[Action, ...]:
    after = (Predecessor(dependency=Dependency(on=on, when=when.value), is_good=is_good),)
    return rig.submit(members, key=ClientKey(f"k{number}"), after=after, **more)


def waits(rig: Rig, task: TaskId = LATER) -> bool:
    """Whether all tasks of a submission that has not ended wait for others."""
    submission = rig.state.origin.submissions[task]
    return sum(last - first + 1 for first, last in submission.dependent) == submission.open_members


def final_rows(actions: tuple[Action, ...], task: TaskId = LATER) -> list[TaskRow]:
    rows = [stored.row for stored in only(actions, Store) if isinstance(stored.row, TaskRow)]
    return [row for row in rows if row.id.submission == task and row.state is not TaskState.EXECUTING]


def restarted(rig: Rig, *ended: TaskRow) -> Rig:
    again = Rig(make_module(), now=rig.now)
    live = rig.state.origin
    submissions = tuple(each.row for each in live.submissions.values())
    claims = tuple(claim.row for claim in live.claims.values())
    again.resume(Remains(rows=(rig.state.counters, *submissions, *live.tasks.values(), *ended, *claims)))
    return again


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind a task in a claim that the child brought; it does not run yet."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def run(rig: Rig, member: int = 0) -> tuple[Action, ...]:
    started = status(attempt(member=member), TaskState.EXECUTING, substate=Substate.RUNNING, exit_code=None)
    return rig.hear(CHILD, statuses(started))


def test_a_task_waits_until_another_one_runs(bound: Rig) -> None:
    assert not sent(submit_after(bound, when=When.STARTED), SchedRequest)
    assert waits(bound)
    run(bound)
    assert not waits(bound)
    assert bound.state.origin.submissions[LATER].row.after == (
        Dependency(on=TASK, when=When.STARTED.value, is_met=True),
    )


def test_a_task_that_already_runs_is_not_waited_for(bound: Rig) -> None:
    run(bound)
    submit_after(bound, when=When.STARTED)
    assert not waits(bound)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("when", [When.STARTED, When.ENDED])
def test_a_task_that_waits_for_any_end_is_placed_however_the_other_one_ended(
    bound: Rig, ending: str, when: When
) -> None:
    submit_after(bound, when=when)
    bound.hear(CHILD, statuses(ENDINGS[ending]))
    assert not waits(bound)


def test_a_task_is_placed_once_the_other_one_has_ended_with_exit_code_0(bound: Rig) -> None:
    submit_after(bound)
    run(bound)
    assert waits(bound)
    bound.hear(CHILD, statuses(ENDINGS["well"]))
    assert not waits(bound)


@pytest.mark.parametrize(("ending", "how"), [("badly", "exit code 1"), ("by a signal", "signal 9")])
def test_a_task_that_can_never_run_is_denied_with_all_that_wait_for_it(bound: Rig, ending: str, how: str) -> None:
    last = LATER._replace(number=3)
    submit_after(bound)
    submit_after(bound, LATER, number=3)
    actions = bound.hear(CHILD, statuses(ENDINGS[ending]))
    ((row,), (end,)) = final_rows(actions), final_rows(actions, last)
    assert (row.state, end.state) == (TaskState.DENIED, TaskState.DENIED)
    assert [(each.rule, each.text) for each in (*row.reasons, *end.reasons)] == [
        (DEPENDENCY_FAILED, f"{TASK} did not end with exit code 0 ({how})"),
        (DEPENDENCY_FAILED, f"{LATER} did not end with exit code 0 (denied)"),
    ]
    assert {each.task for each in only(actions, TaskEnded)} == {TASK, LATER, last}
    assert not bound.state.origin.awaited


def test_a_long_chain_of_tasks_that_can_never_run_is_denied_in_one_step(bound: Rig) -> None:
    for number in range(2, 402):
        submit_after(bound, TASK._replace(number=number - 1), number=number)
    bound.hear(CHILD, statuses(ENDINGS["badly"]))
    assert not bound.state.origin.submissions


def test_a_cancelled_task_has_ended_when_its_attempt_has(bound: Rig) -> None:
    submit_after(bound, when=When.ENDED)
    bound.handle(CancelRequested(answer_to=AnswerTo(5), task=TASK))
    assert waits(bound)
    bound.hear(CHILD, statuses(status(attempt(), TaskState.KILLED, exit_code=None)))
    assert not waits(bound)


def test_a_task_waits_for_all_that_it_names(bound: Rig) -> None:
    bound.submit(key=ClientKey("other"), tdv=tdv(mem=1))
    after = tuple(Predecessor(dependency=Dependency(on=on, when=When.ENDED.value)) for on in (TASK, LATER))
    third = LATER._replace(number=3)
    bound.submit(key=ClientKey("k3"), after=after)
    bound.hear(CHILD, statuses(ENDINGS["badly"]))
    assert waits(bound, third)
    assert [each.is_met for each in bound.state.origin.submissions[third].row.after] == [True, False]
    bound.handle(CancelRequested(answer_to=AnswerTo(5), task=LATER))
    assert third in bound.state.origin.submissions
    assert not waits(bound, third)


def test_an_array_is_waited_for_as_a_whole_and_its_first_failure_decides(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(3), SchedRequest)
    submit_after(rig)
    submit_after(rig, when=When.ENDED, number=3)
    submit_after(rig, when=When.STARTED, number=4, members=2)
    rig.hear(CHILD, accept(ask.id, places=3))
    everyone, started = LATER._replace(number=3), LATER._replace(number=4)
    run(rig, 1)
    run(rig, 2)
    assert waits(rig, started)
    run(rig, 3)
    assert not waits(rig, started)
    rig.hear(CHILD, statuses(status(attempt(member=1))))
    assert waits(rig)
    assert final_rows(rig.hear(CHILD, statuses(status(attempt(member=2), exit_code=3))))
    assert waits(rig, everyone)
    rig.hear(CHILD, statuses(status(attempt(member=3))))
    assert not waits(rig, everyone)


def test_starts_and_ends_of_members_that_decide_nothing_are_not_noted_for_those_that_wait_for_the_array(
    rig: Rig,
) -> None:
    ((_, ask),) = sent(rig.submit(4), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=4))
    for number, when in enumerate((When.STARTED, When.ENDED, When.OK), 2):
        submit_after(rig, when=when, number=number)
    origin, array = rig.state.origin, rig.state.origin.submissions[TASK]
    run(rig, 1)
    run(rig, 2)
    note_ended(rig.state, array, [(1, 1)], is_good=True, how="", had_started=True)
    third = TASK._replace(member=3)
    origin.tasks[third] = replace(origin.tasks[third], started_at=rig.now)
    note_started(rig.state, origin.tasks[third], had_started=False)
    assert not origin.awaited_changes


def test_the_last_member_that_has_not_started_lets_those_that_wait_for_a_start_go_also_by_its_end(rig: Rig) -> None:
    rig.submit(3)
    ((_, ask),) = sent(rig.submit(2, key=ClientKey("other"), tdv=tdv(mem=1)), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=2))
    array, later = LATER, LATER._replace(number=3)
    submit_after(rig, array, when=When.STARTED, number=3)
    started = status(attempt(member=1, task=array), TaskState.EXECUTING, substate=Substate.RUNNING, exit_code=None)
    rig.hear(CHILD, statuses(started))
    assert waits(rig, later)
    rig.hear(CHILD, statuses(status(attempt(member=2, task=array))))
    assert not waits(rig, later)


def test_members_that_have_started_are_counted_anew_after_a_loss_and_after_a_restart(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(2), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=2))
    run(rig, 1)
    run(rig, 2)
    assert rig.state.origin.submissions[TASK].started == 2
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.ABORTED, exit_code=None, cause=Cause.LOST)))
    assert rig.state.origin.submissions[TASK].started == 1
    assert restarted(rig).state.origin.submissions[TASK].started == 1


def test_one_member_of_an_array_is_waited_for(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(2), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=2))
    submit_after(rig, TASK._replace(member=2))
    rig.hear(CHILD, statuses(status(attempt(member=1), exit_code=1)))
    assert waits(rig)
    rig.hear(CHILD, statuses(status(attempt(member=2))))
    assert not waits(rig)


def test_members_that_end_untried_are_waited_for(rig: Rig) -> None:
    rig.submit(5)
    submit_after(rig, TASK._replace(member=4))
    submit_after(rig, when=When.ENDED, number=3)
    actions = rig.handle(CancelRequested(answer_to=AnswerTo(5), task=TASK))
    assert final_rows(actions)
    assert not waits(rig, LATER._replace(number=3))


def test_the_first_failure_of_an_array_decides_also_if_several_runs_of_members_end_at_once(rig: Rig) -> None:
    asked = rig.submit(5, waits=False)
    submit_after(rig)
    rig.handle(HandRequested(answer_to=AnswerTo(9), task=TASK._replace(member=3), act=HandAct.HOLD))
    while asks := sent(asked, SchedRequest):
        ((to, ask),) = asks
        asked = rig.hear(to, deny(ask.id))
    assert rig.state.origin.submissions[TASK].open_members == 1
    assert final_rows(asked)


def test_an_ended_task_counts_as_its_stored_row_says(rig: Rig) -> None:
    assert answered(submit_after(rig)).problem == f"the end of {TASK} is not stored yet: try again"
    submit_after(rig, is_good=True)
    assert not waits(rig, TASK)
    (row,) = final_rows(submit_after(rig, TASK._replace(number=77), is_good=False, number=3))
    assert row.state is TaskState.DENIED


def test_a_waiting_task_is_cancelled_at_once(bound: Rig) -> None:
    submit_after(bound, members=3)
    bound.handle(CancelRequested(answer_to=AnswerTo(5), task=LATER._replace(member=2)))
    assert waits(bound)
    bound.handle(CancelRequested(answer_to=AnswerTo(5), task=LATER))
    assert LATER not in bound.state.origin.submissions
    assert not bound.state.origin.awaited


def test_a_waiting_task_is_denied_at_its_deadline(bound: Rig) -> None:
    submit_after(bound, deadline_ns=SECOND)
    (row,) = final_rows(bound.wait(SECOND))
    assert [each.text for each in row.reasons] == ["it was waiting for other tasks until its deadline"]


def test_a_task_on_hold_is_not_placed_when_the_other_one_has_ended(bound: Rig) -> None:
    submit_after(bound)
    hold = HandRequested(answer_to=AnswerTo(9), task=LATER, act=HandAct.HOLD)
    bound.handle(hold)
    bound.hear(CHILD, statuses(ENDINGS["well"]))
    assert bound.state.origin.submissions[LATER].aside == [(0, 0)]
    bound.handle(replace(hold, act=HandAct.RELEASE))
    assert not bound.state.origin.submissions[LATER].aside


def test_a_released_task_still_waits_for_the_other_one(bound: Rig) -> None:
    submit_after(bound)
    hold = HandRequested(answer_to=AnswerTo(9), task=LATER, act=HandAct.HOLD)
    bound.handle(hold)
    bound.handle(replace(hold, act=HandAct.RELEASE))
    assert waits(bound)


def test_tasks_wait_on_after_a_restart(bound: Rig) -> None:
    submit_after(bound, members=4)
    again = restarted(bound)
    again.greet(CHILD)
    assert waits(again)
    again.hear(CHILD, statuses(ENDINGS["well"]))
    assert not waits(again)
    assert not restarted(again).state.origin.submissions[LATER].dependent


def retry(
    rig: Rig, row: SubmissionRow, *tried: TaskRow, is_good: bool | None = None, is_forgotten: bool = False
) -> tuple[Action, ...]:
    unmet = (each for each in row.after if not each.is_met)
    after = tuple(Predecessor(dependency=each, is_good=is_good, is_forgotten=is_forgotten) for each in unmet)
    return rig.handle(retry_of(row, tried, after=after))


def ended_submission(actions: tuple[Action, ...], task: TaskId = LATER) -> SubmissionRow:
    rows = [stored.row for stored in only(actions, Store) if isinstance(stored.row, SubmissionRow)]
    return [row for row in rows if row.id == task][-1]


def test_a_denied_task_is_retried_after_the_other_one_and_waits_for_it_again(bound: Rig) -> None:
    submit_after(bound)
    actions = bound.hear(CHILD, statuses(ENDINGS["badly"]))
    row, (denied,) = ended_submission(actions), final_rows(actions)
    assert answered(retry(bound, row, denied, is_good=False)).problem == (
        f"{TASK} did not end with exit code 0: retry that first, then this"
    )
    (failed,) = final_rows(actions, TASK)
    assert not answered(retry(bound, ended_submission(actions, TASK), failed)).problem
    assert not answered(retry(bound, row, denied)).problem
    assert waits(bound)


def test_a_denied_task_whose_other_one_is_forgotten_is_not_told_to_try_again(bound: Rig) -> None:
    submit_after(bound)
    actions = bound.hear(CHILD, statuses(ENDINGS["badly"]))
    row, (denied,) = ended_submission(actions), final_rows(actions)
    assert answered(retry(bound, row, denied)).problem == f"the end of {TASK} is not stored yet: try again"
    assert answered(retry(bound, row, denied, is_forgotten=True)).problem == (
        f"{TASK} is no longer known here, so nothing can wait for it: submit anew, without that condition"
    )


def test_a_task_that_has_run_is_retried_whatever_has_become_of_the_other_one(bound: Rig) -> None:
    submit_after(bound, is_good=None)
    bound.hear(CHILD, statuses(ENDINGS["well"]))
    actions = bound.handle(CancelRequested(answer_to=AnswerTo(5), task=LATER))
    (killed,) = final_rows(actions)
    assert not answered(retry(bound, ended_submission(actions), killed)).problem
    assert not waits(bound)
