"""Owners who turn the dial of their machines, in virtual time: the effect on tasks, whatever the policy says."""

import pytest

from messiahs.core.interface.lending import Lent
from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.sim.load.dials import Dials
from tests.simulation.test_owners import LEFT, RIGHT, TOP, Desks, events

OPEN = 'policy "open"; attribute $kind string optional; accept from any { limit 100 tasks; }'


@pytest.fixture
def desks() -> Desks:
    """Make two machines whose policy has no rule for running tasks."""
    return Desks(OPEN)


def test_a_task_is_suspended_until_its_machine_is_lent_again(desks: Desks) -> None:
    desks.submit("patient")
    machine, dials = SystemId(desks.task.executed_on), Dials(desks.federation)
    dials.turn(machine, Lent.OFF)
    desks.wait(300)
    assert desks.task.substate is Substate.SUSPENDED
    dials.turn(machine, Lent.ON)
    ended = desks.finish()
    assert (ended.state, ended.attempt, ended.executed_on) == (TaskState.FINISHED, 1, machine)
    assert events(ended) == ["bound", "suspended", "resumed", "finished"]


def test_a_dial_that_is_turned_off_for_a_while_turns_back(desks: Desks) -> None:
    desks.submit("patient")
    machine, dials = SystemId(desks.task.executed_on), Dials(desks.federation)
    dials.turn(machine, Lent.OFF, lasts_ns=60 * SECOND)
    desks.wait(59)
    assert desks.task.substate is Substate.SUSPENDED
    ended = desks.finish()
    assert ended.attempt == 1
    assert dials.are_settled


def test_new_tasks_go_where_owners_lend_and_wait_with_the_reason_where_nobody_does(desks: Desks) -> None:
    dials = Dials(desks.federation)
    dials.turn(LEFT, Lent.OFF)
    desks.wait(5)
    desks.submit("first")
    assert desks.task.executed_on == RIGHT
    dials.turn(RIGHT, Lent.OFF, lasts_ns=300 * SECOND)
    desks.submit("second")
    desks.wait(30)
    top = desks.federation.members[TOP].module.state
    (shape,) = (each for each in top.origin.shapes.values() if each.count)
    said = {hop.module: hop.text for reason in shape.reasons for hop in reason.hops}
    assert said[LEFT] == "its owner does not lend this machine"
    assert said[RIGHT].startswith("its owner does not lend this machine until ")
    dials.turn(LEFT, Lent.POLICY)
    desks.federation.run(lambda: len(desks.federation.ended) == 2, until=Instant(desks.federation.now + 20 * MINUTE))
    assert {row.executed_on for row in desks.federation.ended.values()} == {LEFT, RIGHT}
    assert dials.are_settled
