"""The end of a submission is kept as a row until its user was notified, and then with what came of that."""

import pytest

from messiahs.core.interface.actions import Action, Forget, Notify, Store
from messiahs.core.interface.events import AnswerTo, CancelRequested, CleanRequested
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.notifications import Notification, NotificationRow, Notified
from messiahs.core.interface.rows import RowKind, SubmissionRow, TaskRow, key_of
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.recovery import Remains
from tests.unit.core.rig import START, TASK, Rig, make_module, only, retry_of

BY_MAIL = Notification(text="mail", uid=1_000)
KINDS = (RowKind.NOTIFICATION, RowKind.NOTIFIED)


def end(rig: Rig, task: TaskId = TASK) -> tuple[Action, ...]:
    return rig.handle(CancelRequested(answer_to=AnswerTo(2), task=task))


def rows(actions: tuple[Action, ...]) -> list[NotificationRow]:
    return [each.row for each in only(actions, Store) if isinstance(each.row, NotificationRow)]


def forgotten(actions: tuple[Action, ...]) -> set[object]:
    return {each.key for each in only(actions, Forget) if each.key[0] in KINDS}


def report(rig: Rig, ended_at: Instant, *, problem: str = "") -> tuple[Action, ...]:
    return rig.handle(Notified(id=TASK, ended_at=ended_at, problem=problem))


@pytest.fixture
def rig() -> Rig:
    return Rig(make_module())


def test_nobody_is_notified_who_has_not_asked_for_it(rig: Rig) -> None:
    rig.submit()
    assert not only(end(rig), Notify)


def test_an_array_has_one_notification_when_its_last_member_has_ended(rig: Rig) -> None:
    rig.submit(3, notification=BY_MAIL, name="sweep")
    assert not only(end(rig, TASK._replace(member=2)), Notify)
    actions = end(rig)
    (row,) = rows(actions)
    assert only(actions, Notify) == (Notify(notice=row),)
    assert (row.id, row.state, row.exit_code, row.name) == (TASK, TaskState.KILLED, 1, "sweep")
    assert (row.submitted_at, row.ended_at, row.given_at) == (START, rig.now, None)


def test_an_outcome_takes_the_place_of_what_is_due_and_one_of_an_earlier_end_does_not(rig: Rig) -> None:
    rig.submit(notification=BY_MAIL)
    ended = end(rig)
    (first,) = rows(ended)
    stored = [each.row for each in only(ended, Store)]
    (submission,) = [row for row in stored if isinstance(row, SubmissionRow)]
    rig.wait(SECOND)
    rig.handle(retry_of(submission, [row for row in stored if isinstance(row, TaskRow)]))
    (second,) = rows(end(rig))
    assert report(rig, first.ended_at) == ()
    actions = report(rig, second.ended_at, problem="no mail")
    assert forgotten(actions) == {(RowKind.NOTIFICATION, TASK)}
    (row,) = rows(actions)
    assert (key_of(row), row.problem) == ((RowKind.NOTIFIED, TASK), "no mail")
    assert report(rig, second.ended_at) == ()


def test_a_restart_repeats_what_is_due(rig: Rig) -> None:
    rig.submit(notification=BY_MAIL)
    (row,) = rows(end(rig))
    again = Rig(make_module(), now=rig.now)
    assert only(again.resume(Remains(rows=(row,))), Notify) == (Notify(notice=row),)
    (given,) = rows(report(again, row.ended_at))
    assert not only(Rig(make_module(), now=rig.now).resume(Remains(rows=(given,))), Notify)


def test_a_notification_is_forgotten_with_its_task(rig: Rig) -> None:
    rig.submit(notification=BY_MAIL)
    (row,) = rows(end(rig))
    actions = rig.handle(CleanRequested(answer_to=AnswerTo(3), tasks=(TASK,)))
    assert forgotten(actions) == {(kind, TASK) for kind in KINDS}
    assert report(rig, row.ended_at) == ()
