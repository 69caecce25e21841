"""Sites behind borders in swarm runs (MESSIAHS 4): which systems are borders, and the names of those behind them."""

from dataclasses import replace
from random import Random

from messiahs.config.topology.borders import behind, bypasses
from messiahs.config.topology.reach import OPEN, PROXY
from messiahs.config.topology.topology import System, Topology
from messiahs.core.model.ids import SystemId
from messiahs.sim.checks.secrecy import Secrecy
from messiahs.sim.load.orders import USERS


def with_borders(random: Random, topology: Topology) -> Topology:
    """In half of all federations, make up to three systems the borders of those below them.

    Often these are all parents of one system. Links that would lead past a border are left out. What is behind one gets
    a name that cannot be part of another name or text, so that its bytes are found wherever they are sent.
    """
    above = {parent for system in topology.systems for parent in system.parents}
    likely = [system.name for system in topology.systems if system.name in above and system.parents]
    if not likely or random.randrange(2):
        return topology
    parents = {str(system.name): tuple(map(str, system.parents)) for system in topology.systems}
    beside = [several for several in parents.values() if len(several) > 1 and set(several) <= set(likely)]
    if beside and random.randrange(2):
        borders = list(random.choice(beside))
    else:
        borders = list(map(str, random.sample(likely, min(len(likely), random.choice((1, 2, 3))))))
    while past := next(bypasses(parents, borders), None):
        parents[past.system] = tuple(parent for parent in parents[past.system] if parent != past.parent)
    inside = {name for border in borders for name in behind(parents, border)}
    names = {name: SystemId(f"in-{name}-side" if name in inside else name) for name in parents}
    systems = tuple(_renamed(system, parents[system.name], names, borders) for system in topology.systems)
    return replace(topology, systems=systems)


def secrecy_of(topology: Topology) -> Secrecy:
    """Return what the borders of a topology hide."""
    parents = {str(system.name): tuple(map(str, system.parents)) for system in topology.systems}
    borders = [system.name for system in topology.systems if system.is_border]
    return Secrecy(
        inside={border: frozenset(map(SystemId, behind(parents, border))) for border in borders},
        beside={border: frozenset(map(SystemId, behind(parents, border, ends=borders))) for border in borders},
        users=USERS,
    )


def _renamed(system: System, parents: tuple[str, ...], names: dict[str, SystemId], borders: list[str], /) -> System:
    shown = tuple(names[parent] for parent in parents)
    return replace(
        system,
        name=names[system.name],
        parents=shown,
        primary_parent=next(iter(shown), None),
        reach=PROXY if system.name in borders else OPEN,
    )
