"""Which end of each link dials, and the ways of bytes between systems, from a topology alone (MESSIAHS 5.3.3).

The bytes of a task go straight from its origin to its machine, unless a module on the path of the claim takes the place
of the next one (core/relay/byte_route.py): the border of a site, a module whose neighbor has roots of its own, and
the neighbor of a machine that nobody can dial. A module between two sites that are not its own passes on what it cannot
read (core/relay/splices.py). What is behind an external system is not in the file.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from messiahs.config.topology.borders import behind
from messiahs.config.topology.neighbors import Neighborhoods
from messiahs.config.topology.reach import dials, is_border, is_dialable
from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import matches


class Why(StrEnum):
    """Why bytes stop at a module on their way."""

    BORDER = "border"
    """It is a border between the two systems."""
    OTHER_SITE = "other site"
    """It is one end of a link with a site that has roots of its own."""
    THIRD_SITE = "third site"
    """It belongs to neither of the sites at its two sides: it passes connections on unread, or refuses."""
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

    A system in both goes to the others. Bytes that could stop at either of two borders side by side have another way
    that does without the one at which they stop on their first way: `without`.
    """

    origins: tuple[SystemId, ...]
    machines: tuple[SystemId, ...]
    stops: tuple[Stop, ...]
    without: SystemId | None = None


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
    """Return the ways between all pairs of systems, in groups as large as possible; the straight ones come first.

    The second ways of pairs that have two come last.
    """
    graph = _Graph(topology)
    first = {system.name: graph.stops_from(system.name) for system in topology.systems}
    order = tuple(first)
    found = _grouped(first, order)
    beside = _side_by_side(topology)
    for border in beside:
        second = {
            origin: {
                machine: stops
                for machine, stops in graph.stops_from(origin, without=border).items()
                if border in dict(first[origin][machine]) and not dict(stops).keys().isdisjoint(beside)
            }
            for origin in first
            if origin != border
        }
        found += _grouped(second, order, without=border)
    return tuple(found)


def _grouped(
    stops: Mapping[SystemId, Mapping[SystemId, tuple[Stop, ...]]],
    order: tuple[SystemId, ...],
    *,
    without: SystemId | None = None,
) -> list[Ways]:
    """Return the ways with some stops by origin and machine, those with fewest stops first."""
    by_machines: dict[tuple[tuple[Stop, ...], tuple[SystemId, ...]], list[SystemId]] = {}
    for origin, stops_to in stops.items():
        found: dict[tuple[Stop, ...], list[SystemId]] = {}
        for machine in (each for each in order if each in stops_to):
            found.setdefault(stops_to[machine], []).append(machine)
        for each, machines in found.items():
            by_machines.setdefault((each, tuple(machines)), []).append(origin)
    groups = [
        Ways(origins=tuple(origins), machines=machines, stops=each, without=without)
        for (each, machines), origins in by_machines.items()
    ]
    return sorted(_merged(groups), key=lambda ways: len(ways.stops))


def _side_by_side(topology: Topology) -> tuple[SystemId, ...]:
    """Return the borders that share a child with another one."""
    borders = [system.name for system in topology.systems if is_border(system)]
    shared = [set(system.parents) for system in topology.systems if len(set(system.parents).intersection(borders)) > 1]
    return tuple(each for each in borders if any(each in parents for parents in shared))


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
        without=one.without,
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
        self._introduced = tuple(name for each in topology.introductions for name in each.names)
        self._trusts_relays = topology.trusts_relays

    def stops_from(self, origin: SystemId, *, without: SystemId | None = None) -> Mapping[SystemId, tuple[Stop, ...]]:
        """Return the modules at which bytes stop on the way to each other system to which links lead.

        The way is the shortest path that does `without` a system; of equal ones the first in the order of names.
        """
        before = self._paths_from(origin, without)
        passed: dict[SystemId, tuple[Stop, ...]] = {origin: ()}
        found: dict[SystemId, tuple[Stop, ...]] = {}
        for machine, here in before.items():
            if here is None:
                continue
            why = self._why_at(here, before[here], machine)
            found[machine] = passed[machine] = passed[here] if why is None else (*passed[here], (here, why))
            if before[here] is not None and why is None and not is_dialable(self._systems[machine]):
                is_third = self._is_third(here, before[here], machine)
                found[machine] = (*passed[here], (here, Why.THIRD_SITE if is_third else Why.NOT_DIALABLE))
        return found

    def _why_at(self, here: SystemId, before: SystemId | None, after: SystemId) -> Why | None:
        """Return why bytes stop at a system between two others; None if they do not, or if it is their origin."""
        if before is None:
            return None
        if self._crosses(here, before, after):
            return Why.BORDER
        apart = tuple(each for each in (before, after) if self._is_foreign(here, each))
        if all(matches(each, self._introduced) for each in apart):
            return None
        is_unread = self._is_third(here, before, after) and not self._trusts_relays
        return Why.THIRD_SITE if is_unread else Why.OTHER_SITE

    def _crosses(self, border: SystemId, one: SystemId, other: SystemId) -> bool:
        inside = self._behind.get(border, frozenset())
        return is_border(self._systems[border]) and (one in inside) != (other in inside)

    def _is_third(self, here: SystemId, before: SystemId | None, after: SystemId) -> bool:
        """Whether a system belongs neither to the site of the one before it nor to that of the one after it."""
        return before is not None and self._is_foreign(here, before) and self._is_foreign(here, after)

    def _is_foreign(self, one: SystemId, other: SystemId) -> bool:
        """Whether two neighbors have roots of their own."""
        files, others = ({each.file for each in self._systems[name].trust} for name in (one, other))
        return files != others

    def _paths_from(self, origin: SystemId, without: SystemId | None) -> Mapping[SystemId, SystemId | None]:
        """Return the system before each one on its path from an origin, the nearest systems first."""
        before: dict[SystemId, SystemId | None] = {origin: None}
        waiting = deque([origin])
        while waiting:
            here = waiting.popleft()
            for near in self._near[here]:
                if near not in before and near != without:
                    before[near] = here
                    waiting.append(near)
        return before
