"""Outputs of tasks become inputs of others that wait for them; the host takes them, and answers."""

import pytest

from messiahs.core.interface.actions import Action, Store, TakeOutputs
from messiahs.core.interface.dependencies import DEPENDENCY_FAILED, Dependency, Predecessor, WantedOutput, When
from messiahs.core.interface.events import AnswerTo, CancelRequested, WorkflowSubmitted
from messiahs.core.interface.messages import DenyCode, SchedRequest, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.task_files import InputFile
from messiahs.core.queries import why_not_taken
from tests.unit.core.origin.test_dependencies import ENDINGS, LATER, final_rows, restarted, run, waits
from tests.unit.core.origin.test_workflows import part
from tests.unit.core.rig import CHILD, TASK, Rig, accept, attempt, only, retry_of, sent, status, statuses, tdv

WANTED = WantedOutput(name="out", to="in")
TAKEN = InputFile(name="in", sha256=bytes(32), size_bytes=3 << 20)
OPEN = Dependency(on=TASK, when=When.OK.value, outputs=(WANTED,))
MET = Dependency(on=TASK, when=When.OK.value, outputs=(WANTED,), is_met=True)


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind a task in a claim that the child brought; it does not run yet."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def submit(rig: Rig, *others: Predecessor, is_good: bool | None = None, members: int = 0) -> tuple[Action, ...]:
    after = (Predecessor(dependency=OPEN, is_good=is_good), *others)
    return rig.submit(members, key=ClientKey("k2"), after=after)


def taken(rig: Rig, problem: str = "") -> tuple[Action, ...]:
    return rig.handle(OutputsTaken(submission=LATER, inputs=() if problem else (TAKEN,), problem=problem))


def end_well(rig: Rig) -> tuple[Action, ...]:
    run(rig)
    return rig.hear(CHILD, statuses(ENDINGS["well"]))


def test_outputs_are_taken_once_the_other_task_has_ended_and_then_the_task_is_placed(bound: Rig) -> None:
    assert not only(submit(bound), TakeOutputs)
    ended = end_well(bound)
    assert only(ended, TakeOutputs) == (TakeOutputs(submission=LATER, after=(MET,)),)
    assert waits(bound)
    stored = [each.row for each in only(taken(bound), Store) if isinstance(each.row, SubmissionRow)]
    assert [(row.id, row.command.inputs, row.taken) for row in stored] == [(LATER, (TAKEN,), 1)]
    assert stored[0].tdv == tdv(input_size=4 << 20)
    assert not waits(bound)
    assert not taken(bound)


def test_outputs_for_which_there_is_no_room_yet_are_why_the_task_waits(bound: Rig) -> None:
    submit(bound)
    end_well(bound)
    assert not bound.handle(OutputsTaken(submission=LATER, delay="no room for 9 bytes"))
    assert waits(bound)
    (reason,) = why_not_taken(bound.state, LATER)
    assert (reason.code, reason.text) == (DenyCode.NO_SPACE, "no room for 9 bytes")
    taken(bound)
    assert (waits(bound), why_not_taken(bound.state, LATER)) == (False, ())


@pytest.mark.parametrize("members", [0, 3])
def test_outputs_of_a_task_that_has_ended_are_taken_at_once(bound: Rig, members: int) -> None:
    end_well(bound)
    assert only(submit(bound, is_good=True, members=members), TakeOutputs) == (
        TakeOutputs(submission=LATER, after=(MET,)),
    )
    assert waits(bound)
    taken(bound)
    assert not waits(bound)


def test_nothing_is_taken_of_a_task_that_fails(bound: Rig) -> None:
    submit(bound)
    run(bound)
    actions = bound.hear(CHILD, statuses(ENDINGS["badly"]))
    assert not only(actions, TakeOutputs)
    assert [row.state for row in final_rows(actions)] == [TaskState.DENIED]


def test_a_task_whose_outputs_are_not_there_is_denied_and_a_retry_asks_for_them_again(bound: Rig) -> None:
    submit(bound)
    end_well(bound)
    actions = taken(bound, "out was not there")
    (row,) = final_rows(actions)
    assert [(each.rule, each.text) for each in row.reasons] == [(DEPENDENCY_FAILED, "out was not there")]
    (submission,) = [each.row for each in only(actions, Store) if isinstance(each.row, SubmissionRow)]
    again = bound.handle(retry_of(submission, [row]))
    assert only(again, TakeOutputs) == (TakeOutputs(submission=LATER, after=(MET,)),)
    taken(bound)
    assert not waits(bound)


def test_a_restart_takes_outputs_again_until_they_are_stored(bound: Rig) -> None:
    submit(bound)
    again = restarted(bound)
    assert not again.state.origin.submissions[LATER].is_taking
    ended = end_well(bound)
    rows = tuple(each.row for each in only(ended, Store) if isinstance(each.row, TaskRow))
    again = restarted(bound, *rows)
    assert again.state.origin.submissions[LATER].is_taking
    assert waits(again)
    taken(again)
    assert not waits(again)
    later = restarted(again)
    assert not later.state.origin.submissions[LATER].is_taking
    assert not waits(later)


def test_outputs_that_come_for_a_cancelled_task_change_nothing(bound: Rig) -> None:
    submit(bound)
    end_well(bound)
    bound.handle(CancelRequested(answer_to=AnswerTo(9), task=LATER))
    assert not taken(bound)


def test_outputs_are_taken_when_all_that_a_task_waits_for_has_happened(bound: Rig) -> None:
    bound.submit(key=ClientKey("other"), tdv=tdv(cpus=8))
    other = Predecessor(dependency=Dependency(on=LATER, when=When.ENDED.value))
    bound.submit(key=ClientKey("k3"), after=(Predecessor(dependency=OPEN), other))
    third = LATER._replace(number=3)
    assert not only(end_well(bound), TakeOutputs)
    ended = bound.handle(CancelRequested(answer_to=AnswerTo(9), task=LATER))
    assert [each.submission for each in only(ended, TakeOutputs)] == [third]


def test_a_task_of_a_workflow_takes_outputs_of_an_earlier_one(rig: Rig) -> None:
    event = WorkflowSubmitted(
        answer_to=AnswerTo(1),
        key=ClientKey("flow"),
        submissions=(part(1), part(2)),
        within=((), ((0, When.OK.value), (0, When.STARTED.value))),
        outputs=((), ((0, WANTED),)),
    )
    ((_, ask),) = sent(rig.handle(event), SchedRequest)
    second = rig.state.origin.submissions[LATER].row
    assert [(each.when, each.outputs) for each in second.after] == [("ok", (WANTED,)), ("started", ())]
    rig.hear(CHILD, accept(ask.id))
    ended = rig.hear(CHILD, statuses(status(attempt())))
    assert [each.submission for each in only(ended, TakeOutputs)] == [LATER]
