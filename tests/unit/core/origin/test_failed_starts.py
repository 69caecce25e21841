"""Tasks that the own machine cannot start are tried again after pauses that grow, although it has room at once."""

import pytest

from messiahs.core.interface.actions import Action, StartAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import DenyCode, SchedRequest, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import AttemptId, ClientKey
from messiahs.core.model.instants import SECOND
from messiahs.core.state.origin import Shape
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    FAR,
    ME,
    NEIGHBORS,
    TASK,
    Rig,
    accept,
    attempt,
    deny,
    message_in,
    only,
    status,
    statuses,
    tdv,
)


@pytest.fixture
def machine(rig: Rig) -> Rig:
    """Return a module whose machine has one slot: with each end of a task it has room that it had not before."""
    rig.measure(slots=1, free_slots=1)
    return rig


@pytest.fixture
def pair(module: ModuleFactory) -> Rig:
    """Return a module without a machine that has one neighbor: a child with room."""
    made = module(neighbors=NEIGHBORS[:1])
    made.greet(CHILD)
    made.see(CHILD)
    return made


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


def _ended(actions: tuple[Action, ...]) -> list[TaskRow]:
    rows = (store.row for store in only(actions, Store))
    return [row for row in rows if isinstance(row, TaskRow) and row.state is not TaskState.EXECUTING]


def test_a_task_that_does_not_wait_is_denied_when_the_own_machine_cannot_start_it(machine: Rig) -> None:
    (row,) = _ended(_fail(machine, _started((*machine.submit(waits=False), *machine.wait(0)))))
    reason = row.reasons[0]
    assert (row.state, row.id) == (TaskState.DENIED, TASK)
    assert (reason.module, reason.code) == (ME, DenyCode.LOST)
    assert reason.text == "the last attempt could not be started: no sandbox"
    assert not machine.state.origin.shapes
    assert not machine.state.origin.claims


def test_a_task_that_does_not_wait_is_denied_during_a_pause(machine: Rig) -> None:
    _fail(machine, _started((*machine.submit(), *machine.wait(0))))
    (row,) = _ended(machine.submit(key=ClientKey("other"), waits=False))
    assert (row.state, row.id.number) == (TaskState.DENIED, 2)
    assert row.reasons[0].text.startswith("the last attempt could not be started on this machine")
    assert _shape(machine).count == 1
    assert _started(machine.wait(2 * SECOND)).task.number == 1


def test_members_that_do_not_wait_are_denied_one_by_one_as_they_fail(module: ModuleFactory) -> None:
    rig = module(neighbors=())
    rig.measure(slots=2, free_slots=2)
    first, second = only((*rig.submit(members=2, waits=False), *rig.wait(0)), StartAttempt)
    assert [row.id.member for row in _ended(_fail(rig, first.attempt))] == [1]
    assert [row.id.member for row in _ended(_fail(rig, second.attempt))] == [2]
    assert not rig.state.origin.submissions


def test_a_round_in_progress_decides_about_a_task_that_does_not_wait(pair: Rig) -> None:
    pair.measure(slots=1, free_slots=1)
    actions = (*pair.submit(members=2, waits=False), *pair.wait(0))
    assert not _ended(_fail(pair, _started(actions)))
    denied = (*pair.hear(CHILD, deny(message_in(actions, SchedRequest).id)), *pair.wait(0))
    assert [row.id.member for row in _ended(denied)] == [1, 2]
    assert not pair.state.origin.submissions


def _bound_at_child(rig: Rig) -> tuple[Action, ...]:
    """Bind a task that does not wait to the machine of a child."""
    return _granted(rig, rig.submit(waits=False))


def _granted(rig: Rig, actions: tuple[Action, ...], number: int = 1) -> tuple[Action, ...]:
    asked = message_in((*actions, *rig.wait(0)), SchedRequest)
    return rig.hear(CHILD, accept(asked.id, claim=CLAIM._replace(number=number)))


def _fail_at_child(rig: Rig, number: int) -> tuple[Action, ...]:
    failed = status(attempt(number), TaskState.REVOKED, cause=Cause.SPAWN_FAILED, text="no sandbox")
    return rig.hear(CHILD, statuses(failed, claim=CLAIM._replace(number=number)))


def test_a_task_that_does_not_wait_is_looked_for_at_once_after_another_machine_could_not_start_it(pair: Rig) -> None:
    _bound_at_child(pair)
    before = pair.now
    _granted(pair, _fail_at_child(pair, 1), 2)
    assert pair.now == before
    assert pair.state.origin.tasks[TASK].attempt == 2


def test_a_task_that_no_other_machine_takes_is_denied_with_the_reason_of_the_one_that_could_not_start_it(
    pair: Rig,
) -> None:
    _bound_at_child(pair)
    asked = message_in((*_fail_at_child(pair, 1), *pair.wait(0)), SchedRequest)
    (row,) = _ended((*pair.hear(CHILD, deny(asked.id)), *pair.wait(0)))
    assert row.state is TaskState.DENIED
    assert (row.reasons[0].module, row.reasons[0].text) == (FAR, "the last attempt could not be started: no sandbox")
