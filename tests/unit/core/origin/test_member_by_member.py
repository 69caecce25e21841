"""Arrays that wait for others member by member: each member waits for that with its number."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.dependencies import BadEnds, Dependency, Predecessor, When
from messiahs.core.interface.events import AnswerTo, CancelRequested
from messiahs.core.interface.messages import SchedRequest, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.origin.member_runs import Run
from tests.unit.core.origin.test_dependencies import LATER, ended_submission, final_rows, restarted
from tests.unit.core.rig import CHILD, TASK, Rig, accept, answered, attempt, retry_of, sent, status, statuses, tdv

OTHERS = TASK._replace(number=77)


def submit_each(
    rig: Rig,
    members: int = 3,
    *,
    on: TaskId = TASK,
    number: int = 2,
    good: tuple[Run, ...] = (),
    bad: tuple[BadEnds, ...] = (),
) -> tuple[Action, ...]:
    after = (Predecessor(dependency=Dependency(on=on, when=When.EACH.value), good=good, bad=bad),)
    return rig.submit(members, key=ClientKey(f"k{number}"), tdv=tdv(mem=number), after=after)


def denied_in(actions: tuple[Action, ...], task: TaskId = LATER) -> list[tuple[int, str]]:
    return [(row.id.member, row.reasons[0].text) for row in final_rows(actions, task)]


@pytest.fixture
def three(rig: Rig) -> Rig:
    """Bind the members of an array of three; an array of as many waits for them, member by member."""
    ((_, ask),) = sent(rig.submit(3), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=3))
    submit_each(rig)
    return rig


def test_each_member_waits_for_that_with_its_number(three: Rig) -> None:
    array = three.state.origin.submissions[LATER]
    assert array.dependent == [(1, 3)]
    assert sent(three.hear(CHILD, statuses(status(attempt(member=2)))), SchedRequest)
    assert array.dependent == [(1, 1), (3, 3)]
    assert denied_in(three.hear(CHILD, statuses(status(attempt(member=3), exit_code=1)))) == [
        (3, f"{TASK}.3 did not end with exit code 0 (exit code 1)")
    ]
    assert array.dependent == [(1, 1)]
    three.hear(CHILD, statuses(status(attempt(member=1))))
    assert not array.dependent
    assert array.row.after == (Dependency(on=TASK, when=When.EACH.value, is_met=True),)
    assert not three.state.origin.awaited_each


@pytest.mark.parametrize("is_first_good", [True, False])
def test_no_member_waits_for_ever_when_the_last_others_end_in_two_ways_in_one_step(
    three: Rig, *, is_first_good: bool
) -> None:
    three.hear(CHILD, statuses(status(attempt(member=1))))
    ends = (status(attempt(member=2)), status(attempt(member=3), exit_code=1))
    actions = three.hear(CHILD, statuses(*(ends if is_first_good else reversed(ends))))
    assert [member for member, _ in denied_in(actions)] == [3]
    array = three.state.origin.submissions[LATER]
    assert (array.dependent, array.open_members) == ([], 2)
    assert not three.state.origin.awaited_each


def test_a_chain_of_arrays_is_released_and_denied_member_by_member(three: Rig) -> None:
    last = LATER._replace(number=3)
    submit_each(three, on=LATER, number=3)
    actions = three.hear(CHILD, statuses(status(attempt(member=1)), status(attempt(member=2), exit_code=1)))
    assert [member for member, _ in denied_in(actions)] == [2]
    assert denied_in(actions, last) == [(2, f"{LATER}.2 did not end with exit code 0 (denied)")]
    assert three.state.origin.submissions[last].dependent == [(1, 1), (3, 3)]


def test_members_that_wait_for_two_arrays_are_not_placed_although_the_second_one_fails_in_the_same_step(
    rig: Rig,
) -> None:
    ((_, ask),) = sent(rig.submit(2), SchedRequest)
    rig.submit(2, key=ClientKey("k2"))
    rig.hear(CHILD, accept(ask.id, places=2, window=4))
    third = LATER._replace(number=3)
    after = (Predecessor(dependency=Dependency(on=on, when=When.EACH.value)) for on in (TASK, LATER))
    rig.submit(2, key=ClientKey("k3"), after=tuple(after))
    rig.hear(CHILD, statuses(status(attempt(member=1))))
    assert rig.state.origin.submissions[third].dependent == [(1, 2)]
    failed = status(attempt(member=2, task=LATER), exit_code=1)
    actions = rig.hear(CHILD, statuses(status(attempt(member=2)), failed))
    assert denied_in(actions, third) == [(2, f"{LATER}.2 did not end with exit code 0 (exit code 1)")]
    rig.hear(CHILD, statuses(status(attempt(member=1, task=LATER))))
    assert not rig.state.origin.submissions[third].dependent


def test_members_wait_on_member_by_member_after_a_restart(three: Rig) -> None:
    ended = final_rows(three.hear(CHILD, statuses(status(attempt(member=2)))), TASK)
    again = restarted(three, *ended)
    again.greet(CHILD)
    assert again.state.origin.submissions[LATER].dependent == [(1, 1), (3, 3)]
    again.hear(CHILD, statuses(status(attempt(member=1)), status(attempt(member=3))))
    assert not again.state.origin.submissions[LATER].dependent


def test_members_of_ended_others_are_placed_or_denied_at_once(rig: Rig) -> None:
    bad = (BadEnds(runs=((2, 2),), how="exit code 3"), BadEnds(runs=((4, 5), (8, 8)), how="denied"))
    actions = submit_each(rig, 8, on=OTHERS, number=1, good=((1, 1), (3, 3), (6, 7)), bad=bad)
    assert denied_in(actions, TASK) == [(2, f"{OTHERS}.2 did not end with exit code 0 (exit code 3)")]
    array = rig.state.origin.submissions[TASK]
    assert (array.dependent, array.open_members) == ([], 4)
    assert [(each.first, each.last, each.reasons[0].text) for each in array.row.untried] == [
        (first, last, f"its member of {OTHERS} did not end with exit code 0 (denied)")
        for first, last in ((4, 5), (8, 8))
    ]


def test_members_of_others_whose_end_is_not_stored_are_not_judged(rig: Rig) -> None:
    actions = submit_each(rig, 3, on=OTHERS, good=((1, 2),))
    assert answered(actions).problem == f"the end of {OTHERS} is not stored yet: try again"


def test_many_members_that_can_never_run_cost_one_row(rig: Rig) -> None:
    rig.submit(1_000)
    submit_each(rig, 1_000)
    actions = rig.handle(CancelRequested(answer_to=AnswerTo(5), task=TASK))
    assert not final_rows(actions)
    ended = ended_submission(actions).untried
    assert [(each.first, each.last, each.reasons[0].text) for each in ended] == [
        (1, 1_000, f"its member of {TASK} did not end with exit code 0 (cancelled)")
    ]


def test_a_denied_member_is_retried_after_the_other_one_and_waits_for_it_again(three: Rig) -> None:
    actions = three.hear(CHILD, statuses(status(attempt(member=2), exit_code=1)))
    (failed,), (denied,) = final_rows(actions, TASK), final_rows(actions)
    array, others = three.state.origin.submissions[LATER], three.state.origin.submissions[TASK]
    after = Predecessor(dependency=array.row.after[0], bad=(BadEnds(runs=((2, 2),), how="exit code 1"),))
    again = retry_of(array.row, [denied], after=(after,))
    assert answered(three.handle(again)).problem == (
        f"{TASK}.2 did not end with exit code 0 (exit code 1): retry that first, then this"
    )
    three.handle(retry_of(others.row, [failed]))
    assert not answered(three.handle(again)).problem
    assert sorted(array.dependent) == [(1, 1), (2, 2), (3, 3)]


def test_a_member_that_has_run_is_retried_although_the_other_array_is_forgotten(rig: Rig) -> None:
    submit_each(rig, 2, on=OTHERS, good=((1, 2),), number=1)
    row = ended_submission(rig.handle(CancelRequested(answer_to=AnswerTo(5), task=TASK)), TASK)
    gone = Predecessor(dependency=row.after[0], is_forgotten=True)
    fresh, other = (
        TaskRow(id=TASK._replace(member=member), state=TaskState.KILLED, substate=None, ended_at=rig.now)
        for member in (1, 2)
    )
    tried = (fresh, replace(other, attempt=1))
    refused = rig.handle(retry_of(row, tried, member=1, after=(gone,)))
    assert "is no longer known here" in answered(refused).problem
    assert not answered(rig.handle(retry_of(row, tried, member=2, after=(gone,)))).problem
