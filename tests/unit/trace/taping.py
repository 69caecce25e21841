"""A module of the unit tests with its trace in memory."""

from dataclasses import dataclass, field

from messiahs.config.policies import PolicySource
from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import AnswerTo, Event, LinkUp, Submitted
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.recovery import Remains
from messiahs.trace.format.segments import Segment, read_segment
from messiahs.trace.record.recorder import RecordedModule, Recording
from tests.unit.core.rig import CHILD, COMMAND, START, Rig, tdv

OPEN = PolicySource(file="", text=None, timeouts=Timeouts())


@dataclass(slots=True)
class Files:
    """Segment files in memory; with `room` there is an end to it (mutable)."""

    files: list[bytes] = field(default_factory=list)
    room: int | None = None
    is_closed: bool = False

    def begin(self, start: bytes, /) -> None:
        """Begin one."""
        self.is_closed = False
        self.files.append(start)

    def append(self, frame: bytes, /) -> None:
        """Add to it."""
        if self.room is not None:
            self.room -= len(frame)
            if self.room < 0:
                raise OSError(28, "No space left on device")
        self.files[-1] += frame

    def close(self) -> None:
        """Note it."""
        self.is_closed = True

    def segments(self) -> list[Segment]:
        """Read them."""
        read = [read_segment(str(number), data) for number, data in enumerate(self.files)]
        return [segment for segment in read if segment is not None]


@dataclass(slots=True)
class Taping:
    """A module that is recorded (mutable)."""

    module: RecordedModule
    files: Files
    lost: list[str] = field(default_factory=list)
    now: Instant = START
    source: PolicySource = OPEN

    def record(self, *, segment_bytes: int = 1 << 20) -> None:
        """Begin to record."""
        recording = Recording(
            sink=self.files,
            source=self.source,
            segment_bytes=segment_bytes,
            wall_offset_ns=lambda: 0,
            on_lost=self.lost.append,
        )
        self.module.record(recording, self.now)

    def start(self) -> tuple[Action, ...]:
        """Start the module, and link it with a child."""
        return (*self.module.resume(Remains(), self.now), *self.handle(LinkUp(neighbor=CHILD)))

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Let an event happen, a second later."""
        self.now = Instant(self.now + SECOND)
        return self.module.handle(event, self.now)

    def expire(self) -> tuple[Action, ...]:
        """Fire every timeout that is due."""
        actions: list[Action] = []
        while (deadline := self.module.next_deadline()) is not None and deadline <= self.now:
            actions += self.module.expire(self.now)
        return tuple(actions)


def taping(rig: Rig) -> Taping:
    return Taping(module=RecordedModule(rig.module), files=Files())


def submitted(key: str = "k") -> Submitted:
    return Submitted(answer_to=AnswerTo(1), key=ClientKey(key), tdv=tdv(), requirement="", command=COMMAND, members=2)
