"""Communication costs on random trees: a searcher sees those of the path to the nearest machine behind each neighbor.

Round trips of its links add up, and their least throughput counts, up to the first system on it that runs tasks itself
or whose policy reveals no costs: what lies behind that one is not told (MESSIAHS 5.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from messiahs.config.settings import MachineSettings
from messiahs.config.topology.neighbors import Neighborhoods
from messiahs.config.topology.topology import System, Topology
from messiahs.core import queries
from messiahs.core.interface.spliced_bytes import FilesSent
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.model.link_costs import LEAST_MEASURED_BYTES, LinkCosts
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.links import Links
from tests.property.budget import examples
from tests.unit.core.rig import CLAIM, sdv

OPEN: Final = "accept from any { limit 9 tasks; }"
SECRETIVE: Final = f"{OPEN} reveal to parent, children, siblings {{ all except $comm_cost; }}"
MOST: Final = 7


@dataclass(frozen=True)
class Tree:
    """Systems with their parents, those with a machine, those that reveal no costs, and what each link costs."""

    parents: dict[SystemId, SystemId | None]
    machines: frozenset[SystemId]
    secretive: frozenset[SystemId]
    links: dict[frozenset[SystemId], LinkCosts]

    def children(self, system: SystemId) -> list[SystemId]:
        """Return the systems below a system."""
        return [name for name, parent in self.parents.items() if parent == system]

    def siblings(self, system: SystemId) -> list[SystemId]:
        """Return the systems beside a system."""
        parent = self.parents[system]
        return [] if parent is None else [name for name in self.children(parent) if name != system]

    def ways_down(self, system: SystemId) -> Iterator[tuple[SystemId, ...]]:
        """Yield the ways from a system to each machine at it and below it."""
        if system in self.machines:
            yield (system,)
        for child in self.children(system):
            yield from ((system, *way) for way in self.ways_down(child))

    def ways_up(self, system: SystemId) -> Iterator[tuple[SystemId, ...]]:
        """Yield the ways from a system to each machine of which it tells its children, which know each other."""
        if system in self.machines:
            yield (system,)
        parent = self.parents[system]
        above = [] if parent is None else list(self.ways_up(parent))
        beside = [way for sibling in self.siblings(system) for way in self.ways_down(sibling)]
        yield from ((system, *way) for way in (*above, *beside))

    def costs(self, way: tuple[SystemId, ...]) -> LinkCosts:
        """Return the costs of a way, up to its first system that tells of none behind it."""
        told = []
        for here, there in pairwise(way):
            told.append(self.links[frozenset((here, there))])
            if there in self.machines or there in self.secretive:
                break
        trips, throughputs = [each.round_trip_ns or 0 for each in told], [each.throughput or 0 for each in told]
        return LinkCosts(sum(trips), min(throughputs))

    def seen(self, searcher: SystemId, neighbor: SystemId) -> LinkCosts | None:
        """Return the best costs of all ways behind a neighbor, by each measure; None without a machine there."""
        ways = self.ways_up(neighbor) if neighbor == self.parents[searcher] else self.ways_down(neighbor)
        found = [self.costs((searcher, *way)) for way in ways]
        if not found:
            return None
        return LinkCosts(min(each.round_trip_ns or 0 for each in found), max(each.throughput or 0 for each in found))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    names = [SystemId(f"s{number}") for number in range(draw(st.integers(2, MOST)))]
    parents: dict[SystemId, SystemId | None] = {names[0]: None}
    for place, name in enumerate(names[1:], 1):
        parents[name] = names[draw(st.integers(0, place - 1))]
    some = st.frozensets(st.sampled_from(names))
    costs = st.builds(
        LinkCosts,
        st.integers(1, 200).map(lambda milliseconds: 2 * milliseconds * MILLISECOND),
        st.integers(LEAST_MEASURED_BYTES, 2**30),
    )
    pairs = {frozenset((name, other)) for name, other in _neighbors(parents)}
    links = {pair: draw(costs) for pair in sorted(pairs, key=sorted)}
    return Tree(parents=parents, machines=draw(some), secretive=draw(some), links=links)


def _neighbors(parents: dict[SystemId, SystemId | None]) -> Iterator[tuple[SystemId, SystemId]]:
    for name, parent in parents.items():
        if parent is not None:
            yield name, parent
            yield from ((name, other) for other, theirs in parents.items() if theirs == parent and other != name)


def _federation(tree: Tree) -> SimulatedFederation:
    systems = tuple(
        System(
            name=name,
            parents=() if parent is None else (parent,),
            primary_parent=parent,
            machine=MachineSettings() if name in tree.machines else None,
        )
        for name, parent in tree.parents.items()
    )
    linked = Neighborhoods(Topology(federation="tree", systems=systems))
    neighbors = {name: linked.of(name) for name in tree.parents}
    links = Links(tree.links, {name: [each.system for each in others] for name, others in neighbors.items()})
    simulated = {
        name: SimulatedSystem(
            name=name,
            neighbors=others,
            machine=sdv(slots=1) if name in tree.machines else None,
            policy=parse_policy(SECRETIVE if name in tree.secretive else OPEN, file=f"{name}.policy"),
        )
        for name, others in neighbors.items()
    }
    return SimulatedFederation(
        simulated, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND), conditions=Conditions(links=links)
    )


def _measured(tree: Tree, federation: SimulatedFederation) -> None:
    """Let each end of each link send files, and every vector reach everybody."""
    federation.run(lambda: False, until=Instant(10 * SECOND))
    for pair, costs in tree.links.items():
        for here, there in (sorted(pair), sorted(pair, reverse=True)):
            assert costs.throughput is not None
            sent = FilesSent(claim=CLAIM, to=there, size_bytes=costs.throughput, duration_ns=SECOND)
            federation.post(here, sent)
    federation.run(lambda: False, until=Instant((10 + 4 * MOST) * SECOND))


@examples(40)
@given(tree=trees())
def test_round_trips_add_up_and_the_least_throughput_counts_as_far_as_policies_reveal_them(tree: Tree) -> None:
    federation = _federation(tree)
    _measured(tree, federation)
    for searcher, neighbor in _both_ways(tree):
        state = federation.members[searcher].module.state
        view = queries.neighbor_view(state, state.neighbors[neighbor], federation.now)
        expected = tree.seen(searcher, neighbor)
        if expected is not None:
            assert view is not None
            assert view.costs == expected, (searcher, neighbor)
        else:
            assert view is None or view.costs == tree.links[frozenset((searcher, neighbor))]


def _both_ways(tree: Tree) -> Iterator[tuple[SystemId, SystemId]]:
    for pair in tree.links:
        one, other = pair
        yield one, other
        yield other, one
