"""Reading the audit log: the lines of all sources in the order of time, those of now, and those that follow."""

import heapq
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from messiahs.daemon.audit.entries import Line
from messiahs.daemon.audit.files import ENDING, days_in

PIECE_BYTES: Final = 256 << 10
PIECE_LINES: Final = 4_096
"""What is read at once; another request is served in between."""
_LONGEST_LINE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which lines are wanted; empty texts and None admit all. `task` names a task, an array, or an attempt.

    `user` is whose the task is, or who decided. With `own_user`, only what concerns tasks of a local user of the module
    `own` is admitted.
    """

    since: str = ""
    task: str = ""
    neighbor: str = ""
    user: str = ""
    kind: str = ""
    own_user: str | None = None
    own: str = ""

    def admits(self, line: Line) -> bool:
        """Whether a line is wanted."""
        if line.at < self.since or self.neighbor not in ("", line.neighbor) or self.kind not in ("", line.kind):
            return False
        if self.user and self.user not in (line.user, line.by):
            return False
        if self.own_user is not None and (line.user, line.origin) != (self.own_user, self.own):
            return False
        return not self.task or any(_is_part(each, self.task) for each in line.tasks)


@dataclass(slots=True)
class _Place:
    """Where the next line of a file begins, in bytes, and which file that is (mutable)."""

    inode: int
    offset: int


_Found = tuple[str, _Place, int, bytes]
"""The time of a line (of the one before if it is not decoded), its file, its size in bytes, and itself if wanted."""


@dataclass(slots=True)
class _Room:
    """What may still be read in one piece (mutable)."""

    size_bytes: int
    lines: int


class Reading:
    """Where a reader is in each file (mutable). No file is open, and no line in memory, between two pieces."""

    def __init__(self, folder: Path, wanted: Filter) -> None:
        self._folder, self._wanted = folder, wanted
        self._places: dict[str, dict[str, _Place]] = {}
        """By day and name of the file."""
        self._first_day = wanted.since[:10]
        self._day = self._first_day
        """The one that is being read."""

    def piece(self) -> tuple[bytes, bool]:
        """Return the next wanted lines in the order of their times, and whether all that was written has been read.

        It reads 256 KiB or 4,096 lines, wanted or not; if all has been read, the next piece has what was written since.
        Lines that a crash has torn are left out, and so is one that is being written. What is left of a file that is
        moved or removed is not read; one that takes its place is read from its beginning.
        """
        days = [day for day in days_in(self._folder) if day.name >= self._first_day]
        # Nothing is added to earlier days; a line of the last but one may have been on its way.
        last_but_one = max(self._first_day, *(day.name for day in days[-2:-1]), "")
        lines, room = list[bytes](), _Room(PIECE_BYTES, PIECE_LINES)
        for day in days:
            if day.name < self._day:
                continue
            self._day = day.name
            lines.extend(self._of_day(day, room))
            if not (room.size_bytes and room.lines):
                return b"".join(lines), False
            if day.name < last_but_one:
                del self._places[day.name]
        self._day = self._first_day = last_but_one
        return b"".join(lines), True

    def _of_day(self, day: Path, room: "_Room") -> Iterator[bytes]:
        """Yield the wanted lines of a day while there is room."""
        places = self._places.setdefault(day.name, {})
        with ExitStack() as opened:
            sources: list[Iterator[_Found]] = []
            for path in sorted(day.glob(f"*{ENDING}")):
                file = _opened(path)
                if file is not None:
                    place = places[path.name] = _place_in(opened.enter_context(file), places.get(path.name))
                    sources.append(self._of_file(file, place))
            for _, place, size_bytes, wanted in heapq.merge(*sources, key=itemgetter(0)):
                place.offset += size_bytes
                if wanted:
                    yield wanted
                room.lines -= 1
                room.size_bytes -= min(room.size_bytes, size_bytes)
                if not (room.size_bytes and room.lines):
                    return

    def _of_file(self, file: BinaryIO, place: _Place) -> Iterator[_Found]:
        at, task = "", self._wanted.task.encode()
        file.seek(place.offset)
        while (raw := file.readline(_LONGEST_LINE_BYTES)).endswith(b"\n"):
            line = _decoded(raw) if task in raw else None
            if line is not None:
                at = line.at
            yield at, place, len(raw), raw if line is not None and self._wanted.admits(line) else b""


def _opened(path: Path) -> BinaryIO | None:
    """Return a file; None if it is kept no longer."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _place_in(file: BinaryIO, before: _Place | None) -> _Place:
    """Return where a reader is in a file who was at some place in the file of that name."""
    found = os.fstat(file.fileno())
    if before is None or before.inode != found.st_ino:
        return _Place(found.st_ino, 0)
    # Lines that could not be stored with their rows are taken back, and written again.
    return _Place(found.st_ino, min(before.offset, found.st_size))


def _decoded(raw: bytes) -> Line | None:
    try:
        return msgspec.json.decode(raw, type=Line)
    except msgspec.MsgspecError:
        return None


def _is_part(task: str, wanted: str) -> bool:
    """Whether a task is the wanted one, or a member or an attempt of it."""
    return task == wanted or task.startswith((f"{wanted}#", f"{wanted}."))
