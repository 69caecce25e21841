"""The audit log of a border counts what was brought, whatever the executor reports."""

import pytest

from messiahs.core.audit import tasks as audited_tasks
from messiahs.core.interface.messages import TaskState
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.task_files import Output
from tests.unit.core.border.gate import INSIDE_TASK, OUTSIDE_CLAIM, bring, gate, granted_outside, inside, shown, toward
from tests.unit.core.rig import PARENT, Rig, status, statuses


@pytest.fixture
def border() -> Rig:
    """Return a border with a claim outside of it."""
    rig = gate(toward(PARENT))
    granted_outside(rig)
    return rig


def report(rig: Rig, *attempts: AttemptId, state: TaskState = TaskState.FINISHED) -> None:
    output = () if state is TaskState.EXECUTING else (Output(name="stdout", size_bytes=10),)
    said = (status(shown(rig, each), state, outputs=output) for each in attempts)
    rig.hear(PARENT, statuses(*said, claim=OUTSIDE_CLAIM))


def counted(rig: Rig) -> list[tuple[int, int, dict[TaskState, int]]]:
    rows = [each.present() for each in rig.state.audit.tasks.values()]
    return [(row.count, row.tasks.output_bytes, dict(row.tasks.ended)) for row in rows if row.tasks is not None]


def test_attempts_that_were_never_brought_count_nothing(border: Rig) -> None:
    bring(border, inside())
    report(border, *(inside(number) for number in range(2, 100)), inside(member=3))
    report(border, inside(2), state=TaskState.EXECUTING)
    assert counted(border) == [(1, 0, {})]
    report(border, inside(), inside())
    assert counted(border) == [(1, 10, {TaskState.FINISHED: 1})]


def test_attempts_for_which_the_row_has_no_room_count_when_they_end(
    border: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited_tasks, "_RUNNING_LIMIT", 2)
    brought = [inside(member=member) for member in range(1, 6)]
    bring(border, *brought)
    report(border, *brought, state=TaskState.EXECUTING)
    assert counted(border) == [(2, 0, {})]
    report(border, *brought)
    report(border, *(inside(2, member=member) for member in range(1, 6)))
    assert counted(border) == [(5, 50, {TaskState.FINISHED: 5})]
    assert not border.state.audit.unlisted


def test_attempts_of_a_closed_row_count_once_more_when_they_end(border: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_tasks, "OPEN_LIMIT", 1)
    bring(border, inside())
    bring(border, inside(task=INSIDE_TASK._replace(number=6)))
    report(border, *(inside(number) for number in range(1, 9)))
    assert counted(border) == [(1, 10, {TaskState.FINISHED: 1})]


def test_no_more_submissions_than_the_limit_are_remembered(border: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_tasks, "OPEN_LIMIT", 1)
    monkeypatch.setattr(audited_tasks, "_UNLISTED_LIMIT", 3)
    for number in range(10, 20):
        bring(border, inside(task=INSIDE_TASK._replace(number=number)))
    assert [task.number for _, _, task in border.state.audit.unlisted] == [16, 17, 18]


def test_a_border_that_forgot_a_row_counts_less_and_never_more(border: Rig) -> None:
    bring(border, inside())
    border.state.audit.tasks.clear()
    border.state.audit.changed.clear()
    report(border, inside(), inside(2))
    assert counted(border) == []
