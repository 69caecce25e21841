"""Two sites of three levels each, in virtual time, run each other's tasks; bytes cross where the sites are linked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from messiahs.core.interface.actions import Action, SendTasks
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import Trust
from messiahs.core.relay.byte_route import ANOTHER_SERVER
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.sites import apart_from, introductions_of
from tests.unit.core.rig import sdv, tdv

UNI, PHYS, ASTRO, OPTICS = map(SystemId, ("uni", "phys", "astro", "optics"))
ORG, LAB, LASER, VACUUM = map(SystemId, ("org", "lab", "laser", "vacuum"))
LONE = SystemId("lone")
SITES = {
    UNI: b"u" * 16, PHYS: b"u" * 16, ASTRO: b"u" * 16, OPTICS: b"u" * 16,
    ORG: b"o" * 16, LAB: b"o" * 16, LASER: b"o" * 16, VACUUM: b"o" * 16,
    LONE: b"l" * 16,
}  # fmt: skip
ONE_PLACE = {PHYS: (UNI,), ASTRO: (PHYS,), OPTICS: (PHYS,), ORG: (UNI,), LAB: (ORG,), LASER: (LAB,), VACUUM: (LAB,)}
TWO_PLACES = {**ONE_PLACE, LAB: (ORG, PHYS)}
SLOTS = {ASTRO: 2, OPTICS: 2, LASER: 3, VACUUM: 3, LONE: 9}
MEMBERS = 12
Links = Mapping[SystemId, tuple[SystemId, ...]]


@dataclass
class World:
    """Both sites, and every stream on which tasks were sent."""

    links: Links
    introduced: bool = False
    strangers: Links = field(default_factory=dict)
    """Systems that take others for their parents, which do not know them."""
    conditions: Conditions = field(default_factory=Conditions)
    streams: set[tuple[SystemId, SystemId]] = field(default_factory=set)

    def __post_init__(self) -> None:
        run_times = RunTimes(seed=1, mean_ns=2 * SECOND, writing=100)
        self.trust = {name: self._trust(name) for name in (UNI, *self.links, *self.strangers)}
        systems = {name: self._system(name) for name in self.trust}
        self.federation = SimulatedFederation(systems, seed=1, run_times=run_times, conditions=self.conditions)
        self.federation.observe = self._observe
        self.federation.run(lambda: False, until=Instant(10 * SECOND))

    def submit(self, origin: SystemId, requirement: str) -> None:
        """Submit tasks that only some machines can run."""
        event = Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey(f"k {origin}"),
            tdv=tdv(origin=origin),
            requirement=requirement,
            command=Command(argv=("true",)),
            members=MEMBERS,
        )
        self.federation.post(origin, event)

    def finish(self, count: int) -> list[TaskRow]:
        """Let tasks end, and return their rows."""
        until = after(self.federation.now, 60 * MINUTE)
        self.federation.run(lambda: len(self.federation.ended) == count, until=until)
        return list(self.federation.ended.values())

    @property
    def crossings(self) -> set[frozenset[SystemId]]:
        """The pairs of systems of different sites between which tasks were sent."""
        return {frozenset(pair) for pair in self.streams if SITES[pair[0]] != SITES[pair[1]]}

    def _trust(self, name: SystemId) -> Trust:
        own = SITES[name]
        others = tuple(root for root in (SITES[UNI], SITES[ORG]) if root != own)
        is_introduced = self.introduced and name not in self.strangers
        return Trust(roots=(own, *others) if is_introduced else (own,), vouchers=(own,))

    def _system(self, name: SystemId) -> SimulatedSystem:
        parents = {**self.links, **self.strangers}.get(name, ())
        above = (Neighbor(system=each, is_parent=True, is_primary_parent=each == parents[0]) for each in parents)
        below = (
            Neighbor(system=child, is_child=True, is_primary_child=theirs[0] == name)
            for child, theirs in self.links.items()
            if name in theirs
        )
        neighbors = (*below, *above)
        return SimulatedSystem(
            name=name,
            neighbors=neighbors,
            machine=sdv(slots=SLOTS[name]) if name in SLOTS else None,
            policy=OpenPolicy(),
            trust=self.trust[name],
            apart=apart_from(name, neighbors, self.trust),
            other_sites=introductions_of(name, self.trust),
        )

    def _observe(self, system: SystemId, action: Action) -> None:
        if isinstance(action, SendTasks):
            self.streams.add((system, action.to))


@pytest.mark.parametrize(
    ("links", "crossings"),
    [(ONE_PLACE, {frozenset((UNI, ORG))}), (TWO_PLACES, {frozenset((UNI, ORG)), frozenset((PHYS, LAB))})],
    ids=["one place", "two places"],
)
def test_two_sites_run_each_others_tasks_both_ways_and_their_bytes_cross_where_they_are_linked(
    links: Links, crossings: set[frozenset[SystemId]]
) -> None:
    world = World(links)
    world.submit(ASTRO, "$slots = 3")
    world.submit(LASER, "$slots = 2")
    rows = world.finish(2 * MEMBERS)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    assert Counter(row.id.system for row in rows) == {ASTRO: MEMBERS, LASER: MEMBERS}
    for row in rows:
        assert row.executed_on in ((LASER, VACUUM) if row.id.system == ASTRO else (ASTRO, OPTICS))
        assert row.result is not None
        assert row.result.outputs
        (way,) = (entry for entry in row.history if entry.event == "route")
        assert way.text == f"through {way.module}; {row.executed_on} is not reached straight: {ANOTHER_SERVER}"
    assert world.crossings
    assert world.crossings <= crossings


def test_two_sites_that_were_introduced_to_each_other_send_straight() -> None:
    world = World(ONE_PLACE, introduced=True)
    world.submit(ASTRO, "$slots = 3")
    rows = world.finish(MEMBERS)
    assert {row.state for row in rows} == {TaskState.FINISHED}
    assert {entry.event for row in rows for entry in row.history} == {"bound", "finished"}
    assert world.streams == {(ASTRO, LASER), (ASTRO, VACUUM)}


def test_tasks_between_introduced_sites_take_the_path_when_a_firewall_closes_the_straight_way() -> None:
    world = World(ONE_PLACE, introduced=True)
    world.conditions.walled[LAB] = world.conditions.walled[LASER] = world.conditions.walled[VACUUM] = 1
    world.submit(ASTRO, "$slots = 3")
    rows = world.finish(MEMBERS)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    ways = {entry.text for row in rows for entry in row.history if entry.event == "route"}
    assert ways
    assert all(way.startswith(f"through {PHYS}; ") for way in ways)
    assert world.crossings >= {frozenset((UNI, ORG))}


def test_a_system_whose_root_nobody_introduced_gets_nothing() -> None:
    world = World(ONE_PLACE, strangers={LONE: (UNI,)})
    world.submit(ASTRO, "$slots = 9")
    world.submit(LONE, "$slots = 3")
    world.federation.run(lambda: False, until=after(world.federation.now, 10 * MINUTE))
    assert world.federation.ended == {}
    assert all(LONE not in pair for pair in world.streams)
    assert world.federation.members[UNI].module.state.updates.links.get(LONE) is None
    assert world.federation.members[LONE].module.state.origin.claims == {}
