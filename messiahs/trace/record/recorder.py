"""A scheduling module that can be recorded while it runs; without a recording, it costs one test of an attribute.

Any host, live or simulated, can drive a module through this class; the sink determines where the bytes are written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from messiahs import __version__
from messiahs.config.policies import PolicySource, source_of, with_parts
from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Event, PolicyChanged
from messiahs.core.interface.policies import Calendar, CalendarTime, Randomness
from messiahs.core.model.instants import Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains
from messiahs.core.state.module import ModuleState
from messiahs.trace.format.records import Drawn, RandomBits, Record, contents
from messiahs.trace.format.segments import FORMAT, Head, record_frame, segment_start


class Sink(Protocol):
    """Accepts recorded bytes; an exception from it ends the recording."""

    def begin(self, start: bytes, /) -> None:
        """Start a new segment."""

    def append(self, frame: bytes, /) -> None:
        """Add a record to the segment."""

    def close(self) -> None:
        """Return when everything is written; the last call. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The parameters of a recording: a new segment starts when the last has this many bytes of records.

    `source` is the policy at the start. `wall_offset_ns` returns by how many nanoseconds the wall clock (since 1970) is
    ahead of the module's instants. `on_lost` is called with the reason when a recording ends by itself.
    """

    sink: Sink
    source: PolicySource
    segment_bytes: int
    wall_offset_ns: Callable[[], int]
    on_lost: Callable[[str], None]


class RecordedModule:
    """Behaves as a `SchedulingModule`, and records its steps on request (mutable)."""

    def __init__(self, module: SchedulingModule) -> None:
        self._module = module
        self._tape: _Tape | None = None

    @property
    def state(self) -> ModuleState:
        """The state of the module, to be read between calls."""
        return self._module.state

    @property
    def is_recorded(self) -> bool:
        """Whether a recording is in progress."""
        return self._tape is not None

    def record(self, recording: Recording, now: Instant) -> None:
        """Start a recording in place of any other; raises what the sink raises."""
        self.end_recording()
        self._tape = _Tape(self._module.state, recording, now)

    def end_recording(self) -> None:
        """End the recording; return when it is completely written."""
        if self._tape is not None:
            tape, self._tape = self._tape, None
            tape.end()

    def resume(self, remains: Remains, now: Instant) -> tuple[Action, ...]:
        """Start, as `SchedulingModule.resume`."""
        if self._tape is None:
            return self._module.resume(remains, now)
        return self._recorded(remains, now, lambda: self._module.resume(remains, now))

    def handle(self, event: Event, now: Instant) -> tuple[Action, ...]:
        """Handle a message or a local fact."""
        if self._tape is None:
            return self._module.handle(event, now)
        return self._recorded(event, now, lambda: self._module.handle(event, now))

    def expire(self, now: Instant) -> tuple[Action, ...]:
        """Fire the earliest timeout that is due by now; when none is due, nothing is recorded."""
        if self._tape is None:
            return self._module.expire(now)
        deadline = self._module.next_deadline()
        if deadline is None or deadline > now:
            return ()
        return self._recorded(None, now, lambda: self._module.expire(now))

    def next_deadline(self) -> Instant | None:
        """Return the instant at which `expire` is due, which may have passed; None if no timeout is set."""
        return self._module.next_deadline()

    def _recorded(
        self, subject: Remains | Event | None, now: Instant, step: Callable[[], tuple[Action, ...]]
    ) -> tuple[Action, ...]:
        self._write(lambda tape: tape.begin_step())
        try:
            actions = step()
        except Exception as error:
            # The step that shows a bug is the most important one: it is on disk before the process dies.
            raised = f"{type(error).__name__}: {error}"
            self._write(lambda tape: tape.end_step(subject, now, (), raised=raised))
            self.end_recording()
            raise
        self._write(lambda tape: tape.end_step(subject, now, actions))
        return actions

    def _write(self, write: Callable[["_Tape"], None]) -> None:
        if self._tape is None:
            return
        try:
            write(self._tape)
        except Exception as error:  # noqa: BLE001 - after any error the module continues without being recorded
            on_lost = self._tape.recording.on_lost
            self.end_recording()
            on_lost(str(error) or type(error).__name__)


class _Tape:
    """A recording in progress: it stands between the module and its ports, and records what they return (mutable)."""

    def __init__(self, state: ModuleState, recording: Recording, now: Instant) -> None:
        self.recording = recording
        self._state = state
        self._randomness: Randomness = state.randomness
        self._calendar: Calendar = state.calendar
        self._drawn: list[Drawn] = []
        self._began_at = now + recording.wall_offset_ns()
        self._source = with_parts(recording.source, state.policy)
        self._segments = 0
        self._room = 0
        self._begin_segment()
        state.randomness, state.calendar = self, self._read_calendar

    def bits(self, count: int, /) -> int:
        """Draw from the module's own port, and record the result."""
        number = self._randomness.bits(count)
        self._drawn.append(RandomBits(count=count, number=number.to_bytes((count + 7) // 8)))
        return number

    def _read_calendar(self, instant: Instant) -> CalendarTime:
        time = self._calendar(instant)
        self._drawn.append(time)
        return time

    def end(self) -> None:
        self._state.randomness, self._state.calendar = self._randomness, self._calendar
        self.recording.sink.close()

    def begin_step(self) -> None:
        self._drawn.clear()
        if self._room <= 0:
            self._begin_segment()

    def end_step(
        self, subject: Remains | Event | None, now: Instant, actions: tuple[Action, ...], *, raised: str = ""
    ) -> None:
        record = Record(at=now, subject=subject, drawn=tuple(self._drawn), actions=actions, raised=raised)
        frame = record_frame(record)
        self._room -= len(frame)
        self.recording.sink.append(frame)
        if isinstance(subject, PolicyChanged):
            self._source = source_of(subject.policy)

    def _begin_segment(self) -> None:
        head = Head(
            format=FORMAT,
            release=__version__,
            fingerprint=contents().fingerprint,
            system=self._state.system,
            wall_offset_ns=self.recording.wall_offset_ns(),
            recording=self._began_at,
            number=self._segments,
            policy=self._source,
        )
        start = segment_start(head, self._state)
        # A large state is not written repeatedly for a few records.
        self._segments += 1
        self._room = max(self.recording.segment_bytes, len(start))
        self.recording.sink.begin(start)
