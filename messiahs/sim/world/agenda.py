"""Virtual time: scheduled calls in order, and clocks that drift apart."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from messiahs.core.model.instants import Instant

START = Instant(0)
_MILLION = 1_000_000


class Agenda:
    """Scheduled calls (mutable); of those due at one instant, the one scheduled first comes first."""

    def __init__(self) -> None:
        self.now = START
        self._entries: list[tuple[Instant, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call after a delay."""
        heapq.heappush(self._entries, (Instant(self.now + delay_ns), next(self._order), happen))

    def run(self, is_done: Callable[[], bool], *, until: Instant) -> None:
        """Advance time until `is_done`, or until nothing is scheduled before `until`."""
        while self._entries and not is_done() and self._entries[0][0] <= until:
            self.now, _, happen = heapq.heappop(self._entries)
            happen()


@dataclass(slots=True, kw_only=True)
class DriftingClock:
    """The clock of one host (mutable): it reads `ahead_ns` at the start and gains `gain_ppm` millionths."""

    ahead_ns: int = 0
    gain_ppm: int = 0

    def step(self, at: Instant, *, step_ns: int, lowest: Instant) -> None:
        """Set the clock forward or back while its machine is off; afterwards it reads at least `lowest`."""
        now = self.read(at)
        self.ahead_ns += max(lowest, now + step_ns) - now

    def read(self, at: Instant) -> Instant:
        """Return the reading of the clock at an instant of the simulation."""
        return Instant(self.ahead_ns + at + at * self.gain_ppm // _MILLION)

    def delay_until(self, reading: Instant, at: Instant) -> int:
        """Return the time until the clock reads at least `reading`, in ns."""
        left = reading - self.read(at)
        delay_ns = max(0, left * _MILLION // (_MILLION + self.gain_ppm))
        while self.read(Instant(at + delay_ns)) < reading:
            delay_ns += 1
        return delay_ns
