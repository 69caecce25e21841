"""Reading the audit log: the lines of all sources in the order of time, those of now, and those that follow."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from messiahs.daemon.audit.entries import Line
from messiahs.daemon.audit.files import ENDING, days_in

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


class Reading:
    """Where a reader is in each file (mutable)."""

    def __init__(self, folder: Path, wanted: Filter) -> None:
        self._folder, self._wanted = folder, wanted
        self._offsets: dict[Path, int] = {}
        self._first_day = wanted.since[:10]

    def more(self) -> Iterator[bytes]:
        """Yield the wanted lines that were written since the last call, in the order of their times.

        Lines that a crash has torn are left out, and so is one that is being written. For each other line that is not
        wanted, nothing (`b""`) is yielded, so that a caller can bound how many are read at once.
        """
        days = [day for day in days_in(self._folder) if day.name >= self._first_day]
        for day in days:
            files = sorted(day.glob(f"*{ENDING}"))
            merged = heapq.merge(*(self._of_file(file) for file in files), key=lambda found: found[0])
            yield from (raw for _, raw in merged)
        # Nothing is added to earlier days; a line of the last but one may have been on its way.
        self._first_day = max(self._first_day, *(day.name for day in days[-2:-1]), "")

    def _of_file(self, path: Path) -> Iterator[tuple[str, bytes]]:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            # It was kept no longer.
            return
        at = ""
        with file:
            file.seek(self._offsets.get(path, 0))
            while (raw := file.readline(_LONGEST_LINE_BYTES)).endswith(b"\n"):
                self._offsets[path] = self._offsets.get(path, 0) + len(raw)
                line = _decoded(raw) if self._wanted.task.encode() in raw else None
                if line is not None:
                    at = line.at
                yield at, raw if line is not None and self._wanted.admits(line) else b""


def _decoded(raw: bytes) -> Line | None:
    try:
        return msgspec.json.decode(raw, type=Line)
    except msgspec.MsgspecError:
        return None


def _is_part(task: str, wanted: str) -> bool:
    """Whether a task is the wanted one, or a member or an attempt of it."""
    return task == wanted or task.startswith((f"{wanted}#", f"{wanted}."))
