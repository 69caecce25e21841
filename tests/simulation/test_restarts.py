"""Daemons that are down for less than a lease: nothing is lost or repeated, whenever and however long they are down.

Messages in transit when a daemon dies are the critical case, so tasks are short here and messages slow.
"""

from dataclasses import replace
from random import Random

import pytest

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import PassedClaimRow, TaskRow
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND, Duration, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.checks.invariants import Checks
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.conditions import Conditions
from tests.unit.core.rig import sdv, tdv

TOP, MIDDLE, LEAF = map(SystemId, ("top", "middle", "leaf"))
TASKS = 16
SETTLED = Instant(3 * SECOND)
CRASHES_NS = tuple(Duration(at * MILLISECOND) for at in range(20, 120, 20))
AWAY = [(0, 2.5), (0, 100), (2.5, 0), (100, 0), (2.5, 2.5), (5, 10), (10, 5), (100, 2.5), (2.5, 100)]
"""Seconds for which the origin and the executor are down: the longest start, and longer than places are kept."""


class Chain:
    """The tasks of `top` run on the machine of `leaf`, with or without `middle` between them; all is checked."""

    def __init__(self, names: tuple[SystemId, ...], *, seed: int) -> None:
        machine = sdv(slots=2, nproc=2)
        systems = {
            name: SimulatedSystem(
                name=name,
                neighbors=_neighbors(names, name),
                machine=machine if name == LEAF else None,
                policy=OpenPolicy(),
            )
            for name in names
        }
        self.checks = Checks({LEAF: machine.description()}, clocks={LEAF: systems[LEAF].clock})
        self.federation = SimulatedFederation(
            systems,
            seed=seed,
            run_times=RunTimes(seed=seed, mean_ns=20 * MILLISECOND),
            conditions=Conditions(
                random=Random(seed),
                spread_ns=10 * MILLISECOND,
                commit_ns=5 * MILLISECOND,
            ),
            watcher=self.checks,
        )
        self.checks.agenda = self.federation.agenda
        self.federation.run(lambda: False, until=SETTLED)

    def submit(self) -> None:
        """Submit tasks of one shape."""
        event = Submitted(
            answer_to=AnswerTo(0),
            key=ClientKey("k"),
            tdv=tdv(origin=TOP),
            requirement="",
            command=Command(argv=("true",)),
            members=TASKS,
        )
        self.federation.post(TOP, event)

    def crash(self, name: SystemId, *, at_ns: Duration, away_ns: Duration) -> None:
        """Crash a daemon after a while, and start it again after another."""

        def die() -> None:
            self.federation.members[name].crash()
            self.federation.later(away_ns, self.federation.members[name].start)

        if away_ns:
            self.federation.later(at_ns, die)

    def wait_for_passing_claim(self) -> None:
        """Let time pass until a claim passes through `middle`."""
        middle = self.federation.members[MIDDLE]
        self.federation.run(lambda: bool(middle.module.state.hop.passed), until=Instant(self.federation.now + SECOND))
        assert middle.module.state.hop.passed

    def disconnect(self, name: SystemId, neighbor: SystemId, *, at_ns: Duration, for_ns: Duration) -> None:
        """Restart a daemon after a while without one of its neighbors, and with it again after another."""
        host = self.federation.members[name]
        configured = host.system
        others = tuple(each for each in configured.neighbors if each.system != neighbor)

        def restart(neighbors: tuple[Neighbor, ...]) -> None:
            host.crash()
            host.system = replace(configured, neighbors=neighbors)
            host.start()

        self.federation.later(at_ns, lambda: restart(others))
        self.federation.later(Duration(at_ns + for_ns), lambda: restart(configured.neighbors))

    def finish(self) -> list[TaskRow]:
        """Let all tasks end, and return them as stored."""
        until = Instant(self.federation.now + 60 * MINUTE)
        self.federation.run(lambda: len(self.checks.finals) == TASKS, until=until)
        return list(self.checks.finals.values())


def _neighbors(names: tuple[SystemId, ...], name: SystemId) -> tuple[Neighbor, ...]:
    place = names.index(name)
    above = (Neighbor(system=each, is_parent=True, is_primary_parent=True) for each in names[:place][-1:])
    below = (Neighbor(system=each, is_child=True, is_primary_child=True) for each in names[place + 1 :][:1])
    return (*above, *below)


def _ns(seconds: float) -> Duration:
    return Duration(int(seconds * SECOND))


@pytest.mark.parametrize(
    ("names", "top_seconds", "leaf_seconds"),
    [*(((TOP, LEAF), *away) for away in AWAY), ((TOP, MIDDLE, LEAF), 100, 0), ((TOP, MIDDLE, LEAF), 5, 10)],
)
def test_a_restart_shorter_than_the_lease_costs_no_attempt(
    names: tuple[SystemId, ...], top_seconds: float, leaf_seconds: float
) -> None:
    for seed, at_ns in enumerate(CRASHES_NS):
        chain = Chain(names, seed=seed)
        chain.submit()
        chain.crash(TOP, at_ns=at_ns, away_ns=_ns(top_seconds))
        chain.crash(LEAF, at_ns=at_ns, away_ns=_ns(leaf_seconds))
        tasks = chain.finish()
        assert len(tasks) == TASKS
        again = [row for row in tasks if row.attempt != 1]
        assert not again, "\n".join([f"seed {seed}: {again[0]}", *chain.checks.last_about(again[0].id, 60)])


@pytest.mark.parametrize("departed", [TOP, LEAF])
def test_tasks_end_once_although_a_hop_lost_a_neighbor_for_a_while(departed: SystemId) -> None:
    for seed, at_ns in enumerate(CRASHES_NS):
        chain = Chain((TOP, MIDDLE, LEAF), seed=seed)
        chain.submit()
        chain.wait_for_passing_claim()
        chain.disconnect(MIDDLE, departed, at_ns=at_ns, for_ns=Duration(10 * SECOND))
        chain.federation.run(lambda: False, until=Instant(chain.federation.now + 5 * SECOND))
        middle = chain.federation.members[MIDDLE]
        kept = [row for row in middle.disk.rows() if isinstance(row, PassedClaimRow)]
        assert (middle.module.state.hop.passed, kept) == ({}, [])
        assert len(chain.finish()) == TASKS
