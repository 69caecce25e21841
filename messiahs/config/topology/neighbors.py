"""Links of a topology, and the settings of its modules (MESSIAHS 5, 7.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from messiahs.config.settings import ModuleSettings, NeighborSettings
from messiahs.config.topology.borders import above
from messiahs.config.topology.reach import dialer, dials, is_dialable
from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.errors import MessiahsError


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPaths:
    """Paths of a module's certificate, its key, and the certificates that it trusts."""

    certificate_file: Path
    key_file: Path
    trust_file: Path


class Neighborhoods:
    """All links of a topology, by system (immutable)."""

    def __init__(self, topology: Topology) -> None:
        self._systems = {system.name: system for system in topology.systems}
        self._children: dict[SystemId, list[SystemId]] = {}
        brood: dict[SystemId, list[SystemId]] = {}
        for system in topology.systems:
            for parent in system.parents:
                self._children.setdefault(parent, []).append(system.name)
            if system.primary_parent is not None and not system.is_external:
                brood.setdefault(system.primary_parent, []).append(system.name)
        circles = (circle for names in brood.values() for circle in _circles(names, linked=topology.siblings))
        self._circles = {name: circle for circle in circles for name in circle}

    def of(self, name: SystemId) -> tuple[Neighbor, ...]:
        """Return every system with which the named one has a link, sorted by name."""
        me, children = self._systems[name], frozenset(self._children.get(name, ()))
        circle = self._circles.get(name, frozenset()) - {name}
        siblings = {other for other in circle if dialer(me, self._systems[other]) is not None}
        return tuple(
            Neighbor(
                system=other,
                is_parent=other in me.parents,
                is_primary_parent=other == me.primary_parent,
                is_child=other in children,
                is_primary_child=self._systems[other].primary_parent == name,
                is_sibling=other in siblings,
            )
            for other in sorted(children.union(me.parents, siblings))
        )


def neighbors_of(topology: Topology, name: str) -> tuple[Neighbor, ...]:
    """Return every system with which the named one has a link, sorted by name.

    Siblings share the *primary* parent (equation 16). More than one module may be linked to are divided into circles of
    nearly equal size in the order of their names, and only those of one circle are linked. Both ends of a link thus
    compute the same circles, and the parent sends the same vector to all of a circle. Siblings at different sites
    have no link, because neither file lists both; nor have siblings of which nobody can dial either. Their parent
    informs each about the others.
    """
    return Neighborhoods(topology).of(topology.system(name).name)


def module_settings(
    topology: Topology, name: str, *, addresses: Mapping[str, str], state_directory: Path, tls: TlsPaths
) -> ModuleSettings:
    """Return the settings of one module; `addresses` (host:port) has its own and those that it dials.

    A system that nobody can dial needs no address.
    """
    system = topology.system(name)
    linked = neighbors_of(topology, name)
    dialed = {other.system for other in linked if dials(system, topology.system(other.system), neighbor=other)}
    own = (name,) if is_dialable(system) else ()
    needed = (*own, *(other.system for other in linked if other.system in dialed))
    lacking = ", ".join(wanted for wanted in needed if wanted not in addresses)
    if lacking:
        raise MessiahsError(f"`{name}` cannot run: the topology gives no `host` and `port` for {lacking}")
    return ModuleSettings(
        federation=topology.federation,
        name=name,
        state_directory=state_directory,
        listen=addresses[name] if own else "",
        # On one host, as with `messiahs up`, ports of several hosts could conflict.
        bulk_port=system.bulk_port if system.bulk_port and addresses[name] == system.address else 0,
        certificate_file=tls.certificate_file,
        key_file=tls.key_file,
        trust_file=tls.trust_file,
        introductions=topology.introductions,
        trusts_relays=topology.trusts_relays,
        neighbors=tuple(
            NeighborSettings(
                neighbor=other,
                address=addresses[other.system] if other.system in dialed else None,
                trust=topology.system(other.system).trust,
                known_at=addresses.get(other.system, "") if is_dialable(topology.system(other.system)) else "",
            )
            for other in linked
        ),
        policy_file=system.policy_file,
        machine=system.machine,
        is_border=system.is_border,
        borders=above(
            {each.name: each.parents for each in topology.systems},
            name,
            borders={each.name for each in topology.systems if each.is_border},
        ),
        byte_limits=system.byte_limits,
        connections=system.connections,
        siblings=topology.siblings,
        users=system.users,
        webhook_hosts=system.webhook_hosts,
        metrics=system.metrics,
        otlp=system.otlp,
        update_period_ns=topology.update_period_ns,
    )


def _circles(names: list[SystemId], *, linked: int) -> list[frozenset[SystemId]]:
    ordered = sorted(names)
    count = -(-len(ordered) // (linked + 1))
    ends = [place * len(ordered) // count for place in range(count + 1)]
    return [frozenset(ordered[start:end]) for start, end in pairwise(ends)]
