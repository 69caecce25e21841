"""Sites with roots of their own in the simulation: task streams pass only where both ends trust each other."""

from random import Random

from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import UNKNOWN, Trust

_OURS, _THEIRS = b"o" * 16, b"t" * 16


def draw_sites(random: Random, topology: Topology) -> dict[SystemId, Trust]:
    """In one federation of five, let one system with all below it be of another site; else nothing is said of roots."""
    below = [system.name for system in topology.systems if system.primary_parent is not None]
    if not below or random.randrange(5):
        return dict.fromkeys((system.name for system in topology.systems), UNKNOWN)
    theirs = {random.choice(below)}
    # Parents stand before their children.
    for system in topology.systems:
        if system.primary_parent in theirs:
            theirs.add(system.name)
    return {each.name: _site(_THEIRS if each.name in theirs else _OURS) for each in topology.systems}


def apart_from(
    name: SystemId, neighbors: tuple[Neighbor, ...], /, sites: dict[SystemId, Trust]
) -> tuple[SystemId, ...]:
    """Give the neighbors of a system that are of another site."""
    return tuple(each.system for each in neighbors if sites[each.system] != sites[name])


def _site(root: bytes) -> Trust:
    return Trust(roots=(root,), vouchers=(root,))
