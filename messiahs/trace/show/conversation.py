"""The traces of several modules as one conversation: who says what to whom, in the order of wall time.

A message is told once: by its sender if that was recorded too, else by its receiver.
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
"""What comes every few seconds, whether anybody wants anything or not."""

_SENT = (SendControl, SendTasks, SendVector)
_RECEIVED = (ControlReceived, TransferReceived, VectorReceived)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that a module did or heard, at nanoseconds since 1970; `submitted` is the id that a user was given."""

    at_ns: int
    module: SystemId
    value: Action | Event | Remains
    text: str
    submitted: TaskId | None = None

    @property
    def message(self) -> ControlMessage | TaskTransfer | StatusVector | None:
        """The message, if it is one."""
        return self.value.message if isinstance(self.value, (*_SENT, *_RECEIVED)) else None

    @property
    def ends(self) -> tuple[SystemId, SystemId | None]:
        """Who says it, and to whom; nobody if it is no message."""
        if isinstance(self.value, _SENT):
            return self.module, self.value.to
        return (self.value.sender, self.module) if isinstance(self.value, _RECEIVED) else (self.module, None)

    @property
    def kind(self) -> str:
        """The name of the message, or of what happened, as in `sched_request`."""
        name = type(self.message or self.value).__name__
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Segment files of some modules, those of each in a folder of its own; read anew whenever it is told.

    With `has_vectors` vectors and measurements are told too. Telling raises `TraceError` for what cannot be read.
    """

    files: tuple[Path, ...]
    has_vectors: bool = False

    def lines(self, notes: list[str]) -> Iterator[Line]:
        """Tell everything; what is missing at the end of a segment is noted."""
        folders = self._folders()
        systems = {segment.head.system for files in folders for segment in _first(files)}
        told = (self._told_by(files, systems, notes) for files in folders)
        yield from merge(*told, key=lambda line: line.at_ns)

    def _folders(self) -> list[list[Path]]:
        folders: dict[Path, list[Path]] = {}
        for path in self.files:
            folders.setdefault(path.absolute().parent, []).append(path)
        return list(folders.values())

    def _told_by(self, files: list[Path], systems: set[SystemId], notes: list[str]) -> Iterator[Line]:
        for segment in read_segments(files):
            for record in segment.records():
                yield from self._lines_of(segment, record, systems)
            if segment.note:
                notes.append(f"{segment.name}: {segment.note}")

    def _lines_of(self, segment: Segment, record: Record, systems: set[SystemId]) -> Iterator[Line]:
        system, at_ns = segment.head.system, record.at + segment.head.wall_offset_ns
        subject = record.subject
        is_told = isinstance(subject, _RECEIVED) and subject.sender in systems
        if subject is not None and not is_told and self._is_wanted(subject):
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
