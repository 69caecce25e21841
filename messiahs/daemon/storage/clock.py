"""The host's clock: starts at wall time, then never jumps until the machine is started anew."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from messiahs.core.interface.calendar import calendar_time
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.instants import SECOND, Instant
from messiahs.executor.linux.kernel import boot_id, boottime_ns

_READINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BootOffset:
    """What an instant is more than CLOCK_BOOTTIME, in ns, in one run of the machine."""

    boot: str
    offset_ns: int


class Clock:
    """Instants that only grow: also after a restart, a reboot, or a wall clock that was set back.

    In one run of the machine every life of the daemon counts alike, whatever became of the wall clock: the rest of a
    stored lease is exact, and is what the starter counts, too.
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
        """Give what the next life of the daemon needs to count alike."""
        return BootOffset(boot=self.boot, offset_ns=self.offset_ns)

    def now(self) -> Instant:
        """Give the present instant."""
        return Instant(boottime_ns() + self.offset_ns)


def offset_between(clock: Callable[[], int], other: Callable[[], int]) -> int:
    """Give what another clock is ahead of one, in ns, to within the shortest of a few readings.

    A process may be interrupted between the two; its daemon would then be behind all others for as long as it lives.
    """
    readings = [(clock(), other(), clock()) for _ in range(_READINGS)]
    before, there, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return there - (before + after) // 2


def local_time(instant: Instant) -> CalendarTime:
    """Read an instant in the time zone of this machine."""
    return calendar_time(datetime.fromtimestamp(instant // SECOND).astimezone())
