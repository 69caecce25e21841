"""Arrays of which only some members are placed or run at once."""

import pytest

from messiahs.core.interface.actions import Action, Store, TaskEnded
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.events import AnswerTo, CancelRequested, HandRequested
from messiahs.core.interface.messages import SchedRequest, TaskState, TaskTransfer
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.instants import MINUTE
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    TASK,
    Rig,
    accept,
    answered,
    attempt,
    deny,
    have_results,
    make_module,
    only,
    retry_of,
    sent,
    status,
    statuses,
)


def bound_in(actions: tuple[Action, ...]) -> list[int]:
    """Return the members that are sent to an executor."""
    return [task.attempt.task.member for _, message in sent(actions, TaskTransfer) for task in message.tasks]


def ended(rig: Rig, *members: int, exit_code: int = 0) -> list[int]:
    """Let members end, and return those that follow."""
    reports = [status(attempt(member=member), exit_code=exit_code) for member in members]
    return bound_in(rig.hear(CHILD, statuses(*reports, window=8)))


@pytest.fixture
def running(rig: Rig) -> Rig:
    """Run two of nine members in a claim with two places."""
    ((_, ask),) = sent(rig.submit(9, at_once=2), SchedRequest)
    assert ask.count == 2
    rig.hear(CHILD, accept(ask.id, places=2, window=8))
    have_results(rig)
    assert sorted(task.member for task in rig.state.origin.tasks) == [1, 2]
    return rig


def test_the_next_member_follows_in_the_same_claim_when_one_has_ended(running: Rig) -> None:
    assert ended(running, 1) == [3]
    assert ended(running, 2, 3, exit_code=1) == [4, 5]
    assert running.state.origin.submissions[TASK].behind == [(6, 9)]


def test_all_members_run(running: Rig) -> None:
    for member in range(1, 9):
        ended(running, member)
    assert [end.task for end in only(running.hear(CHILD, statuses(status(attempt(member=9)))), TaskEnded)]
    assert not running.state.origin.submissions


def test_members_that_wait_for_a_place_count(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(9, at_once=2), SchedRequest)
    rig.hear(CHILD, deny(ask.id))
    assert rig.state.origin.waiting == 2


def test_a_restart_queues_no_more_than_are_allowed(running: Rig) -> None:
    again = Rig(make_module(), now=running.now)
    live = running.state.origin
    held = tuple(claim.row for claim in live.claims.values())
    again.resume(Remains(rows=(running.state.counters, live.submissions[TASK].row, *live.tasks.values(), *held)))
    again.greet(CHILD)
    assert sorted(task.member for task in again.state.origin.tasks) == [1, 2]
    assert (again.state.origin.waiting, again.state.origin.submissions[TASK].behind) == (0, [(3, 9)])
    assert ended(again, 2) == [3]


def test_a_cancelled_member_counts_until_its_end_is_known(running: Rig) -> None:
    assert not bound_in(running.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK._replace(member=1))))
    assert bound_in(running.hear(CHILD, statuses(status(attempt(member=1), TaskState.KILLED), window=8))) == [3]


def test_a_cancel_of_a_member_that_waits_behind_lets_no_other_in(running: Rig) -> None:
    running.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK._replace(member=3)))
    assert running.state.origin.submissions[TASK].behind == [(4, 9)]
    assert ended(running, 1) == [4]


def test_a_cancel_of_the_array_ends_those_that_wait_behind(running: Rig) -> None:
    running.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    reports = [status(attempt(member=member), TaskState.KILLED) for member in (1, 2)]
    actions = running.hear(CHILD, statuses(*reports))
    (row,) = [store.row for store in only(actions, Store) if isinstance(store.row, SubmissionRow)]
    assert [(end.state, end.count) for end in row.endings] == [(TaskState.KILLED, 9)]


def test_members_on_hold_let_others_in_and_wait_behind_them_after_their_release(rig: Rig) -> None:
    rig.submit(9, at_once=2)
    for member in (1, 5):
        held = TASK._replace(member=member)
        rig.handle(HandRequested(answer_to=AnswerTo(2), task=held, act=HandAct.HOLD))
    submission = rig.state.origin.submissions[TASK]
    assert (submission.behind, submission.aside) == ([(4, 4), (6, 9)], [(1, 1), (5, 5)])
    rig.handle(HandRequested(answer_to=AnswerTo(2), task=TASK, act=HandAct.RELEASE))
    assert [tuple(run) for run in submission.behind] == [(1, 1), (4, 4), (5, 5), (6, 9)]
    rig.handle(HandRequested(answer_to=AnswerTo(2), task=TASK, act=HandAct.HOLD))
    assert (submission.behind, rig.state.origin.waiting) == ([], 0)


def test_a_deadline_denies_those_that_wait_behind(rig: Rig) -> None:
    rig.submit(9, at_once=2, deadline_ns=MINUTE)
    stored = [store.row for store in only(rig.wait(MINUTE), Store) if isinstance(store.row, SubmissionRow)]
    assert sum(end.count for end in stored[-1].endings if end.state is TaskState.DENIED) == 9
    texts = {reason.text for run in stored[-1].untried for reason in run.reasons}
    assert "it was waiting until fewer than 2 others ran until its deadline" in texts


def test_retried_members_wait_behind_others(running: Rig) -> None:
    running.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    reports = [status(attempt(member=member), TaskState.KILLED) for member in (1, 2)]
    stored = [store.row for store in only(running.hear(CHILD, statuses(*reports)), Store)]
    (submission,) = [row for row in stored if isinstance(row, SubmissionRow)]
    running.handle(retry_of(submission, [row for row in stored if isinstance(row, TaskRow)]))
    reopened = running.state.origin.submissions[TASK]
    assert (running.state.origin.waiting, reopened.behind) == (2, [(3, 9)])


@pytest.mark.parametrize(("members", "waits"), [(0, True), (9, False)])
def test_only_arrays_that_wait_are_limited(rig: Rig, members: int, *, waits: bool) -> None:
    assert "it goes with --array, not --no-wait" in answered(rig.submit(members, at_once=2, waits=waits)).problem
    assert rig.state.origin.submissions == {}
