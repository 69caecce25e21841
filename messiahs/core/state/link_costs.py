"""Measuring the link with a neighbor, and the costs of the paths that go on behind it. Not stored (MESSIAHS 5.1)."""

from dataclasses import dataclass, field
from typing import Final

from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.link_costs import HIGHEST_THROUGHPUT, LONGEST_ROUND_TRIP_NS, UNKNOWN_COSTS, LinkCosts, Probe

_STAMPS: Final = 8
"""Vectors to a neighbor that may be in transit; an echo of an earlier one is ignored."""
_ROUND_TRIP_WEIGHT: Final = 8
"""A new round trip counts for one eighth, as in RFC 6298."""
_THROUGHPUT_WEIGHT: Final = 4
"""A new throughput counts for one quarter: transfers are rarer than vectors."""


@dataclass(slots=True)
class MeasuredLink:
    """A link as its vectors and transfers show it (mutable); `costs` stay when a connection ends."""

    costs: LinkCosts = UNKNOWN_COSTS
    sent: dict[int, Instant] = field(default_factory=dict)
    """The latest stamps without an echo, and when they were sent."""
    last: int = 0
    heard: int = 0
    """The last stamp received; 0 for none."""
    heard_at: Instant | None = None

    def probe(self, now: Instant) -> Probe:
        """Return the probe of a vector that is sent now."""
        self.last += 1
        self.sent[self.last] = now
        if len(self.sent) > _STAMPS:
            del self.sent[next(iter(self.sent))]
        if self.heard_at is None:
            return Probe(stamp=self.last)
        return Probe(stamp=self.last, echo=self.heard, held_ns=now - self.heard_at)

    def on_probe(self, probe: Probe, now: Instant) -> None:
        """Note a probe; only the first echo of a stamp counts, and none that claims to be older than the stamp."""
        if probe.stamp > self.heard:
            self.heard, self.heard_at = probe.stamp, now
        sent_at = self.sent.pop(probe.echo, None)
        if sent_at is not None and 0 <= probe.held_ns <= now - sent_at:
            measured_ns = min(LONGEST_ROUND_TRIP_NS, now - sent_at - probe.held_ns)
            smoothed_ns = _smoothed(self.costs.round_trip_ns, measured_ns, weight=_ROUND_TRIP_WEIGHT)
            self.costs = self.costs._replace(round_trip_ns=smoothed_ns)

    def on_transfer(self, size_bytes: int, duration_ns: int) -> None:
        """Note files that were sent in a time."""
        measured = min(HIGHEST_THROUGHPUT, size_bytes * SECOND // max(1, duration_ns))
        smoothed = _smoothed(self.costs.throughput, measured, weight=_THROUGHPUT_WEIGHT)
        self.costs = self.costs._replace(throughput=smoothed)

    def on_connection_ended(self) -> None:
        """Forget stamps and echoes: they are of one connection."""
        self.sent.clear()
        self.last = self.heard = 0
        self.heard_at = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCosts:
    """The costs of the paths to the machines that are summed up here, by the first neighbor of each path."""

    is_here: bool = False
    """Whether the own machine is among them: its path has no link."""
    above: LinkCosts = UNKNOWN_COSTS
    """The shortest round trip, and the highest throughput, through the primary parent and the siblings."""
    round_trips: tuple[tuple[int, SystemId], ...] = ()
    """Through each primary child, the shortest first."""
    throughputs: tuple[tuple[int, SystemId], ...] = ()
    """Through each primary child, the highest first."""


def _smoothed(before: int | None, measured: int, *, weight: int) -> int:
    return measured if before is None else before + (measured - before) // weight
