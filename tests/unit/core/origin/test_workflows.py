"""Workflows: several submissions are stored together, or none is, and some wait for others of them."""

import pytest

from messiahs.core.interface.actions import Action, Answer, Decision, Store
from messiahs.core.interface.dependencies import Dependency, Predecessor, When
from messiahs.core.interface.events import AnswerTo, CancelRequested, CleanRequested, Submitted, WorkflowSubmitted
from messiahs.core.interface.messages import SchedRequest, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import ClientKey, Epoch, TaskId
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    COMMAND,
    TASK,
    Rig,
    accept,
    attempt,
    make_module,
    only,
    sent,
    status,
    statuses,
    tdv,
)

KEY = ClientKey("ann:k")
EARLIER = TASK._replace(epoch=Epoch(TASK.epoch - 1), number=7)
"""From before a backup was restored, so its number is higher than the next one."""


def part(number: int, /, **more: object) -> Submitted:
    given = {"tdv": tdv(), "requirement": "", "command": COMMAND, "key": KEY, **more}
    return Submitted(answer_to=AnswerTo(0), **given)  # type: ignore[arg-type]


def submit(
    rig: Rig, *parts: Submitted, within: dict[int, tuple[tuple[int, When], ...]] | None = None
) -> tuple[Action, ...]:
    waits = [tuple((on, when.value) for on, when in (within or {}).get(place, ())) for place in range(len(parts))]
    return rig.handle(WorkflowSubmitted(answer_to=AnswerTo(1), key=KEY, submissions=parts, within=tuple(waits)))


def numbered(number: int) -> TaskId:
    return TASK._replace(number=number)


def stored(actions: tuple[Action, ...]) -> list[TaskId]:
    return [each.row.id for each in only(actions, Store) if isinstance(each.row, SubmissionRow)]


def final(actions: tuple[Action, ...]) -> dict[TaskId, TaskState]:
    rows = [each.row for each in only(actions, Store) if isinstance(each.row, TaskRow)]
    return {row.id: row.state for row in rows if row.state is not TaskState.EXECUTING}


def test_all_are_stored_in_one_step_and_what_waits_for_nothing_is_searched_for_once(rig: Rig) -> None:
    actions = submit(rig, part(0), part(1), part(2, members=3), within={1: ((0, When.OK),)})
    assert stored(actions) == [numbered(1), numbered(2), numbered(3)]
    assert only(actions, Answer) == (Answer(answer_to=AnswerTo(1), task=numbered(1), count=3),)
    assert [each.task for each in only(actions, Decision) if each.what == "submitted"] == ["me.1", "me.2", "me.3"]
    ((_, ask),) = sent(actions, SchedRequest)
    assert ask.count == 4
    assert rig.state.origin.submissions[numbered(2)].row.after == (Dependency(on=numbered(1), when="ok"),)


def test_the_same_keys_have_the_same_ids_whichever_of_them_is_known(rig: Rig) -> None:
    submit(rig, part(0), part(1))
    again = submit(rig, part(0), part(1))
    assert again == (Answer(answer_to=AnswerTo(1), task=numbered(1), count=2),)


def answer_of(actions: tuple[Action, ...]) -> Answer:
    (answer,) = actions
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize(("count", "named"), [(1, 1), (3, 3)])
def test_keys_of_a_workflow_with_more_or_fewer_submissions_are_refused(
    rig: Rig, count: int, named: int, *, has_ended: bool
) -> None:
    first = submit(rig, part(0), part(1))
    if has_ended:
        for number in (1, 2):
            rig.handle(CancelRequested(answer_to=AnswerTo(2), task=numbered(number)))
        assert not rig.state.origin.submissions
    restarted = Rig(module=make_module())
    rows = [each.row for each in only(first, Store)]
    restarted.resume(Remains(rows=tuple(rows)))
    for each in (rig, restarted):
        before = each.state.counters
        answer = answer_of(submit(each, *map(part, range(count))))
        text = f"the key is that of another file, which has 2 tasks, and this one has {count}; use another key"
        assert answer == Answer(answer_to=AnswerTo(1), problem=text, count=named)
        assert each.state.counters == before


def test_keys_of_which_some_are_forgotten_submit_nothing_and_the_gone_are_named(rig: Rig) -> None:
    parts = [part(number) for number in range(9)]
    submit(rig, *parts)
    for number in (*range(2, 9), 1, 9):
        rig.handle(CancelRequested(answer_to=AnswerTo(2), task=numbered(number)))
    before = rig.state.counters
    rig.handle(CleanRequested(answer_to=AnswerTo(3), tasks=(numbered(2),)))
    answer = answer_of(submit(rig, *parts))
    text = "the key was used before, and of its tasks me.2 is no longer known here; use another key"
    assert answer == Answer(answer_to=AnswerTo(1), problem=text, count=2)
    rig.handle(CleanRequested(answer_to=AnswerTo(3), tasks=tuple(map(numbered, (1, *range(3, 9))))))
    answer = answer_of(submit(rig, *parts))
    refused = answer_of(submit(rig, *parts[:8])).problem
    assert refused == "the key is that of another file, which has 9 tasks, and this one has 8; use another key"
    assert "of its tasks me.1, me.2, me.3, me.4, me.5 and 3 more are no longer known here" in answer.problem
    assert (answer.task, rig.state.counters) == (None, before)
    rig.handle(CleanRequested(answer_to=AnswerTo(3), tasks=(numbered(9),)))
    assert stored(submit(rig, *parts))[0] == numbered(10)


def test_one_that_is_refused_refuses_all_and_is_named(rig: Rig) -> None:
    before = rig.state.counters
    (answer,) = submit(rig, part(0), part(1, requirement="$x >"), part(2))
    assert isinstance(answer, Answer)
    assert (answer.count, answer.problem[:33]) == (2, "the requirement is not a predicat")
    forgotten = Predecessor(dependency=Dependency(on=numbered(9), when="ok"), is_forgotten=True)
    (answer,) = submit(rig, part(0), part(1), part(2, after=(forgotten,)))
    assert isinstance(answer, Answer)
    assert (answer.count, answer.problem[:28]) == (3, "me.9 is no longer known here")
    assert (rig.state.counters, rig.state.origin.submissions) == (before, {})


def test_all_together_have_a_bounded_number_of_shapes(rig: Rig) -> None:
    of_each = part(0, members=600, tdv=tdv(x="{}"))
    answer, *_ = submit(rig, of_each, of_each)
    assert isinstance(answer, Answer)
    assert (answer.count, answer.problem[:45]) == (2, "the tasks of a file have at most 1000 differe")
    answer, *_ = submit(rig, *(part(number, tdv=tdv(x=number)) for number in range(1_001)))
    assert isinstance(answer, Answer)
    assert answer.count == 1_001
    assert rig.state.origin.submissions == {}
    assert not only(submit(rig, *(part(number) for number in range(1_001))), Answer)[0].problem


@pytest.mark.parametrize("exit_code", [0, 1])
def test_what_waits_is_placed_when_the_other_has_ended_well_and_else_denied(rig: Rig, exit_code: int) -> None:
    ((_, ask),) = sent(submit(rig, part(0), part(1), within={1: ((0, When.OK),)}), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    actions = rig.hear(CHILD, statuses(status(attempt(), exit_code=exit_code)))
    denied = {numbered(2): TaskState.DENIED} if exit_code else {}
    assert final(actions) == {numbered(1): TaskState.FINISHED, **denied}
    assert (numbered(2) in rig.state.origin.submissions) is (exit_code == 0)


def test_a_chain_behind_one_that_failed_before_is_denied_at_once(rig: Rig) -> None:
    failed = Predecessor(dependency=Dependency(on=EARLIER, when="ok"), is_good=False)
    actions = submit(
        rig,
        part(0, after=(failed,)),
        part(1),
        part(2),
        within={1: ((0, When.OK),), 2: ((1, When.OK),)},
    )
    assert final(actions) == {numbered(number): TaskState.DENIED for number in (1, 2, 3)}
    assert not rig.state.origin.submissions


def test_members_that_need_not_wait_for_an_earlier_array_wait_for_one_of_the_workflow(rig: Rig) -> None:
    earlier = Predecessor(dependency=Dependency(on=EARLIER, when="each"), good=((1, 2),))
    actions = submit(
        rig,
        part(0, members=2),
        part(1, members=2, after=(earlier,)),
        within={1: ((0, When.EACH),)},
    )
    ((_, ask),) = sent(actions, SchedRequest)
    assert ask.count == 2
    assert rig.state.origin.submissions[numbered(2)].dependent == [(1, 2)]


def test_tasks_that_wait_for_the_same_one_share_what_is_kept_of_that(rig: Rig) -> None:
    actions = submit(rig, *map(part, range(4)), within=dict.fromkeys((1, 2, 3), ((0, When.OK),)))
    _, *waiting = [each.row for each in only(actions, Store) if isinstance(each.row, SubmissionRow)]
    assert len({id(row.after[0]) for row in waiting}) == 1
    # Nor is anything made to look up the one of a single task.
    assert waiting[0].after[0].on.submission is waiting[0].after[0].on
