"""One recorded step, run through the core of this build again with the recorded draws (MESSIAHS 6.1)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Event
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.instants import Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains
from messiahs.trace.format.records import Drawn, RandomBits


class DrawsOtherwiseError(Exception):
    """The core draws a value that it did not draw when it was recorded."""


@dataclass(slots=True)
class RecordedPorts:
    """Returns the values drawn when a step was recorded (mutable)."""

    left: Iterator[Drawn] = field(default_factory=lambda: iter(()))

    def bits(self, count: int, /) -> int:
        """Return the recorded random bits."""
        drawn = next(self.left, None)
        if not isinstance(drawn, RandomBits) or drawn.count != count:
            raise DrawsOtherwiseError(f"{count} random bits are drawn in place of {drawn}")
        return int.from_bytes(drawn.number)

    def calendar(self, _: Instant, /) -> CalendarTime:
        """Return the recorded local time."""
        drawn = next(self.left, None)
        if not isinstance(drawn, CalendarTime):
            raise DrawsOtherwiseError(f"the calendar is read in place of {drawn}")
        return drawn


def do_step(module: SchedulingModule, subject: Remains | Event | None, at: Instant, /) -> tuple[Action, ...]:
    """Start a module, let it handle an event, or (None) fire one timeout; raises what the core raises."""
    match subject:
        case None:
            return module.expire(at)
        case Remains():
            return module.resume(subject, at)
        case _:
            return module.handle(subject, at)
