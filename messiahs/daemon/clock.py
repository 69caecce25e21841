"""The host's clock: starts at wall time, then never jumps."""

import time
from datetime import datetime

from messiahs.core.calendar import calendar_time
from messiahs.core.instants import SECOND, Instant
from messiahs.core.ports import CalendarTime


class Clock:
    """Instants that only grow: also after a restart, a reboot, or a wall clock that was set back."""

    def __init__(self, newest_stored: Instant) -> None:
        boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.offset_ns = max(time.time_ns(), newest_stored) - boottime_ns
        """An instant is CLOCK_BOOTTIME plus this."""

    def now(self) -> Instant:
        """Give the present instant."""
        return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) + self.offset_ns)


def local_time(instant: Instant) -> CalendarTime:
    """Read an instant in the time zone of this machine."""
    return calendar_time(datetime.fromtimestamp(instant // SECOND).astimezone())
