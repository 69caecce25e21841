"""Tasks that end before they were tried: many at once cost one row, and are known by it ever after."""

from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.dependencies import BadEnds, Dependency, When
from messiahs.core.interface.ended_members import EndedMembers, UntriedEnd
from messiahs.core.interface.events import AnswerTo, CancelRequested
from messiahs.core.interface.messages import AttemptStatus, SchedRequest, TaskState
from messiahs.core.interface.rows import Row, SubmissionRow, TaskRow, key_of
from messiahs.core.model.instants import SECOND
from messiahs.core.origin.array_members import untried_endings, with_untried
from messiahs.core.origin.completion import RUNS_TOLD, ends_in, with_ends_of_members
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    TASK,
    Rig,
    accept,
    answered,
    attempt,
    make_module,
    only,
    retry_of,
    sent,
    status,
    statuses,
)

MANY = 100_000


def cancel(rig: Rig, member: int = 0) -> tuple[Action, ...]:
    return rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK._replace(member=member)))


def rows_of(actions: tuple[Action, ...]) -> dict[object, Row]:
    return {key_of(action.row): action.row for action in only(actions, Store)}


def submission_in(actions: tuple[Action, ...]) -> SubmissionRow:
    (row,) = [row for row in rows_of(actions).values() if isinstance(row, SubmissionRow)]
    return row


def test_an_array_of_which_nothing_was_tried_is_cancelled_in_one_row(rig: Rig) -> None:
    rig.submit(MANY)
    actions = cancel(rig)
    assert len(actions) < 10
    row = submission_in(actions)
    assert row.untried == (UntriedEnd(first=1, last=MANY, state=TaskState.KILLED, ended_at=rig.now),)
    assert row.ended_at == rig.now
    assert rig.state.origin.submissions == {}


def one_bound(rig: Rig, members: int) -> tuple[Action, ...]:
    rig.see(CHILD)
    submitted = rig.submit(members)
    ((_, ask),) = sent(submitted, SchedRequest)
    return (*submitted, *rig.hear(CHILD, accept(ask.id, places=1)))


def test_members_that_were_tried_keep_rows_of_their_own(rig: Rig) -> None:
    one_bound(rig, 5)
    cancelled = cancel(rig)
    assert submission_in(cancelled).untried[0].first == 2
    assert rig.state.origin.submissions[TASK].open_members == 1
    ended = rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.KILLED), window=0))
    stored = [row for row in rows_of(ended).values() if isinstance(row, TaskRow)]
    states = {row.id.member: row.state for row in with_untried(submission_in(ended), stored)}
    assert states == dict.fromkeys(range(1, 6), TaskState.KILLED)


def test_what_was_cancelled_does_not_wait_after_a_restart(rig: Rig) -> None:
    rows = {**rows_of(one_bound(rig, 5)), **rows_of(cancel(rig))}
    after = Rig(module=make_module())
    after.resume(Remains(rows=tuple(rows.values())))
    origin = after.state.origin
    assert origin.submissions[TASK].open_members == 1
    assert origin.submissions[TASK].ended[TaskState.KILLED, None] == 4
    assert [shape.count for shape in origin.shapes.values()] == [0]


def test_a_member_that_was_cancelled_by_itself_has_a_row_of_its_own(rig: Rig) -> None:
    rig.submit(5)
    (alone,) = rows_of(cancel(rig, 3)).values()
    assert isinstance(alone, TaskRow)
    row = submission_in(cancel(rig))
    assert [(run.first, run.last) for run in row.untried] == [(1, 2), (4, 5)]
    assert [task.id.member for task in with_untried(row, [alone])] == [3, 1, 2, 4, 5]
    assert list(untried_endings(row, [alone])) == [(TaskState.KILLED, 2), (TaskState.KILLED, 2)]


def test_members_that_ended_untried_are_runs_of_how_they_ended(rig: Rig) -> None:
    rig.submit(10_000)
    (alone,) = rows_of(cancel(rig, 3)).values()
    assert isinstance(alone, TaskRow)
    dependency = Dependency(on=TASK, when=When.EACH.value)
    ends = with_ends_of_members(dependency, submission_in(cancel(rig)), ends_in([alone]))
    assert (ends.good, ends.bad) == ((), (BadEnds(runs=((1, 2), (3, 3), (4, 10_000)), how="cancelled"),))


def test_it_is_told_how_members_ended_unless_very_many_runs_ended_in_different_ways(rig: Rig) -> None:
    rig.submit(2 * RUNS_TOLD)
    array = rig.state.origin.submissions[TASK].row

    def bad(exit_codes: Iterable[int]) -> tuple[BadEnds, ...]:
        ends = (AttemptStatus(attempt=attempt(), state=TaskState.FINISHED, exit_code=code) for code in exit_codes)
        rows = (
            TaskRow(id=TASK._replace(member=member), state=TaskState.FINISHED, result=end)
            for member, end in enumerate(ends, 1)
        )
        return with_ends_of_members(Dependency(on=TASK, when=When.EACH.value), array, ends_in(rows)).bad

    turns = [1 + number % 2 for number in range(RUNS_TOLD + 1)]
    assert [(each.how, len(each.runs)) for each in bad(turns[:-1])] == [
        ("exit code 1", RUNS_TOLD // 2),
        ("exit code 2", RUNS_TOLD // 2),
    ]
    assert bad(turns) == (BadEnds(runs=((1, RUNS_TOLD + 1),)),)
    assert bad([1] * len(turns)) == (BadEnds(runs=((1, RUNS_TOLD + 1),), how="exit code 1"),)


def test_members_that_were_denied_before_they_were_tried_can_be_retried(rig: Rig) -> None:
    denied = rig.submit(5, deadline_ns=SECOND), rig.wait(2 * SECOND)
    row = submission_in(denied[1])
    assert [run.state for run in row.untried] == [TaskState.DENIED]
    again = rig.handle(retry_of(row, ()))
    assert answered(again).count == 5
    assert rig.state.origin.submissions[TASK].open_members == 5
    assert [shape.count for shape in rig.state.origin.shapes.values()] == [5]
    reopened = submission_in(again)
    assert (reopened.ended_at, reopened.untried) == (None, ())
    assert list(rows_of(again).values()) == [reopened]


def test_a_retry_with_rows_from_before_the_end_of_an_array_waits_for_them_and_loses_no_member(rig: Rig) -> None:
    rig.submit(10)
    before = submission_in(rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK, members=(1, 5))))
    row = submission_in(cancel(rig))
    assert answered(rig.handle(retry_of(before, ()))).problem == f"the end of {TASK} is not stored yet: try again"
    assert answered(rig.handle(retry_of(row, ()))).count == 10
    assert [shape.count for shape in rig.state.origin.shapes.values()] == [10]


def test_the_row_of_an_array_that_has_ended_has_its_final_counts(rig: Rig) -> None:
    one_bound(rig, 5)
    cancel(rig)
    ended = rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.FINISHED, exit_code=3), window=0))
    row = submission_in(ended)
    assert sorted(row.endings, key=lambda each: each.count) == [
        EndedMembers(state=TaskState.KILLED, exit_code=3, count=1),
        EndedMembers(state=TaskState.KILLED, exit_code=None, count=4),
    ]


def test_an_array_that_is_retried_has_no_final_counts_until_it_has_ended_again(rig: Rig) -> None:
    rows = rows_of(one_bound(rig, 2)) | rows_of(cancel(rig))
    rows |= rows_of(rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.FINISHED, exit_code=3), window=0)))
    (submission,) = [row for row in rows.values() if isinstance(row, SubmissionRow)]
    again = rig.handle(retry_of(submission, [row for row in rows.values() if isinstance(row, TaskRow)], member=1))
    assert (submission_in(again).ended_at, submission_in(again).endings) == (None, ())


def test_of_an_array_of_an_earlier_release_one_member_runs_again_and_the_others_stay_ended(rig: Rig) -> None:
    rows = rows_of(one_bound(rig, 5)) | rows_of(cancel(rig))
    rows |= rows_of(rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.FINISHED, exit_code=3), window=0)))
    (submission,) = [row for row in rows.values() if isinstance(row, SubmissionRow)]
    tried = tuple(row for row in rows.values() if isinstance(row, TaskRow))
    again = rig.handle(replace(retry_of(replace(submission, endings=()), (), member=2), tried=tried))
    assert answered(again).count == 1
    reopened = rig.state.origin.submissions[TASK]
    assert (reopened.open_members, sum(reopened.ended.values())) == (1, 4)


def test_members_that_ended_untried_wait_again_without_rows_of_their_own_and_are_cancelled_again(rig: Rig) -> None:
    rig.submit(MANY)
    again = rig.handle(retry_of(submission_in(cancel(rig)), ()))
    assert answered(again).count == MANY
    assert len(again) < 10
    assert rig.state.origin.tasks == {}
    cancelled = cancel(rig)
    assert len(cancelled) < 10
    assert answered(cancelled).count == MANY
    assert [(run.first, run.last) for run in submission_in(cancelled).untried] == [(1, MANY)]


def test_a_member_that_is_retried_alone_has_a_row_of_its_own_and_does_not_wait_twice(rig: Rig) -> None:
    rig.submit(5)
    row = submission_in(cancel(rig))
    alone = rig.handle(retry_of(row, (), member=3))
    assert submission_in(alone).untried == row.untried
    stored = [row for row in rows_of(alone).values() if isinstance(row, TaskRow)]
    assert [(row.id.member, row.state) for row in stored] == [(3, TaskState.EXECUTING)]
    again = rig.handle(retry_of(submission_in(alone), ()))
    assert answered(again).count == 4
    assert sorted(waiting_in(rig)) == [(1, 2), (3, 3), (4, 5)]


def test_retried_members_wait_after_a_restart_and_those_that_are_left_do_not(rig: Rig) -> None:
    rig.submit(10)
    cancelled = submission_in(cancel(rig))
    counts = ((TaskState.DENIED, 4), (TaskState.KILLED, 6))
    endings = tuple(EndedMembers(state=state, exit_code=None, count=count) for state, count in counts)
    untried = (*_denied(cancelled, 1, 4), *_killed(cancelled, 5, 10))
    row = replace(cancelled, untried=untried, endings=endings)
    request = replace(retry_of(row, ()), is_of_killed=True)
    again = rig.handle(request)
    assert answered(again).count == 6
    after = Rig(module=make_module())
    after.resume(Remains(rows=tuple(rows_of(again).values())))
    for module in (rig, after):
        submission = module.state.origin.submissions[TASK]
        assert submission.row.untried == _denied(cancelled, 1, 4)
        assert waiting_in(module) == [(5, 10)]
        assert submission.ended == {(TaskState.DENIED, None): 4}


def test_a_page_of_members_is_retried_without_those_of_the_others(rig: Rig) -> None:
    rig.submit(10)
    row = submission_in(cancel(rig))
    first = rig.handle(replace(retry_of(row, ()), members=(1, 4)))
    assert answered(first).count == 4
    assert [(run.first, run.last) for run in submission_in(first).untried] == [(5, 10)]
    second = rig.handle(replace(retry_of(row, ()), members=(5, 10)))
    assert answered(second).count == 6
    assert rig.state.origin.submissions[TASK].open_members == 10


def waiting_in(rig: Rig) -> list[tuple[int, int]]:
    return [run[1:] for shape in rig.state.origin.shapes.values() for run in shape.waiting]


def _denied(row: SubmissionRow, first: int, last: int) -> tuple[UntriedEnd, ...]:
    return (replace(row.untried[0], first=first, last=last, state=TaskState.DENIED),)


def _killed(row: SubmissionRow, first: int, last: int) -> tuple[UntriedEnd, ...]:
    return (replace(row.untried[0], first=first, last=last, state=TaskState.KILLED),)
