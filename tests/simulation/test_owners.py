"""Owners who come and go, in virtual time and under the policy of the live test: the effect on tasks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, Substate, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.descriptions import Description
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.checks.invariants import Checks
from messiahs.sim.checks.settled import leftovers
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.load.owners import Owners
from tests.live.test_owners import POLICY
from tests.unit.core.rig import sdv, tdv

TOP, LEFT, RIGHT = map(SystemId, ("top", "left", "right"))
ROOT = Path(__file__).parents[2]


class Desks:
    """Two machines of one slot under a system without one, each with an owner; invariants are checked all the time."""

    def __init__(self, text: str = POLICY, *, mean_ns: int = 20 * SECOND) -> None:
        policy = parse_policy(text, file="desk.policy")
        machine = sdv(slots=1, nproc=1)
        below = [Neighbor(system=name, is_child=True, is_primary_child=True) for name in (LEFT, RIGHT)]
        up = Neighbor(system=TOP, is_parent=True, is_primary_parent=True)
        systems = {TOP: SimulatedSystem(name=TOP, neighbors=tuple(below), machine=None, policy=policy)}
        said: dict[SystemId, Description] = {}
        for name in (LEFT, RIGHT):
            systems[name] = SimulatedSystem(name=name, neighbors=(up,), machine=machine, policy=policy)
            said[name] = machine.description()
        checks = Checks(said, clocks={name: system.clock for name, system in systems.items()})
        times = RunTimes(seed=1, mean_ns=mean_ns)
        self.federation = SimulatedFederation(systems, seed=1, run_times=times, watcher=checks)
        checks.agenda = self.federation.agenda
        self.owners = Owners(self.federation)
        self.wait(5)
        # A console that was never used reports nothing, and this policy suspends for that too.
        for name in (LEFT, RIGHT):
            self.owners.come(name)
            self.owners.go(name)
        self.wait(65)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        until = Instant(self.federation.now + int(seconds * SECOND))
        self.federation.run(lambda: False, until=until)

    def submit(self, kind: str, *, members: int = 0) -> None:
        """Submit one or several tasks of a kind that the policy knows."""
        event = Submitted(
            answer_to=AnswerTo(0),
            key=ClientKey(kind),
            tdv=tdv(kind=kind, mem=1 << 20, origin="top"),
            requirement="",
            command=Command(argv=("true",)),
            members=members,
        )
        self.federation.post(TOP, event)
        self.wait(0.5)

    @property
    def task(self) -> TaskRow:
        """Return the only task that has not ended."""
        (row,) = self.federation.members[TOP].module.state.origin.tasks.values()
        return row

    def finish(self) -> TaskRow:
        """Let the task end, check that nothing of it is left, and return it."""
        self.federation.run(lambda: bool(self.federation.ended), until=Instant(self.federation.now + 10 * MINUTE))
        self.wait(60)
        assert [text for host in self.federation.members.values() for text in leftovers(host)] == []
        (row,) = self.federation.ended.values()
        return row


def events(row: TaskRow) -> list[str]:
    return [entry.event for entry in row.history]


def test_a_task_is_suspended_while_the_owner_of_its_machine_is_present() -> None:
    desks = Desks()
    desks.submit("patient")
    machine = SystemId(desks.task.executed_on)
    desks.owners.come(machine)
    desks.wait(300)
    assert desks.task.substate is Substate.SUSPENDED
    desks.owners.go(machine)
    ended = desks.finish()
    assert (ended.state, ended.attempt) == (TaskState.FINISHED, 1)
    assert events(ended) == ["bound", "suspended", "resumed", "finished"]


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("leaving", ["bound", "suspended", "vacating", "vacated", "bound", "finished"]),
        ("moving", ["bound", "suspended", "moving", "vacating", "moved", "bound", "finished"]),
    ],
)
def test_a_task_that_cannot_stay_continues_at_the_other_desk(kind: str, steps: list[str]) -> None:
    desks = Desks()
    desks.submit(kind)
    first = SystemId(desks.task.executed_on)
    desks.owners.come(first)
    ended = desks.finish()
    assert (ended.state, ended.attempt, events(ended)) == (TaskState.FINISHED, 2, steps)
    assert ended.executed_on != first


def test_a_task_moves_only_when_there_is_another_place() -> None:
    desks = Desks()
    desks.submit("moving")
    first = SystemId(desks.task.executed_on)
    (other,) = {LEFT, RIGHT} - {first}
    for name in (other, first):
        desks.owners.come(name)
    desks.wait(120)
    assert (desks.task.attempt, desks.task.substate) == (1, Substate.SUSPENDED)
    desks.owners.go(other)
    ended = desks.finish()
    assert (ended.attempt, ended.executed_on) == (2, other)


def test_a_task_that_uses_too_much_memory_is_killed_wherever_it_is() -> None:
    desks = Desks()
    desks.submit("hungry")
    desks.federation.conditions.memory[desks.task.id] = 1 << 30
    desks.wait(200)
    killed = [entry for entry in desks.task.history if entry.event == "revoked"]
    assert {entry.module for entry in killed} == {LEFT, RIGHT}
    assert desks.task.failures == 0


def _digest() -> str:
    desks = Desks()
    desks.submit("moving")
    desks.owners.come(SystemId(desks.task.executed_on))
    desks.finish()
    return desks.federation.digest


@pytest.mark.swarm
def test_two_hash_seeds_give_one_digest() -> None:
    command = [sys.executable, "-c", "from tests.simulation import test_owners as t; print(t._digest())"]
    digests = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
