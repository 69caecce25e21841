"""What will happen in a little world of modules in memory, in the order of time, and of coming where that is equal."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from messiahs.core.model.instants import Instant


@dataclass(slots=True)
class Agenda:
    """Mutable."""

    _waiting: list[tuple[Instant, int, Callable[[], None]]] = field(default_factory=list)
    _order: "itertools.count[int]" = field(default_factory=itertools.count)

    def add(self, at: Instant, happen: Callable[[], None]) -> None:
        """Let something happen."""
        heapq.heappush(self._waiting, (at, next(self._order), happen))

    def is_due(self, by: Instant | None) -> bool:
        """Return whether anything waits that happens by then, or (None) at any time."""
        return bool(self._waiting) and (by is None or self._waiting[0][0] <= by)

    def take(self) -> tuple[Instant, Callable[[], None]]:
        """Take the first out, with its time."""
        at, _, happen = heapq.heappop(self._waiting)
        return at, happen
