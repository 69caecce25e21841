"""Tasks that somebody revokes, moves, holds and releases by hand, at their origin."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Store, TaskEnded
from messiahs.core.interface.by_hand import HandAct, HoldRun
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, HandRequested
from messiahs.core.interface.messages import ClaimEnd, Command, SchedRequest, TaskKill, TaskState, TaskTransfer
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import HOUR, SECOND, Instant
from messiahs.core.origin.by_hand import on_hand_requested
from messiahs.core.origin.holds import HOLD_LIMIT
from messiahs.core.origin.task_kill import KILL_AGAIN_NS
from messiahs.core.recovery import Remains, resume
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    TASK,
    Rig,
    accept,
    answered,
    attempt,
    deny,
    have_results,
    make_module,
    message_in,
    only,
    retry_of,
    sent,
    status,
    statuses,
)

ENDED = status(attempt(), TaskState.KILLED, cause=Cause.KILLED)


def act(rig: Rig, kind: HandAct, *, member: int = 0, text: str = "") -> tuple[Action, ...]:
    return rig.handle(HandRequested(answer_to=AnswerTo(9), task=TASK._replace(member=member), act=kind, text=text))


def rows_of(rig: Rig) -> tuple[SubmissionRow | TaskRow, ...]:
    return (*(each.row for each in rig.state.origin.submissions.values()), *rig.state.origin.tasks.values())


def restarted(rig: Rig) -> tuple[Rig, tuple[Action, ...]]:
    again = Rig(make_module(), now=rig.now)
    held = tuple(claim.row for claim in rig.state.origin.claims.values())
    return again, again.resume(Remains(rows=(rig.state.counters, *rows_of(rig), *held)))


def row_of(rig: Rig, member: int = 0) -> TaskRow:
    return rig.state.origin.tasks[TASK._replace(member=member)]


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Run a task in a claim that the child brought."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    return rig


@pytest.mark.parametrize(("kind", "is_barring"), [(HandAct.REVOKE, False), (HandAct.MOVE, True)])
def test_a_revoked_attempt_is_killed_until_it_has_ended_and_its_task_is_placed_again(
    bound: Rig, kind: HandAct, *, is_barring: bool
) -> None:
    kill = TaskKill(claim=CLAIM, attempts=(attempt(),), is_barring=is_barring)
    actions = act(bound, kind, text="its disk is slow")
    assert not answered(actions).problem
    assert message_in(actions, TaskKill) == kill
    assert message_in(bound.wait(KILL_AGAIN_NS), TaskKill) == kill
    assert not only(bound.hear(CHILD, statuses(ENDED)), TaskEnded)
    assert bound.state.origin.waiting == 1
    row = row_of(bound)
    assert (row.state, row.claim, row.is_cancelled, row.is_revoked) == (TaskState.EXECUTING, None, False, False)
    assert [(each.event, each.text) for each in row.history][-2:] == [
        (f"{kind} by hand", "its disk is slow"),
        ("killed", ""),
    ]


def test_a_revoked_attempt_that_ended_by_itself_counts(bound: Rig) -> None:
    act(bound, HandAct.REVOKE)
    actions = bound.hear(CHILD, statuses(status(attempt())))
    assert [ended.task for ended in only(actions, TaskEnded)] == [TASK]
    (row,) = [each.row for each in only(actions, Store) if isinstance(each.row, TaskRow)]
    assert (row.state, row.attempt) == (TaskState.FINISHED, 1)


def test_a_revocation_survives_a_restart_of_the_origin(bound: Rig) -> None:
    act(bound, HandAct.MOVE)
    again, _ = restarted(bound)
    again.greet(CHILD)
    again.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert {kill.is_barring for _, kill in sent(again.wait(KILL_AGAIN_NS), TaskKill)} == {True}
    again.hear(CHILD, statuses(ENDED))
    assert row_of(again).claim is None


def test_a_task_that_is_cancelled_after_its_revocation_is_killed(bound: Rig) -> None:
    act(bound, HandAct.REVOKE)
    bound.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    actions = bound.hear(CHILD, statuses(ENDED))
    (row,) = [each.row for each in only(actions, Store) if isinstance(each.row, TaskRow)]
    assert row.state is TaskState.KILLED


def test_what_does_not_run_is_not_revoked(rig: Rig) -> None:
    rig.submit()
    assert "nothing of me.1 runs" in answered(act(rig, HandAct.REVOKE)).problem


@pytest.mark.parametrize("kind", HandAct)
def test_an_ended_task_takes_no_act(bound: Rig, kind: HandAct) -> None:
    bound.hear(CHILD, statuses(status(attempt())))
    assert answered(act(bound, kind)).problem == "me.1 has ended"


@pytest.mark.parametrize("kind", HandAct)
@pytest.mark.parametrize("is_on_hold", [True, False])
def test_a_member_that_has_ended_takes_no_act_while_others_of_its_array_are_open(
    rig: Rig, kind: HandAct, *, is_on_hold: bool
) -> None:
    ((_, ask),) = sent(rig.submit(members=2), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    if is_on_hold:
        act(rig, HandAct.HOLD, member=1)
    rig.hear(CHILD, statuses(status(attempt(member=1)), window=0))
    actions = act(rig, kind, member=1)
    assert answered(actions).problem
    assert not [store for store in only(actions, Store) if isinstance(store.row, TaskRow)]
    assert rig.state.origin.submissions[TASK].open_members == 1


def test_a_waiting_task_on_hold_is_not_placed_until_it_is_released(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    assert not answered(act(rig, HandAct.HOLD, text="the data are wrong")).problem
    late = rig.hear(CHILD, accept(ask.id))
    assert sent(late, ClaimEnd)
    assert not sent((*late, *rig.wait(HOUR)), TaskTransfer)
    assert rig.state.origin.waiting == 0
    rig.see(CHILD)
    ((_, ask),) = sent(act(rig, HandAct.RELEASE), SchedRequest)
    assert sent(rig.hear(CHILD, accept(ask.id)), TaskTransfer)
    assert [each.event for each in row_of(rig).history] == ["hold by hand", "release by hand", "bound"]


def test_a_running_task_on_hold_goes_on_and_waits_when_its_attempt_is_lost(bound: Rig) -> None:
    assert not sent(act(bound, HandAct.HOLD), TaskKill)
    lost = status(attempt(), TaskState.REVOKED, cause=Cause.LOST)
    bound.hear(CHILD, statuses(lost))
    assert bound.state.origin.waiting == 0
    act(bound, HandAct.RELEASE)
    assert bound.state.origin.waiting == 1


def test_a_hold_survives_a_restart(rig: Rig) -> None:
    rig.submit(members=4)
    act(rig, HandAct.HOLD, member=2)
    again, _ = restarted(rig)
    assert again.state.origin.waiting == 3
    act(again, HandAct.RELEASE, member=2)
    assert again.state.origin.waiting == 4


def holds_of(rig: Rig) -> list[tuple[int, int, str]]:
    return [(hold.first, hold.last, hold.text) for hold in rig.state.origin.submissions[TASK].row.holds]


def test_a_hold_without_a_reason_keeps_the_reasons_of_earlier_ones(rig: Rig) -> None:
    rig.submit(members=5)
    act(rig, HandAct.HOLD, member=2, text="bad data")
    act(rig, HandAct.HOLD, member=4)
    act(rig, HandAct.HOLD)
    assert holds_of(rig) == [(1, 1, ""), (2, 2, "bad data"), (3, 5, "")]
    assert rig.state.origin.waiting == 0
    act(rig, HandAct.HOLD, text="all are bad")
    assert holds_of(rig) == [(1, 5, "all are bad")]


def test_neighbors_on_hold_for_one_reason_are_one_hold(rig: Rig) -> None:
    rig.submit(members=9)
    since = rig.now
    for member in (3, 1, 2):
        act(rig, HandAct.HOLD, member=member, text="bad data")
        rig.wait(SECOND)
    act(rig, HandAct.HOLD, member=4, text="another")
    (first, _) = rig.state.origin.submissions[TASK].row.holds
    assert holds_of(rig) == [(1, 3, "bad data"), (4, 4, "another")]
    assert first.since == since


def test_a_million_members_wait_and_rest_as_runs() -> None:
    state, now = make_module().state, Instant(SECOND)
    million = 1_000_000
    row = SubmissionRow(
        id=TASK,
        key=ClientKey("k"),
        tdv=TDV(()),
        requirement="",
        command=Command(argv=("true",)),
        members=million,
        submitted_at=Instant(0),
        holds=tuple(HoldRun(first=at, last=at, since=Instant(0)) for at in range(2 * HOLD_LIMIT, 0, -2)),
    )
    tried = (TaskRow(id=TASK._replace(member=10)), TaskRow(id=TASK._replace(member=101), state=TaskState.FINISHED))
    resume(state, Remains(rows=(row, *tried)), now)
    submission, (shape,) = state.origin.submissions[TASK], state.origin.shapes.values()
    assert shape.count == million - HOLD_LIMIT - 1
    assert (len(shape.waiting), len(submission.aside)) == (HOLD_LIMIT, HOLD_LIMIT)
    waiting = [run[1:] for run in shape.waiting]
    assert waiting[0] == (1, 1)
    assert waiting[-1] == (2 * HOLD_LIMIT + 1, million)
    assert (101, 101) not in waiting
    event = HandRequested(answer_to=AnswerTo(9), task=TASK, act=HandAct.HOLD, text="")
    on_hand_requested(state, event, now)
    assert len(submission.aside) <= 2 * HOLD_LIMIT + 1
    on_hand_requested(state, replace(event, act=HandAct.RELEASE), now)
    assert state.origin.waiting == million - 1
    (shape,) = state.origin.shapes.values()
    assert len(shape.waiting) <= 2 * HOLD_LIMIT + 1
    assert not submission.aside


def test_members_and_whole_arrays_are_held_and_released(rig: Rig) -> None:
    rig.submit(members=10)
    act(rig, HandAct.HOLD)
    assert rig.state.origin.waiting == 0
    act(rig, HandAct.RELEASE, member=5)
    assert rig.state.origin.waiting == 1
    assert [(hold.first, hold.last) for hold in rig.state.origin.submissions[TASK].row.holds] == [(1, 4), (6, 10)]
    act(rig, HandAct.HOLD, member=5)
    act(rig, HandAct.RELEASE)
    assert rig.state.origin.waiting == 10
    assert "me.1.5 is not on hold" in answered(act(rig, HandAct.RELEASE, member=5)).problem


def test_tasks_on_hold_can_be_cancelled(rig: Rig) -> None:
    rig.submit(members=3)
    act(rig, HandAct.HOLD)
    rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK._replace(member=2)))
    assert "me.1.2 has ended" in answered(act(rig, HandAct.HOLD, member=2)).problem
    actions = rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    assert [ended.task for ended in only(actions, TaskEnded)] == [TASK]
    assert not rig.state.origin.submissions


def test_tasks_on_hold_at_their_deadline_are_denied_with_the_reason(rig: Rig) -> None:
    rig.submit(deadline_ns=10 * SECOND)
    act(rig, HandAct.HOLD)
    (row,) = [
        each.row
        for each in only(rig.wait(11 * SECOND), Store)
        if isinstance(each.row, TaskRow) and each.row.state is TaskState.DENIED
    ]
    assert [reason.text for reason in row.reasons] == ["it was on hold until its deadline"]


def test_a_retry_ends_the_hold_of_its_earlier_tries(bound: Rig) -> None:
    act(bound, HandAct.HOLD)
    stored = [each.row for each in only(bound.hear(CHILD, statuses(status(attempt(), exit_code=1))), Store)]
    (submission,) = (row for row in stored if isinstance(row, SubmissionRow))
    bound.handle(retry_of(submission, [row for row in stored if isinstance(row, TaskRow)]))
    assert bound.state.origin.waiting == 1
    again, _ = restarted(bound)
    assert again.state.origin.waiting == 1


def test_the_parts_of_a_submission_on_hold_are_bounded(rig: Rig) -> None:
    rig.submit(members=2 * HOLD_LIMIT + 2)
    for member in range(1, 2 * HOLD_LIMIT, 2):
        assert not answered(act(rig, HandAct.HOLD, member=member)).problem
    assert "release the whole" in answered(act(rig, HandAct.HOLD, member=2 * HOLD_LIMIT + 1)).problem
    assert not answered(act(rig, HandAct.HOLD)).problem
    for member in range(2, 2 * HOLD_LIMIT, 2):
        assert not answered(act(rig, HandAct.RELEASE, member=member)).problem
    assert "release the whole" in answered(act(rig, HandAct.RELEASE, member=2 * HOLD_LIMIT)).problem
    assert not answered(act(rig, HandAct.RELEASE)).problem
    assert rig.state.origin.waiting == 2 * HOLD_LIMIT + 2


def test_all_running_members_of_an_array_are_revoked(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(members=3), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=2, window=2))
    have_results(rig)
    running = [attempt(member=member) for member in (1, 2)]
    rig.hear(CHILD, statuses(*(status(each, TaskState.EXECUTING) for each in running)))
    assert set(message_in(act(rig, HandAct.REVOKE), TaskKill).attempts) >= set(running)


def test_a_hold_does_not_end_the_search_of_others(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(members=2), SchedRequest)
    act(rig, HandAct.HOLD, member=1)
    transfers = sent(rig.hear(CHILD, accept(ask.id, places=2)), TaskTransfer)
    assert [task.attempt.task for _, message in transfers for task in message.tasks] == [TaskId(*TASK[:3], 2)]
    assert not only(rig.hear(CHILD, deny(ask.id)), TaskEnded)
