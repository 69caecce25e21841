"""Tasks that the own machine cannot start are tried again after pauses that grow, although it has room at once."""

import pytest

from messiahs.core.interface.actions import Action, StartAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AttemptEnded
from messiahs.core.interface.messages import DenyCode
from messiahs.core.model.ids import AttemptId, ClientKey
from messiahs.core.model.instants import SECOND
from messiahs.core.state.origin import Shape
from tests.unit.core.rig import Rig, only, tdv


@pytest.fixture
def machine(rig: Rig) -> Rig:
    """Return a module whose machine has one slot: with each end of a task it has room that it had not before."""
    rig.measure(slots=1, free_slots=1)
    return rig


def _started(actions: tuple[Action, ...]) -> AttemptId:
    (start,) = only(actions, StartAttempt)
    return start.attempt


def _shape(rig: Rig) -> Shape:
    (shape,) = rig.state.origin.shapes.values()
    return shape


def _fail(rig: Rig, attempt: AttemptId, cause: Cause = Cause.SPAWN_FAILED) -> tuple[Action, ...]:
    return rig.end(AttemptEnded(attempt=attempt, cause=cause, text="no sandbox"))


@pytest.mark.parametrize("cause", [Cause.SPAWN_FAILED, Cause.STAGING_FAILED])
def test_pauses_between_failed_starts_double_up_to_a_minute(machine: Rig, cause: Cause) -> None:
    pauses_ns, actions = list[int](), (*machine.submit(), *machine.wait(0))
    while len(pauses_ns) < 9:
        if only(actions, StartAttempt):
            assert machine.now >= _shape(machine).pauses_until
            _fail(machine, _started(actions), cause)
            pauses_ns.append(_shape(machine).pauses_until - machine.now)
        actions = machine.wait(SECOND // 10)
    assert [pause_ns / SECOND for pause_ns in pauses_ns] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_users_read_that_their_task_could_not_be_started_and_when_it_is_tried_again(machine: Rig) -> None:
    _fail(machine, _started((*machine.submit(), *machine.wait(0))))
    (reason,) = _shape(machine).reasons
    assert (reason.code, reason.text.split(":")[0]) == (
        DenyCode.LOST,
        "the last attempt could not be started on this machine",
    )


def test_attempts_of_one_round_that_all_fail_make_one_pause(rig: Rig) -> None:
    rig.measure(slots=16, free_slots=16)
    pauses_ns, actions = list[int](), (*rig.submit(members=16), *rig.wait(0))
    while len(pauses_ns) < 3:
        begun = only(actions, StartAttempt)
        for start in begun:
            _fail(rig, start.attempt)
        if begun:
            pauses_ns.append(_shape(rig).pauses_until - rig.now)
        actions = rig.wait(SECOND // 10)
    assert [pause_ns / SECOND for pause_ns in pauses_ns] == [1, 2, 4]


def test_a_failure_beside_a_result_makes_the_shortest_pause_again(rig: Rig) -> None:
    rig.measure(slots=3, free_slots=3)
    first, working, second = only((*rig.submit(members=3), *rig.wait(0)), StartAttempt)
    _fail(rig, first.attempt)
    rig.end(AttemptEnded(attempt=working.attempt, exit_code=0))
    assert (_shape(rig).failed_starts, _shape(rig).pauses_until) == (0, 0)
    _fail(rig, second.attempt)
    assert (_shape(rig).failed_starts, _shape(rig).pauses_until) == (1, rig.now + SECOND)


def test_after_a_result_the_pauses_begin_anew(machine: Rig) -> None:
    first = _started((*machine.submit(members=2), *machine.wait(0)))
    _fail(machine, first)
    assert _shape(machine).failed_starts == 1
    second = _started(machine.wait(60 * SECOND))
    machine.end(AttemptEnded(attempt=second, exit_code=0))
    assert _shape(machine).failed_starts == 0


def test_an_attempt_that_ended_after_its_start_is_no_failed_start(machine: Rig) -> None:
    _fail(machine, _started((*machine.submit(), *machine.wait(0))), Cause.VACATED)
    assert (_shape(machine).failed_starts, _shape(machine).pauses_until) == (0, 0)


def test_tasks_of_other_shapes_do_not_pause(machine: Rig) -> None:
    _fail(machine, _started((*machine.submit(), *machine.wait(0))))
    other = machine.submit(key=ClientKey("other"), tdv=tdv(user="bob"))
    assert _started((*other, *machine.wait(0))).task.number == 2
