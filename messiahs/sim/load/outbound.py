"""Systems that nobody can dial in swarm runs (MESSIAHS 5)."""

from dataclasses import replace
from random import Random

from messiahs.config.topology.reach import OPEN, OUTBOUND
from messiahs.config.topology.topology import System, Topology
from messiahs.core.model.ids import SystemId


def with_outbound(random: Random, topology: Topology) -> Topology:
    """In half of all federations, let nobody dial about a third of the systems below others.

    Borders stay as they are, and one end of each link with a parent can still be dialed.
    """
    if random.randrange(2):
        return topology
    outbound: set[SystemId] = set()
    for system in topology.systems:
        related = {*system.parents, *(other.name for other in topology.systems if system.name in other.parents)}
        if system.parents and system.reach == OPEN and outbound.isdisjoint(related) and not random.randrange(3):
            outbound.add(system.name)
    return replace(topology, systems=tuple(_with_reach(system, outbound) for system in topology.systems))


def _with_reach(system: System, outbound: set[SystemId]) -> System:
    return replace(system, reach=OUTBOUND) if system.name in outbound else system
