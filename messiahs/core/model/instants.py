"""Time in the core: integer nanoseconds supplied by the host.

Only durations cross the wire, so the clocks of neighbors are never trusted.
"""

from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", int)
"""Nanoseconds on the host's monotonic scale, which survives a restart of the module."""

Duration = NewType("Duration", int)
"""Nanoseconds."""

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def after(now: Instant, delay_ns: int) -> Instant:
    """Return the instant `delay_ns` nanoseconds later."""
    return Instant(now + delay_ns)


def instant_text(instant: Instant) -> str:
    """Return an instant for people, as RFC 3339 in the clock of this host, rounded up to the second."""
    return datetime.fromtimestamp(-(-instant // SECOND), UTC).isoformat().replace("+00:00", "Z")
