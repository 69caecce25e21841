"""Time as the core sees it: integer nanoseconds that the host hands in.

Only durations cross the wire (no clock of a neighbor is ever believed).
"""

from typing import NewType

Instant = NewType("Instant", int)
"""Nanoseconds on the host's own monotonic scale; it survives a restart of the module."""

Duration = NewType("Duration", int)
"""Nanoseconds."""

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def after(now: Instant, delay_ns: int) -> Instant:
    """Give the instant `delay_ns` nanoseconds later."""
    return Instant(now + delay_ns)
