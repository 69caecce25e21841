"""The host's clock: it starts at wall time, and then never jumps until the machine is rebooted."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from messiahs.core.interface.calendar import calendar_time
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.instants import SECOND, Instant
from messiahs.executor.linux.kernel import boot_id, boottime_ns

_READINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BootOffset:
    """Difference between an instant and CLOCK_BOOTTIME, in ns, for one boot of the machine."""

    boot: str
    offset_ns: int


class Clock:
    """Instants that only grow, also after a restart, a reboot, or a wall clock that was set back.

    During one boot of the machine, all processes of the daemon use the same offset, whatever happens to the wall clock:
    the rest of a stored lease is exact, and agrees with the starter's.
    """

    def __init__(self, newest_stored: Instant, last: BootOffset | None = None) -> None:
        self.boot = boot_id()
        if last is not None and last.boot == self.boot:
            offset_ns = last.offset_ns
        else:
            offset_ns = offset_between(boottime_ns, time.time_ns)
        self.offset_ns = max(offset_ns, newest_stored - boottime_ns())
        """An instant is CLOCK_BOOTTIME plus this."""

    def boot_offset(self) -> BootOffset:
        """Return the offset for the daemon's next process."""
        return BootOffset(boot=self.boot, offset_ns=self.offset_ns)

    def now(self) -> Instant:
        """Return the present instant."""
        return Instant(boottime_ns() + self.offset_ns)

    def wall_offset_ns(self) -> int:
        """Return by how many ns the wall clock is ahead of instants."""
        return offset_between(self.now, time.time_ns)

    def instant_of(self, wall_seconds: int) -> Instant:
        """Return a time of the wall clock as an instant, to the second: people are shown the time that they named."""
        return Instant((wall_seconds * SECOND - self.wall_offset_ns() + SECOND // 2) // SECOND * SECOND)


def offset_between(clock: Callable[[], int], other: Callable[[], int]) -> int:
    """Return by how many ns `other` is ahead of `clock`, accurate to the shortest of a few readings.

    The process may be interrupted between two readings; a daemon would then differ from all others for its lifetime.
    """
    readings = [(clock(), other(), clock()) for _ in range(_READINGS)]
    before, there, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return there - (before + after) // 2


def local_time(instant: Instant) -> CalendarTime:
    """Convert an instant to the time zone of this machine."""
    return _local_second(instant // SECOND)


@lru_cache(1)
def _local_second(second: int) -> CalendarTime:
    """Return the calendar time of a second; cached, because it is asked for with each message that brings tasks."""
    return calendar_time(datetime.fromtimestamp(second).astimezone())
