"""A state whose tables of waiting and bound tasks disagree is found."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.invariants import violations
from messiahs.core.model.ids import TaskId
from messiahs.core.state.module import ModuleState
from tests.unit.core.rig import PARENT, TASK, Rig, accept, make_module, message_in, view


def submitted() -> ModuleState:
    """Return the state of a module with an array of nine tasks, of which the first is bound and the others wait."""
    rig = Rig(module=make_module())
    rig.resume()
    rig.greet(PARENT)
    rig.see(PARENT, view())
    ask = message_in((*rig.submit(members=9), *rig.wait(0)), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    state = rig.state
    assert list(state.origin.tasks) == [member(1)]
    assert violations(state) == ()
    return state


def member(number: int) -> TaskId:
    return TASK._replace(member=number)


def wait_twice(state: ModuleState) -> None:
    (shape,) = state.origin.shapes.values()
    shape.waiting.append((TASK, 4, 4))


def wait_beside_the_binding(state: ModuleState) -> None:
    (shape,) = state.origin.shapes.values()
    shape.waiting.append((TASK, 1, 1))


def know_without_binding(state: ModuleState) -> None:
    state.origin.tasks[member(1)] = replace(state.origin.tasks[member(1)], claim=None)


def lose_one(state: ModuleState) -> None:
    (shape,) = state.origin.shapes.values()
    shape.waiting[0] = (TASK, 3, 9)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (wait_twice, "a task waits twice"),
        (wait_beside_the_binding, f"task {member(1)} both waits and is bound"),
        (know_without_binding, f"task {member(1)} neither waits nor is bound"),
        (lose_one, "open members are"),
    ],
)
def test_a_task_in_no_place_or_in_two_is_found(spoil: Callable[[ModuleState], None], what: str) -> None:
    state = submitted()
    spoil(state)
    assert any(what in violation for violation in violations(state)), violations(state)
