"""Sites with roots of their own in the simulation: straight streams open only where both ends trust each other."""

from collections.abc import Mapping
from hashlib import sha256
from random import Random
from typing import Protocol

from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import Epoch, SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import UNKNOWN, OtherRoots, Trust

_FINGERPRINT_BYTES = 16


class Sited(Protocol):
    """A system with the roots of its site."""

    @property
    def name(self) -> SystemId:
        """Its name."""

    @property
    def neighbors(self) -> tuple[Neighbor, ...]:
        """Its neighbors, to whom it has links with roots of their own."""

    @property
    def trust(self) -> Trust:
        """Its roots."""

    @property
    def reach(self) -> str:
        """Who can dial it."""


def draw_sites(random: Random, topology: Topology, *, gate: SystemId | None = None) -> dict[SystemId, Trust]:
    """In half of all federations, put one or two systems, each with all below it, on sites with roots of their own.

    A system with parents on two sites links them at a further place. In some federations all sites have been introduced
    to each other; in the others, all trust modules of third sites. In the other half all roots are unknown. With a
    `gate`, that system is at the top of the second site, and the sites have not been introduced.
    """
    below = [system.name for system in topology.systems if system.primary_parent is not None]
    if gate is None and (not below or random.randrange(2)):
        return dict.fromkeys((system.name for system in topology.systems), UNKNOWN)
    roots: dict[SystemId, bytes] = {}
    gates = [gate] if gate is not None else random.sample(below, min(len(below), random.choice((1, 1, 2))))
    # Parents precede their children.
    for system in topology.systems:
        is_gate = system.name in gates or system.primary_parent is None
        own = _root_of(system.name) if is_gate else roots[system.primary_parent or system.name]
        roots[system.name] = own
    are_introduced = gate is None and random.randrange(3) == 0
    known = tuple(dict.fromkeys(roots.values()))
    return {
        name: Trust(roots=known if are_introduced else (root,), vouchers=(root,), trusts_relays=not are_introduced)
        for name, root in roots.items()
    }


def apart_from(
    name: SystemId, neighbors: tuple[Neighbor, ...], /, sites: dict[SystemId, Trust]
) -> dict[SystemId, tuple[bytes, ...]]:
    """Return the neighbors of a system that belong to another site, with the roots that vouch for them."""
    return {each.system: sites[each.system].vouchers for each in neighbors if sites[each.system] != sites[name]}


def introductions_of(name: SystemId, /, sites: Mapping[SystemId, Trust]) -> tuple[OtherRoots, ...]:
    """Return the roots of other sites that a system trusts, each with the names of all systems of that site."""
    own = sites[name]
    return tuple(
        OtherRoots(
            roots=(root,),
            names=tuple(other for other, trust in sites.items() if root in trust.vouchers),
            is_introduction=True,
        )
        for root in own.roots
        if root not in own.vouchers
    )


def are_linked(one: Sited, other: Sited) -> bool:
    """Return whether two systems are neighbors, or one system."""
    return one.name == other.name or any(each.system == other.name for each in one.neighbors)


def key_of(system: SystemId) -> bytes:
    """Return the fingerprint of the key of a system, which outlives its state."""
    return sha256(system.encode()).digest()[:_FINGERPRINT_BYTES]


def border_key_of(system: SystemId, epoch: Epoch) -> bytes:
    """Return the secret of a border, which is lost with its state."""
    return sha256(f"border {system} {epoch}".encode()).digest()


def _root_of(gate: SystemId) -> bytes:
    return sha256(b"root of " + gate.encode()).digest()[:_FINGERPRINT_BYTES]
