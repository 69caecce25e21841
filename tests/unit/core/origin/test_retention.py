"""Ended tasks are kept for the retention time, and then forgotten: as a whole, and large arrays in pages."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, DropOutputs, Forget, Store
from messiahs.core.interface.dependencies import Dependency, Predecessor, When
from messiahs.core.interface.events import AnswerTo, CancelRequested, CleanRequested, PolicyChanged
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.retention_rows import ForgettingRow
from messiahs.core.interface.rows import Row, RowKind, SubmissionRow, TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import DAY, MINUTE, SECOND, Instant, after
from messiahs.core.origin.retention import PAGE, PAUSE_NS, SMALL_MEMBERS
from messiahs.core.origin.retry import GONE
from messiahs.core.queries import dependent_on, is_forgotten
from messiahs.core.recovery import Remains
from tests.unit.core.rig import START, TASK, Rig, answered, make_module, only, retry_of
from tests.unit.core.scripted_policy import ScriptedPolicy

KEPT_NS = MINUTE
SOON_NS = SECOND
SECOND_TASK = TASK._replace(number=2)


def make_rig(retention_ns: int | None = KEPT_NS, *, now: Instant = START) -> Rig:
    return Rig(make_module(policy=with_retention(retention_ns)), now=now)


def with_retention(retention_ns: int | None) -> ScriptedPolicy:
    return ScriptedPolicy(timeouts=Timeouts(retention_ns=retention_ns))


def submit(rig: Rig, number: int = 1, *, members: int = 0, after: tuple[Predecessor, ...] = ()) -> tuple[Action, ...]:
    return rig.submit(members, key=ClientKey(f"k{number}"), after=after)


def cancel(rig: Rig, task: TaskId = TASK) -> tuple[Action, ...]:
    """End waiting tasks."""
    return rig.handle(CancelRequested(answer_to=AnswerTo(2), task=task))


def end(rig: Rig, number: int = 1, *, members: int = 0) -> list[Row]:
    """Submit and end tasks, and return what is stored of them."""
    return stored(*submit(rig, number, members=members), *cancel(rig, TASK._replace(number=number)))


def stored(*actions: Action) -> list[Row]:
    return [each.row for each in actions if isinstance(each, Store)]


def forgotten(*actions: Action) -> list[tuple[RowKind, object]]:
    kinds = (RowKind.SUBMISSION, RowKind.TASK, RowKind.FORGETTING)
    return [each.key for each in actions if isinstance(each, Forget) and each.key[0] in kinds]


def waits_for(on: TaskId = TASK) -> tuple[Predecessor, ...]:
    return (Predecessor(dependency=Dependency(on=on, when=When.ENDED.value)),)


@pytest.fixture
def rig() -> Rig:
    return make_rig()


def test_an_ended_task_is_forgotten_with_all_that_is_keyed_by_it(rig: Rig) -> None:
    end(rig)
    assert not forgotten(*rig.wait(KEPT_NS - 1))
    actions = rig.wait(SOON_NS)
    assert forgotten(*actions) == [(RowKind.SUBMISSION, TASK), (RowKind.TASK, TASK)]
    assert only(actions, DropOutputs) == (DropOutputs(submission=TASK),)
    assert is_forgotten(rig.state, TASK)
    assert not rig.state.timers.is_set(TimerKind.RETENTION, rig.state.system)
    # Its key names nothing any more.
    assert answered(submit(rig)).task == SECOND_TASK


def test_without_another_setting_tasks_are_kept_for_seven_days() -> None:
    rig = Rig(make_module())
    end(rig)
    rig.now = after(rig.now, 7 * DAY - 1)
    assert not forgotten(*rig.wait(0))
    assert not is_forgotten(rig.state, TASK)
    assert forgotten(*rig.wait(1))


def test_a_task_is_kept_forever_if_the_policy_says_so() -> None:
    rig = make_rig(None)
    end(rig)
    rig.now = after(rig.now, 300 * DAY)
    assert not forgotten(*rig.wait(0))
    assert not rig.state.timers.is_set(TimerKind.RETENTION, rig.state.system)


def test_what_has_not_ended_is_kept(rig: Rig) -> None:
    submit(rig)
    rig.now = after(rig.now, 300 * DAY)
    assert not forgotten(*rig.wait(KEPT_NS))
    assert not is_forgotten(rig.state, TASK)


def test_an_array_is_kept_until_its_last_member_has_ended_long_ago(rig: Rig) -> None:
    submit(rig, members=3)
    cancel(rig, TASK._replace(member=2))
    assert not forgotten(*rig.wait(2 * KEPT_NS))
    cancel(rig)
    assert not forgotten(*rig.wait(KEPT_NS - 1))
    assert forgotten(*rig.wait(SOON_NS)) == [
        (RowKind.SUBMISSION, TASK),
        *((RowKind.TASK, TASK._replace(member=member)) for member in (1, 2, 3)),
    ]


def test_the_earliest_end_comes_first(rig: Rig) -> None:
    submit(rig)
    submit(rig, 2)
    cancel(rig, SECOND_TASK)
    rig.wait(KEPT_NS // 2)
    cancel(rig)
    assert forgotten(*rig.wait(KEPT_NS // 2 + SOON_NS))[0] == (RowKind.SUBMISSION, SECOND_TASK)
    assert not is_forgotten(rig.state, TASK)
    assert forgotten(*rig.wait(KEPT_NS // 2))[0] == (RowKind.SUBMISSION, TASK)


def test_ends_in_the_meantime_do_not_postpone_what_is_due(rig: Rig) -> None:
    end(rig)
    rig.now = after(rig.now, KEPT_NS)
    for number in range(2, 20):
        end(rig, number)
    assert (RowKind.SUBMISSION, TASK) in forgotten(*rig.wait(PAUSE_NS))


def test_no_step_forgets_more_than_a_page_of_a_large_array(rig: Rig) -> None:
    members = 2 * PAGE + 1
    end(rig, members=members)
    rig.now = after(rig.now, KEPT_NS)
    first = rig.wait(0)
    row = ForgettingRow(id=TASK, members=members)
    assert Store(row=row) in first
    assert forgotten(*first)[0] == (RowKind.SUBMISSION, TASK)
    assert is_forgotten(rig.state, TASK)
    steps = [first]
    while rig.state.timers.is_set(TimerKind.RETENTION, rig.state.system):
        steps.append(rig.wait(PAUSE_NS))
    assert len(steps) == 3
    assert all(len(forgotten(*step)) <= PAGE + 1 for step in steps)
    gone = [key for step in steps for key in forgotten(*step)]
    assert gone[1:] == [
        *((RowKind.TASK, TASK._replace(member=member)) for member in range(1, members + 1)),
        (RowKind.FORGETTING, TASK),
    ]


def test_after_a_crash_the_rest_of_a_large_array_is_forgotten(rig: Rig) -> None:
    members = 2 * PAGE
    end(rig, members=members)
    rig.now = after(rig.now, KEPT_NS)
    rig.wait(0)
    again = make_rig(now=rig.now)
    again.resume(Remains(rows=(rig.state.counters, ForgettingRow(id=TASK, members=members))))
    assert is_forgotten(again.state, TASK)
    gone = forgotten(*again.wait(4 * PAUSE_NS))
    assert gone[-1] == (RowKind.FORGETTING, TASK)
    assert len(gone) == members + 1


@pytest.mark.parametrize("members", [0, SMALL_MEMBERS + 1])
def test_a_task_is_kept_until_what_depends_on_it_has_ended(rig: Rig, members: int) -> None:
    submit(rig, members=members)
    submit(rig, 2, after=waits_for())
    cancel(rig)
    assert not forgotten(*rig.wait(3 * KEPT_NS))
    cancel(rig, SECOND_TASK)
    assert forgotten(*rig.wait(SOON_NS))[0] == (RowKind.SUBMISSION, TASK)
    assert not is_forgotten(rig.state, SECOND_TASK)


def test_a_task_for_which_another_one_still_waits_after_a_restart_is_kept(rig: Rig) -> None:
    rows = stored(*submit(rig), *submit(rig, 2, after=waits_for()), *cancel(rig))
    again = make_rig(now=after(rig.now, 2 * KEPT_NS))
    latest = {(type(row), getattr(row, "id", None)): row for row in (*rows, rig.state.counters)}
    live = rig.state.origin.submissions[SECOND_TASK].row
    again.resume(Remains(rows=(*(row for row in latest.values() if getattr(row, "id", None) != live.id), live)))
    assert not forgotten(*again.wait(3 * KEPT_NS))
    assert not is_forgotten(again.state, TASK)


def test_a_retried_task_is_not_forgotten_while_it_runs_again(rig: Rig) -> None:
    rows = end(rig)
    rig.wait(KEPT_NS // 2)
    answer = answered(retry(rig, rows))
    assert not answer.problem
    assert not forgotten(*rig.wait(3 * KEPT_NS))


def test_what_is_forgotten_cannot_be_retried_from_rows_that_were_read_before(rig: Rig) -> None:
    rows = end(rig)
    rig.wait(KEPT_NS + SOON_NS)
    assert answered(retry(rig, rows)).problem == f"{TASK} {GONE}"
    assert not rig.state.origin.submissions


def retry(rig: Rig, rows: list[Row]) -> tuple[Action, ...]:
    submission = [row for row in rows if isinstance(row, SubmissionRow)][-1]
    tried = {row.id: row for row in rows if isinstance(row, TaskRow) and row.state is not TaskState.EXECUTING}
    return rig.handle(retry_of(submission, tried.values()))


def test_tasks_of_a_release_without_retention_are_kept_from_now_on(rig: Rig) -> None:
    rows = [row for row in end(rig) if isinstance(row, SubmissionRow)]
    old = replace(rig.state.counters, kept_since=None)
    again = make_rig(now=after(rig.now, 400 * DAY))
    begun_at = again.now
    actions = again.resume(Remains(rows=(old, rows[-1]), stored_at=Instant(again.now - SECOND)))
    assert replace(old, kept_since=begun_at) in stored(*actions)
    assert not forgotten(*again.wait(KEPT_NS - 1))
    assert forgotten(*again.wait(SOON_NS))


@pytest.mark.parametrize(("away_ns", "left_ns"), [(KEPT_NS - SECOND, SECOND), (KEPT_NS, KEPT_NS), (9 * DAY, KEPT_NS)])
def test_a_module_that_was_away_for_the_whole_retention_keeps_its_tasks_once_more(
    rig: Rig, away_ns: int, left_ns: int
) -> None:
    rows = [row for row in end(rig) if isinstance(row, SubmissionRow)]
    again = make_rig(now=after(rig.now, away_ns))
    again.resume(Remains(rows=(rig.state.counters, rows[-1]), stored_at=rig.now))
    assert not forgotten(*again.wait(left_ns - 1))
    assert forgotten(*again.wait(SOON_NS))


def test_a_shorter_retention_holds_from_the_change_of_the_policy_on(rig: Rig) -> None:
    end(rig)
    rig.wait(KEPT_NS // 2)
    assert not forgotten(*rig.handle(PolicyChanged(policy=with_retention(KEPT_NS // 4))))
    assert forgotten(*rig.wait(SOON_NS))


def test_a_longer_retention_also_keeps_what_was_due(rig: Rig) -> None:
    submit(rig)
    submit(rig, 2, after=waits_for())
    cancel(rig)
    rig.wait(2 * KEPT_NS)
    rig.handle(PolicyChanged(policy=with_retention(10 * KEPT_NS)))
    cancel(rig, SECOND_TASK)
    assert not forgotten(*rig.wait(KEPT_NS))
    assert forgotten(*rig.wait(8 * KEPT_NS))[0] == (RowKind.SUBMISSION, TASK)


def clean(rig: Rig, *tasks: TaskId) -> tuple[Action, ...]:
    return rig.handle(CleanRequested(answer_to=AnswerTo(4), tasks=tasks))


def test_a_user_forgets_what_has_ended_and_nothing_else() -> None:
    rig = make_rig(None)
    end(rig)
    submit(rig, 2)
    actions = clean(rig, TASK, SECOND_TASK, TASK._replace(number=9))
    assert forgotten(*actions) == [(RowKind.SUBMISSION, TASK), (RowKind.TASK, TASK)]
    assert is_forgotten(rig.state, TASK)
    assert not is_forgotten(rig.state, SECOND_TASK)
    assert not forgotten(*clean(rig, TASK))


def test_a_user_cannot_forget_what_others_need(rig: Rig) -> None:
    end(rig)
    submit(rig, 2, after=(replace(waits_for()[0], is_good=True),))
    assert dependent_on(rig.state, TASK) == SECOND_TASK
    assert not forgotten(*clean(rig, TASK))
    # It is kept when it is due, too.
    rig.wait(2 * KEPT_NS)
    assert not forgotten(*clean(rig, TASK))
    cancel(rig, SECOND_TASK)
    assert dependent_on(rig.state, TASK) is None
    assert forgotten(*clean(rig, TASK))


def test_of_many_single_tasks_no_row_is_left() -> None:
    rig = make_rig(None)
    tasks = [TASK._replace(number=number) for number in range(1, PAGE)]
    for task in tasks:
        end(rig, task.number)
    gone = forgotten(*clean(rig, *tasks))
    assert {key for kind, key in gone if kind is RowKind.TASK} == set(tasks)


def test_many_arrays_are_gone_at_once_and_their_members_follow() -> None:
    rig = make_rig(None)
    tasks = [TASK._replace(number=number) for number in range(1, 21)]
    for task in tasks:
        end(rig, task.number, members=SMALL_MEMBERS)
    gone = forgotten(*clean(rig, *tasks))
    assert len(gone) < 2 * PAGE
    assert all(is_forgotten(rig.state, task) for task in tasks)
    gone += forgotten(*rig.wait(20 * PAUSE_NS))
    assert {key for kind, key in gone if kind is RowKind.TASK} == {
        task._replace(member=member) for task in tasks for member in range(1, SMALL_MEMBERS + 1)
    }
