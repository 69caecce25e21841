"""Distributions of durations, counted in buckets."""

from bisect import bisect_left
from itertools import accumulate
from typing import Final

from messiahs.core.model.instants import SECOND

WAIT_SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""From a place that was free to a day in the queue."""
COMMIT_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
"""From a fast disk to one that hangs."""


class Histogram:
    """Durations by the upper bounds of buckets, in seconds (mutable)."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds_ns = tuple(round(bound * SECOND) for bound in bounds)
        self._labels = (*(str(bound) for bound in bounds), "+Inf")
        self._counts = [0] * len(self._labels)
        self._sum_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count one duration; one of exactly a bound belongs to its bucket."""
        self._counts[bisect_left(self._bounds_ns, duration_ns)] += 1
        self._sum_ns += duration_ns

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """The number of durations up to each bound, the last one without a bound."""
        return list(zip(self._labels, map(float, accumulate(self._counts)), strict=True))

    @property
    def sum_seconds(self) -> float:
        """The sum of all durations."""
        return self._sum_ns / SECOND
