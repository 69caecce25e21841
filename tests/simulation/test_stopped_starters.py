"""A starter that is stopped while its tasks run: its watchdog ends them before another attempt begins."""

import pytest

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.checks.invariants import Checks, Violation
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes, SimulatedMachine
from messiahs.sim.hosts.system import SimulatedSystem
from tests.unit.core.rig import sdv, tdv

ORIGIN, ONE, OTHER = map(SystemId, ("origin", "one", "other"))
LEASE_NS = 20 * SECOND


def _federation() -> tuple[SimulatedFederation, Checks]:
    """Build an origin without a machine and two children with one slot each; tasks run for hours."""
    machine = sdv(slots=1, nproc=1)
    policy = OpenPolicy(timeouts=Timeouts(lease_ns=LEASE_NS, status_ns=15 * SECOND))
    above = (Neighbor(system=ORIGIN, is_parent=True, is_primary_parent=True),)
    below = tuple(Neighbor(system=name, is_child=True, is_primary_child=True) for name in (ONE, OTHER))
    systems = {
        ORIGIN: SimulatedSystem(name=ORIGIN, neighbors=below, machine=None, policy=policy),
        ONE: SimulatedSystem(name=ONE, neighbors=above, machine=machine, policy=policy),
        OTHER: SimulatedSystem(name=OTHER, neighbors=above, machine=machine, policy=policy),
    }
    clocks = {name: system.clock for name, system in systems.items()}
    checks = Checks({ONE: machine.description(), OTHER: machine.description()}, clocks=clocks)
    federation = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=10_000 * HOUR), watcher=checks)
    checks.agenda = federation.agenda
    return federation, checks


def _stop_daemon_and_starter_of_the_executor() -> Checks:
    """Start a task, stop the daemon and the starter of its machine, and wait until it has begun elsewhere."""
    federation, checks = _federation()
    federation.run(lambda: False, until=after(federation.now, 5 * SECOND))
    event = Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey("k"),
        tdv=tdv(origin=ORIGIN),
        requirement="",
        command=Command(argv=("true",)),
    )
    federation.post(ORIGIN, event)
    federation.run(lambda: len(checks.begun) == 1, until=after(federation.now, MINUTE))
    (executor,) = checks.begun.values()
    host = federation.members[executor]
    assert host.machine is not None
    host.pause()
    host.machine.stop(is_daemon_up=False)
    federation.run(lambda: len(checks.begun) == 2, until=after(federation.now, 10 * MINUTE))
    return checks


def test_a_task_of_a_stopped_starter_ends_before_its_next_attempt_begins() -> None:
    checks = _stop_daemon_and_starter_of_the_executor()
    assert sorted(attempt.number for attempt in checks.begun) == [1, 2]
    assert [ended.cause for ended in checks.ran.values()] == ["lost"]


def test_without_the_watchdog_two_attempts_of_a_task_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep_on(machine: SimulatedMachine, stops: int) -> None:
        del machine, stops

    monkeypatch.setattr(SimulatedMachine, "_end_stopped", sleep_on)
    with pytest.raises(Violation, match="at once"):
        _stop_daemon_and_starter_of_the_executor()
