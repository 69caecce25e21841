"""Which end of each link dials, and the ways of bytes between systems, from a topology alone (MESSIAHS 5.3.3).

The bytes of a task go straight from its origin to its machine, unless a module on the path of the claim takes the place
of the next one (core/relay/byte_route.py): the border of a site, a module whose neighbor has roots of its own, and
the neighbor of a machine that nobody can dial. What is behind an external system is not in the file.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from messiahs.config.topology.borders import behind
from messiahs.config.topology.neighbors import Neighborhoods
from messiahs.config.topology.reach import dials, is_border, is_dialable
from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import SystemId


class Why(StrEnum):
    """Why bytes stop at a module on their way."""

    BORDER = "border"
    """It is a border between the two systems."""
    OTHER_SITE = "other site"
    """It is one end of a link with a site that has roots of its own."""
    NOT_DIALABLE = "not dialable"
    """It asks its neighbor, which nobody can dial, for a connection."""


Stop = tuple[SystemId, Why]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link, with the system that dials; `relation` is what the dialed one is to it."""

    dialer: SystemId
    dialed: SystemId
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Bytes from each of `origins` to each of `machines` stop at the same modules; they go straight if there are none.

    A system in both goes to the others.
    """

    origins: tuple[SystemId, ...]
    machines: tuple[SystemId, ...]
    stops: tuple[Stop, ...]


def links_of(topology: Topology) -> tuple[Link, ...]:
    """Return every link of a topology, in the order of the systems that dial."""
    around = Neighborhoods(topology)
    return tuple(
        Link(dialer=system.name, dialed=each.system, relation=each.relation.value)
        for system in topology.systems
        for each in around.of(system.name)
        if dials(system, topology.system(each.system), neighbor=each)
    )


def ways_of(topology: Topology) -> tuple[Ways, ...]:
    """Return the ways between all pairs of systems, in groups as large as possible; the straight ones come first."""
    graph = _Graph(topology)
    names = [system.name for system in topology.systems]
    to: dict[tuple[tuple[Stop, ...], tuple[SystemId, ...]], list[SystemId]] = {}
    for machine in names:
        found: dict[tuple[Stop, ...], list[SystemId]] = {}
        for origin in names:
            if origin != machine:
                stops = graph.stops(origin, machine)
                if stops is not None:
                    found.setdefault(stops, []).append(origin)
        for stops, origins in found.items():
            to.setdefault((stops, tuple(origins)), []).append(machine)
    groups = [Ways(origins=origins, machines=tuple(machines), stops=stops) for (stops, origins), machines in to.items()]
    return tuple(sorted(_merged(groups), key=lambda ways: len(ways.stops)))


def _merged(groups: list[Ways]) -> Iterator[Ways]:
    """Join groups with the same stops, such as those that differ only by the machines themselves among the origins."""
    left = list(groups)
    while left:
        joined, rest = left[0], []
        for other in left[1:]:
            both = _joined(joined, other)
            # All groups are disjoint, so that the numbers are equal only if the pairs are.
            if other.stops == joined.stops and _pairs(both) == _pairs(joined) + _pairs(other):
                joined = both
            else:
                rest.append(other)
        yield joined
        left = rest


def _joined(one: Ways, other: Ways) -> Ways:
    return Ways(
        origins=tuple(dict.fromkeys((*one.origins, *other.origins))),
        machines=tuple(dict.fromkeys((*one.machines, *other.machines))),
        stops=one.stops,
    )


def _pairs(ways: Ways) -> int:
    """Return the number of pairs of different systems."""
    return len(ways.origins) * len(ways.machines) - len(set(ways.origins) & set(ways.machines))


class _Graph:
    """The links of a topology, for the paths of claims."""

    def __init__(self, topology: Topology) -> None:
        self._systems = {system.name: system for system in topology.systems}
        around = Neighborhoods(topology)
        self._near = {name: tuple(each.system for each in around.of(name)) for name in self._systems}
        parents = {str(system.name): tuple(map(str, system.parents)) for system in topology.systems}
        borders = [system.name for system in topology.systems if is_border(system)]
        self._behind = {border: frozenset(behind(parents, border, ends=borders)) for border in borders}
        self._is_introduced = bool(topology.introductions)

    def stops(self, origin: SystemId, machine: SystemId) -> tuple[Stop, ...] | None:
        """Return the modules at which bytes stop between two systems; None if no links lead from one to the other."""
        path = self._path(origin, machine)
        if path is None:
            return None
        found: dict[SystemId, Why] = {}
        for before, here, after in zip(path, path[1:], path[2:], strict=False):
            if self._crosses(here, before, after):
                found[here] = Why.BORDER
            elif self._is_foreign(here, before) or self._is_foreign(here, after):
                found.setdefault(here, Why.OTHER_SITE)
        if len(path) > 2 and not is_dialable(self._systems[machine]):  # noqa: PLR2004 - neighbors need no hop
            found.setdefault(path[-2], Why.NOT_DIALABLE)
        return tuple(found.items())

    def _crosses(self, border: SystemId, one: SystemId, other: SystemId) -> bool:
        inside = self._behind.get(border, frozenset())
        return is_border(self._systems[border]) and (one in inside) != (other in inside)

    def _is_foreign(self, one: SystemId, other: SystemId) -> bool:
        """Whether two neighbors have roots of their own, and no introduction makes them trust each other."""
        has_roots = bool(self._systems[one].trust) != bool(self._systems[other].trust)
        return has_roots and not self._is_introduced

    def _path(self, origin: SystemId, machine: SystemId) -> tuple[SystemId, ...] | None:
        """Return the shortest path of links; of equal ones the first in the order of names."""
        before: dict[SystemId, SystemId | None] = {origin: None}
        waiting = deque([origin])
        while waiting and machine not in before:
            here = waiting.popleft()
            for near in self._near[here]:
                if near not in before:
                    before[near] = here
                    waiting.append(near)
        if machine not in before:
            return None
        path: list[SystemId] = []
        step: SystemId | None = machine
        while step is not None:
            path.append(step)
            step = before[step]
        return tuple(reversed(path))
