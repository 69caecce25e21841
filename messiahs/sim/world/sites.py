"""Sites with roots of their own in the simulation: task streams open only where both ends trust each other."""

from hashlib import sha256
from random import Random

from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import UNKNOWN, Trust

_FINGERPRINT_BYTES = 16
_OURS, _THEIRS = b"o" * 16, b"t" * 16


def draw_sites(random: Random, topology: Topology) -> dict[SystemId, Trust]:
    """In one federation of five, put one system and all below it on a second site; else leave all roots unknown."""
    below = [system.name for system in topology.systems if system.primary_parent is not None]
    if not below or random.randrange(5):
        return dict.fromkeys((system.name for system in topology.systems), UNKNOWN)
    theirs = {random.choice(below)}
    # Parents precede their children.
    for system in topology.systems:
        if system.primary_parent in theirs:
            theirs.add(system.name)
    return {each.name: _site(_THEIRS if each.name in theirs else _OURS) for each in topology.systems}


def apart_from(
    name: SystemId, neighbors: tuple[Neighbor, ...], /, sites: dict[SystemId, Trust]
) -> tuple[SystemId, ...]:
    """Return the neighbors of a system that belong to another site."""
    return tuple(each.system for each in neighbors if sites[each.system] != sites[name])


def key_of(system: SystemId) -> bytes:
    """Return the fingerprint of the key of a system, which outlives its state."""
    return sha256(system.encode()).digest()[:_FINGERPRINT_BYTES]


def _site(root: bytes) -> Trust:
    return Trust(roots=(root,), vouchers=(root,))
