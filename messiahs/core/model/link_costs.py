"""What communication with a neighbor costs, and what the systems behind it add (MESSIAHS 5.1: communication costs)."""

from typing import Final, NamedTuple

from messiahs.core.model.instants import HOUR

LONGEST_ROUND_TRIP_NS: Final = HOUR
"""Round trips that are longer, measured or reported, count as this long."""
HIGHEST_THROUGHPUT: Final = 2**40 - 1
"""Bytes a second; a higher throughput counts as this one."""
LEAST_MEASURED_BYTES: Final = 256 << 10
"""A transfer of fewer bytes shows the round trip rather than the throughput, and is not measured."""


class Probe(NamedTuple):
    """What two neighbors add to their vectors to measure the round trip of their link; 0 stands for none.

    Each counts its own vectors with a `stamp`, and returns the last one that it has received as the `echo`, with the
    time for which it held it. So each measures with its own clock, and learns nothing of the other's.
    """

    stamp: int = 0
    echo: int = 0
    held_ns: int = 0


class LinkCosts(NamedTuple):
    """The round trip and the throughput in bytes a second, of a link or of a path; None where it is not known."""

    round_trip_ns: int | None = None
    throughput: int | None = None

    def then(self, beyond: "LinkCosts") -> "LinkCosts":
        """Return the costs of a path that begins with this link: round trips add, and the least throughput counts.

        What is not known of this link is not known of the path. What is not known `beyond` it adds nothing.
        """
        round_trip_ns, throughput = self
        if round_trip_ns is not None:
            round_trip_ns = min(LONGEST_ROUND_TRIP_NS, round_trip_ns + (beyond.round_trip_ns or 0))
        if throughput is not None and beyond.throughput is not None:
            throughput = min(throughput, beyond.throughput)
        return LinkCosts(round_trip_ns, throughput)


UNKNOWN_COSTS: Final = LinkCosts()
NO_PROBE: Final = Probe()
