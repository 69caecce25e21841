"""Decisions from the step that takes them until their lines are written with the rows of that step.

What somebody can cause without cost has a line for the first time in a minute, and one with the count of the others at
the end of that minute. What has no room in the file of its source is counted by the hour.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec

from messiahs.core.model.instants import HOUR, MINUTE, Instant
from messiahs.core.model.texts import printable
from messiahs.daemon.audit.entries import Entry, Kind, Line, time_text
from messiahs.daemon.audit.files import AuditFiles
from messiahs.daemon.audit.noting import Noted

TASKS_LIMIT: Final = 256
"""Tasks in one line; more of them have further lines."""
COUNTS_LIMIT: Final = 4_096
"""Kinds of decisions that are counted at once; beyond it all counts are written early."""
WAITING_LIMIT: Final = 16_384
"""Different decisions that wait while nothing can be written; further ones are counted as lost."""
_TEXT_LENGTH: Final = 512


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """A decision that is not written yet (mutable)."""

    at: Instant
    tasks: list[str] = field(default_factory=list)
    count: int = 0
    since: Instant | None = None


@dataclass(slots=True, kw_only=True)
class _Count:
    """Decisions since the last line about them (mutable)."""

    since: Instant
    ends_at: Instant
    count: int = 0


Written = Sequence[tuple[Entry, _Waiting]]
"""What is written together with a batch."""


class Journal:
    """Collects decisions, and writes them (mutable). `written` runs in the thread of commits, the rest beside it."""

    def __init__(self, files: AuditFiles, *, module: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._files, self._module, self._clock = files, module, clock
        self._waiting: dict[Entry, _Waiting] = {}
        self._counts: dict[Entry, _Count] = {}
        self._lost = 0
        self._beyond: dict[Entry, _Count] = {}
        """What had no room in its file, by what it was. Belongs to the thread that writes."""

    def note(self, noted: Noted, now: Instant | None = None) -> None:
        """Take a decision; it is written with the next batch, or within a second."""
        entry, at = noted.entry, now if now is not None else Instant(self._clock())
        if entry.is_counted:
            kind = _kind_of(entry)
            counted = self._counts.get(kind)
            if counted is not None:
                counted.count += 1
                return
            if len(self._counts) >= COUNTS_LIMIT:
                self._end_counts(at, all_of_them=True)
            self._counts[kind] = _Count(since=at, ends_at=Instant(at + MINUTE))
        waiting = self._waiting.get(entry)
        if waiting is None:
            if len(self._waiting) >= WAITING_LIMIT:
                self._lost += 1
                return
            waiting = self._waiting[entry] = _Waiting(at=at)
        if noted.task:
            waiting.tasks.append(noted.task)

    def take(self, now: Instant | None = None, *, is_last: bool = False) -> Written:
        """Return what is to be written now; with `is_last` also the counts of minutes that have not ended."""
        now = now if now is not None else Instant(self._clock())
        self._end_counts(now, all_of_them=is_last)
        if self._lost:
            entry = Entry(Kind.AUDIT, "lost", why="nothing could be written, and too many decisions waited")
            self._waiting[entry] = _Waiting(at=now, count=self._lost)
            self._lost = 0
        taken, self._waiting = self._waiting, {}
        return tuple(taken.items())

    def put_back(self, taken: Written) -> None:
        """Let decisions wait that could not be written."""
        later, self._waiting = self._waiting, dict(taken)
        for entry, waiting in later.items():
            before = self._waiting.setdefault(entry, waiting)
            if before is not waiting:
                before.tasks += waiting.tasks

    @contextmanager
    def written(self, taken: Written) -> Iterator[None]:
        """Write decisions, and take them back if the block fails; a `StoreError` if that is not possible."""
        if not taken:
            yield
            return
        now = Instant(self._clock())
        ended = {kind: count for kind, count in self._beyond.items() if count.ends_at <= now}
        hours = ((kind, _Waiting(at=now, count=count.count, since=count.since)) for kind, count in ended.items())
        beyond: list[tuple[Entry, _Waiting]] = []
        with self._files.appended(self._pieces((*taken, *hours), beyond)):
            yield
        for kind in ended:
            del self._beyond[kind]
        for entry, waiting in beyond:
            self._count_beyond(entry, waiting)

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def _end_counts(self, now: Instant, *, all_of_them: bool = False) -> None:
        ended = [kind for kind, counted in self._counts.items() if all_of_them or counted.ends_at <= now]
        for kind in ended:
            counted = self._counts.pop(kind)
            if counted.count:
                self._waiting[kind] = _Waiting(at=now, count=counted.count, since=counted.since)

    def _pieces(self, taken: Written, beyond: list[tuple[Entry, _Waiting]]) -> Iterator[tuple[str, bytes]]:
        """Yield the lines of each source, and add to `beyond` what has no room in its file."""
        by_source: dict[str, list[bytes]] = {}
        sizes: dict[str, int] = {}
        for entry, waiting in taken:
            for line in self._lines(entry, waiting):
                encoded = msgspec.json.encode(line) + b"\n"
                size = sizes.get(entry.source, 0) + len(encoded)
                if size > self._files.room_of(entry.source, is_count=bool(waiting.count)):
                    beyond.append((entry, waiting))
                    break
                sizes[entry.source] = size
                by_source.setdefault(entry.source, []).append(encoded)
        for source, lines in by_source.items():
            yield source, b"".join(lines)

    def _count_beyond(self, entry: Entry, waiting: _Waiting) -> None:
        kind = _kind_of(entry)._replace(why="more than a day of its source may have: counted by the hour")
        count = self._beyond.get(kind)
        if count is None:
            count = self._beyond[kind] = _Count(since=waiting.at, ends_at=Instant(waiting.at + HOUR))
        count.count += waiting.count or max(1, len(waiting.tasks))

    def _lines(self, entry: Entry, waiting: _Waiting) -> Iterator[Line]:
        line = Line(
            at=time_text(waiting.at),
            module=self._module,
            kind=entry.kind.value,
            what=printable(entry.what),
            by=printable(entry.by.user) if entry.by is not None else "",
            uid=entry.by.uid if entry.by is not None else None,
            neighbor=printable(entry.neighbor),
            origin=printable(entry.origin),
            user=printable(entry.user[:_TEXT_LENGTH]),
            about=printable(entry.about[:_TEXT_LENGTH]),
            code=printable(entry.code[:_TEXT_LENGTH]),
            why=printable(entry.why[:_TEXT_LENGTH]),
            count=waiting.count,
            since=time_text(waiting.since) if waiting.since is not None else "",
        )
        if not waiting.tasks:
            yield line
        for first in range(0, len(waiting.tasks), TASKS_LIMIT):
            tasks = tuple(map(printable, waiting.tasks[first : first + TASKS_LIMIT]))
            yield msgspec.structs.replace(line, tasks=tasks)


def _kind_of(entry: Entry) -> Entry:
    """Return a decision without the texts that those can choose who cause it."""
    return entry._replace(why="", about="", user="", origin="", is_counted=False)
