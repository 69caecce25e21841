"""The traces of several modules as one conversation: their messages and events in the order of wall time.

A message is listed once: at its sender if that was recorded too, else at its receiver.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

from messiahs.core.interface.actions import Action, Answer, SendControl, SendTasks, SendVector
from messiahs.core.interface.events import ControlReceived, Event, Measured, Submitted, TransferReceived, VectorReceived
from messiahs.core.interface.messages import ControlMessage, StatusVector, TaskTransfer
from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.recovery import Remains
from messiahs.trace.format.records import Record
from messiahs.trace.format.segments import Segment
from messiahs.trace.show.lines import action_text, event_text
from messiahs.trace.show.reader import read_segments

_QUIET = (SendVector, VectorReceived, Measured)
"""Messages and events that occur every few seconds regardless of tasks."""

_SENT = (SendControl, SendTasks, SendVector)
_RECEIVED = (ControlReceived, TransferReceived, VectorReceived)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An action or event of a module, at nanoseconds since 1970; `submitted` is the id that a user was given."""

    at_ns: int
    module: SystemId
    value: Action | Event | Remains
    text: str
    submitted: TaskId | None = None

    @property
    def message(self) -> ControlMessage | TaskTransfer | StatusVector | None:
        """The message, or None if it is not one."""
        return self.value.message if isinstance(self.value, (*_SENT, *_RECEIVED)) else None

    @property
    def ends(self) -> tuple[SystemId, SystemId | None]:
        """Sender and receiver of a message; otherwise the module and None."""
        if isinstance(self.value, _SENT):
            return self.module, self.value.to
        return (self.value.sender, self.module) if isinstance(self.value, _RECEIVED) else (self.module, None)

    @property
    def kind(self) -> str:
        """The name of the message, action or event, as in `sched_request`."""
        name = type(self.message or self.value).__name__
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Segment files of some modules, those of each in a folder of its own; read anew by every call.

    With `has_vectors`, vectors and measurements are listed too. Reading raises `TraceError` for unreadable files.
    """

    files: tuple[Path, ...]
    has_vectors: bool = False

    def lines(self, notes: list[str]) -> Iterator[Line]:
        """Yield all lines; incomplete ends of segments are added to `notes`."""
        folders = self._folders()
        systems = {segment.head.system for files in folders for segment in _first(files)}
        listed = (self._lines_in(files, systems, notes) for files in folders)
        yield from merge(*listed, key=lambda line: line.at_ns)

    def _folders(self) -> list[list[Path]]:
        folders: dict[Path, list[Path]] = {}
        for path in self.files:
            folders.setdefault(path.absolute().parent, []).append(path)
        return list(folders.values())

    def _lines_in(self, files: list[Path], systems: set[SystemId], notes: list[str]) -> Iterator[Line]:
        for segment in read_segments(files):
            for record in segment.records():
                yield from self._lines_of(segment, record, systems)
            if segment.note:
                notes.append(f"{segment.name}: {segment.note}")

    def _lines_of(self, segment: Segment, record: Record, systems: set[SystemId]) -> Iterator[Line]:
        system, at_ns = segment.head.system, record.at + segment.head.wall_offset_ns
        subject = record.subject
        is_listed = isinstance(subject, _RECEIVED) and subject.sender in systems
        if subject is not None and not is_listed and self._is_wanted(subject):
            text, submitted = event_text(system, subject), _submitted(record)
            yield Line(at_ns=at_ns, module=system, value=subject, text=text, submitted=submitted)
        for action in record.actions:
            if self._is_wanted(action) and (text := action_text(system, action)):
                yield Line(at_ns=at_ns, module=system, value=action, text=text)
        if record.raised:
            assert subject is not None
            yield Line(at_ns=at_ns, module=system, value=subject, text=f"{system}: fails with {record.raised}")

    def _is_wanted(self, value: Action | Event | Remains) -> bool:
        return self.has_vectors or not isinstance(value, _QUIET)


def _first(files: Iterable[Path]) -> Iterator[Segment]:
    for segment in read_segments(files):
        yield segment
        return


def _submitted(record: Record) -> TaskId | None:
    if not isinstance(record.subject, Submitted):
        return None
    return next((action.task for action in record.actions if isinstance(action, Answer)), None)
