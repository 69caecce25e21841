"""Rounds of many shapes: a few begin in the step that causes them, each of the others in a step of its own."""

from collections.abc import Iterator

from messiahs.core.interface.actions import Action, Decision, Store
from messiahs.core.interface.events import AnswerTo, CancelRequested, StoreChanged, Submitted, WorkflowSubmitted
from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import ClientKey
from messiahs.core.origin.rounds import AT_ONCE
from messiahs.core.recovery import Remains
from tests.unit.core.rig import CHILD, COMMAND, TASK, Rig, make_module, only, sent, tdv, view

KEY = ClientKey("ann:k")
SHAPES = 3 * AT_ONCE


def searched(actions: tuple[Action, ...]) -> list[object]:
    """Return for which of the shapes places are searched, in order."""
    return [ask.tdv.description().get("x") for _, ask in sent(actions, SchedRequest)]


def denied_rounds(actions: tuple[Action, ...]) -> int:
    """Count the rounds that end at once, because no machine is known."""
    return sum(each.what == "sched_deny" for each in only(actions, Decision))


def steps(rig: Rig) -> Iterator[tuple[Action, ...]]:
    """Fire the timeouts that are due within a microsecond, one step each."""
    until = rig.now + 1_000
    while (deadline := rig.module.next_deadline()) is not None and deadline <= until:
        rig.now = max(rig.now, deadline)
        yield rig.module.expire(rig.now)
        rig.check()


def submit_shapes(rig: Rig, requirement: str = "") -> tuple[Action, ...]:
    parts = tuple(
        Submitted(answer_to=AnswerTo(0), tdv=tdv(x=number), requirement=requirement, command=COMMAND, key=KEY)
        for number in range(SHAPES)
    )
    return rig.handle(WorkflowSubmitted(answer_to=AnswerTo(1), key=KEY, submissions=parts, within=((),) * SHAPES))


def test_the_shapes_of_a_file_are_searched_for_in_their_order_a_few_at_once(rig: Rig) -> None:
    assert searched(submit_shapes(rig)) == list(range(AT_ONCE))
    assert [searched(actions) for actions in steps(rig)] == [[number] for number in range(AT_ONCE, SHAPES)]


def test_members_with_needs_of_their_own_are_searched_for_in_their_order_a_few_at_once(rig: Rig) -> None:
    first = searched(rig.submit(SHAPES, tdv=tdv(x="{}")))
    assert len(first) == AT_ONCE
    others = [searched(actions) for actions in steps(rig)]
    assert [len(each) for each in others] == [1] * (SHAPES - AT_ONCE)
    assert len({*first, *(one for each in others for one in each)}) == SHAPES


def test_when_the_disk_has_room_again_a_few_shapes_are_searched_for_at_once(rig: Rig) -> None:
    submit_shapes(rig, "$slots >= 50")
    rig.wait(1_000)
    assert denied_rounds(rig.handle(StoreChanged(has_space=True))) == AT_ONCE
    assert [denied_rounds(actions) for actions in steps(rig)] == [1] * (SHAPES - AT_ONCE)


def test_after_a_restart_a_few_shapes_are_searched_for_at_once(rig: Rig) -> None:
    rows = tuple(store.row for store in only(submit_shapes(rig, "$slots >= 50"), Store))
    after = Rig(module=make_module(), now=rig.now)
    assert denied_rounds(after.resume(Remains(rows=rows))) == AT_ONCE
    assert sum(denied_rounds(actions) for actions in steps(after)) == SHAPES - AT_ONCE


def test_a_view_that_could_hold_many_shapes_lets_a_few_search_at_once(rig: Rig) -> None:
    submit_shapes(rig, "$slots >= 50")
    rig.wait(1_000)
    assert len(searched(rig.see(CHILD, view(slots=64)))) == AT_ONCE
    assert [len(searched(actions)) for actions in steps(rig)] == [1] * (SHAPES - AT_ONCE)


def test_a_task_that_is_cancelled_before_its_first_round_has_none(rig: Rig) -> None:
    submit_shapes(rig)
    rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK._replace(number=SHAPES)))
    assert [one for actions in steps(rig) for one in searched(actions)] == list(range(AT_ONCE, SHAPES - 1))
