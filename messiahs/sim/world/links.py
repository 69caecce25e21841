"""What links cost in the simulated world: as a scenario states of some, and nothing but a hop's delay of all others.

Bytes go the way with the fewest links: delays add up, and the least throughput counts. Transfers over one link at a
time do not slow each other down.
"""

from collections import deque
from collections.abc import Iterable, Mapping

from messiahs.core.model.ids import SystemId
from messiahs.core.model.input_size import contents_of
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.model.link_costs import LinkCosts
from messiahs.core.model.task_files import InputFile

HOP_DELAY_NS = MILLISECOND
_HOP_TRIP_NS = 2 * HOP_DELAY_NS
_HOP = LinkCosts(_HOP_TRIP_NS)


class Links:
    """The costs of all ways between systems, and the contents that have gone them (mutable)."""

    def __init__(
        self,
        stated: Mapping[frozenset[SystemId], LinkCosts] | None = None,
        neighbors: Mapping[SystemId, Iterable[SystemId]] | None = None,
    ) -> None:
        self._stated = stated or {}
        self._neighbors = neighbors or {}
        self._ways: dict[tuple[SystemId, SystemId], LinkCosts] = {}
        self._arrivals: dict[SystemId, dict[bytes, int]] = {}
        """When contents that were sent to a system are there."""

    def delay_ns(self, one: SystemId, other: SystemId) -> int:
        """Return the time that a message takes from one system to another."""
        return (self._way(one, other).round_trip_ns or 0) // 2

    def carry(self, one: SystemId, other: SystemId, files: Iterable[InputFile], /, now: Instant) -> tuple[int, int]:
        """Send files, and return the bytes of those that were not sent there before, and how long until all are there.

        Without a stated throughput, they take no longer than messages.
        """
        throughput = self._way(one, other).throughput
        if throughput is None:
            return 0, 0
        arrivals, contents = self._arrivals.setdefault(other, {}), contents_of(files)
        missing = [content for content in contents if content not in arrivals]
        size_bytes = sum(contents[content] for content in missing)
        arrivals.update(dict.fromkeys(missing, now + size_bytes * SECOND // throughput))
        return size_bytes, max(0, max((arrivals[content] for content in contents), default=now) - now)

    def _way(self, one: SystemId, other: SystemId) -> LinkCosts:
        if not self._stated:
            return _HOP
        if (one, other) not in self._ways:
            self._ways[one, other] = self._found(one, other)
        return self._ways[one, other]

    def _found(self, one: SystemId, other: SystemId) -> LinkCosts:
        """Return the costs of a way with the fewest links; of systems that no links connect, those of a hop."""
        costs = {one: LinkCosts(0)}
        left = deque(costs)
        while left and other not in costs:
            system = left.popleft()
            for neighbor in self._neighbors.get(system, ()):
                if neighbor not in costs:
                    costs[neighbor] = _joined(costs[system], self._stated.get(frozenset((system, neighbor)), _HOP))
                    left.append(neighbor)
        return costs.get(other, _HOP)


def _joined(way: LinkCosts, link: LinkCosts) -> LinkCosts:
    trip = (way.round_trip_ns or 0) + (_HOP_TRIP_NS if link.round_trip_ns is None else link.round_trip_ns)
    stated = [each.throughput for each in (way, link) if each.throughput is not None]
    return LinkCosts(trip, min(stated, default=None))
