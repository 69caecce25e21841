"""Who is linked with whom in a topology, and which end of a link dials (MESSIAHS 5, 7.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from messiahs.config.settings import ModuleSettings, NeighborSettings
from messiahs.config.topology import System, Topology
from messiahs.core.ids import SystemId
from messiahs.core.neighbors import Neighbor
from messiahs.errors import MessiahsError

LINKED_SIBLINGS = 16
"""A module keeps at most so many direct links to siblings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPaths:
    """Where a module finds its certificate, its key, and the certificates that it trusts."""

    certificate_file: Path
    key_file: Path
    trust_file: Path


def neighbors_of(topology: Topology, name: str) -> tuple[Neighbor, ...]:
    """Give every system that the named one has a link with, sorted by name.

    Siblings share the *primary* parent (equation 16); of more than sixteen the nearest ones in the ring of sorted
    names are linked, so that both ends of a link come to the same answer without asking each other. Siblings at
    different sites have no link, because neither file lists them both: their parent tells each of the others.
    """
    me = topology.system(name)
    siblings = _linked_siblings(topology, me)
    found = []
    for other in topology.systems:
        neighbor = Neighbor(
            system=other.name,
            is_parent=other.name in me.parents,
            is_primary_parent=other.name == me.primary_parent,
            is_child=me.name in other.parents,
            is_primary_child=me.name == other.primary_parent,
            is_sibling=other.name in siblings,
        )
        if neighbor.is_parent or neighbor.is_child or neighbor.is_sibling:
            found.append(neighbor)
    return tuple(sorted(found, key=lambda neighbor: neighbor.system))


def dials(name: str, neighbor: Neighbor) -> bool:
    """Say whether the named system dials this neighbor: a child dials its parent, of two siblings the smaller name."""
    if neighbor.is_parent or neighbor.is_child:
        return neighbor.is_parent
    return name < neighbor.system


def module_settings(
    topology: Topology, name: str, *, addresses: Mapping[str, str], state_directory: Path, tls: TlsPaths
) -> ModuleSettings:
    """Give the settings of one module; `addresses` (host:port) holds its own and every one that it dials."""
    system = topology.system(name)
    linked = neighbors_of(topology, name)
    needed = (name, *(neighbor.system for neighbor in linked if dials(name, neighbor)))
    lacking = ", ".join(wanted for wanted in needed if wanted not in addresses)
    if lacking:
        raise MessiahsError(f"`{name}` cannot run: the topology gives no `host` and `port` for {lacking}")
    return ModuleSettings(
        federation=topology.federation,
        name=name,
        state_directory=state_directory,
        listen=addresses[name],
        certificate_file=tls.certificate_file,
        key_file=tls.key_file,
        trust_file=tls.trust_file,
        neighbors=tuple(
            NeighborSettings(
                neighbor=other,
                address=addresses[other.system] if dials(name, other) else None,
                trust_file=topology.system(other.system).trust_file,
            )
            for other in linked
        ),
        policy_file=system.policy_file,
        machine=system.machine,
        update_period_ns=topology.update_period_ns,
    )


def _linked_siblings(topology: Topology, me: System) -> frozenset[SystemId]:
    if me.primary_parent is None or me.is_external:
        return frozenset()
    ring = sorted(
        system.name
        for system in topology.systems
        if system.primary_parent == me.primary_parent and not system.is_external
    )
    here = ring.index(me.name)
    if len(ring) - 1 <= LINKED_SIBLINGS:
        return frozenset(ring) - {me.name}
    steps = range(1, LINKED_SIBLINGS // 2 + 1)
    return frozenset(ring[(here + step * way) % len(ring)] for step in steps for way in (1, -1))
