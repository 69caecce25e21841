"""The files of the audit log: a folder for each day (UTC), and in it a file of JSON lines for each source.

So what one source causes never takes the room of another. What a source causes on one day has a bound, and so have all
days together: beyond that the source with most bytes loses its oldest day.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from messiahs.errors import StoreError, explained

DAY_BYTES: Final = 32 << 20
"""What one source may write on one day; what follows is only counted."""
TOTAL_BYTES: Final = 4 << 30
SOURCE_LIMIT: Final = 120
"""Sources with files of their own on one day; the others share one."""
AUDIT_FOLDER: Final = "audit"
"""In the folder of a module."""
ENDING: Final = ".jsonl"
_OTHERS: Final = "others"
_COUNTS_BYTES: Final = DAY_BYTES // 32
"""Room for the lines that count, beyond that of a day."""
_OPEN_LIMIT: Final = 16
_CHECKED_BYTES: Final = 64 << 20
_APPENDING: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True, kw_only=True)
class _File:
    """A file of today (mutable)."""

    descriptor: int
    size: int


class AuditFiles:
    """Appends lines (mutable). One thread at a time; every failure is a `StoreError`, and then nothing was appended."""

    def __init__(self, folder: Path, *, keep_days: Callable[[], int], today: Callable[[], date] | None = None) -> None:
        self._folder, self._keep_days, self._today = folder, keep_days, today or _today
        self._day: date | None = None
        self._files: dict[str, _File] = {}
        self._sizes: dict[str, int] = {}
        """Of each source of today."""
        self._unchecked_bytes = 0

    def room_of(self, source: str, *, is_count: bool = False) -> int:
        """Return how many bytes a source may write today, in lines that count, or in lines of single decisions."""
        self._begin_day()
        limit = DAY_BYTES + _COUNTS_BYTES if is_count else DAY_BYTES
        return max(0, limit - self._sizes.get(self._name(source), 0))

    @contextmanager
    def appended(self, pieces: Iterable[tuple[str, bytes]]) -> Iterator[None]:
        """Append lines of sources, and take them back if the block fails."""
        before: dict[str, int] = {}
        try:
            self._begin_day()
            for source, piece in pieces:
                self._append(self._name(source), piece, before)
            yield
        except OSError as error:
            self._take_back(before)
            raise StoreError(f"the audit log {self._folder} cannot be written: {explained(error)}") from error
        except BaseException:
            self._take_back(before)
            raise

    def close(self) -> None:
        """Close the files; a later line opens them again."""
        for file in self._files.values():
            os.close(file.descriptor)
        self._files.clear()

    def _append(self, name: str, piece: bytes, before: dict[str, int]) -> None:
        file = self._opened(name)
        before.setdefault(name, file.size)
        view = memoryview(piece)
        while view:
            written = os.write(file.descriptor, view)
            file.size += written
            view = view[written:]
        self._sizes[name] = file.size
        self._unchecked_bytes += len(piece)

    def _take_back(self, before: dict[str, int]) -> None:
        for name, size in before.items():
            # A batch of many sources has closed some of their files.
            file = self._opened(name)
            file.size = self._sizes[name] = min(size, file.size)
            # Truncating needs no room.
            os.ftruncate(file.descriptor, file.size)

    def _name(self, source: str) -> str:
        return source if source in self._sizes or len(self._sizes) < SOURCE_LIMIT else _OTHERS

    def _opened(self, name: str) -> _File:
        file = self._files.pop(name, None)
        if file is not None and not os.fstat(file.descriptor).st_nlink:
            # Somebody has moved or removed it.
            os.close(file.descriptor)
            file = None
        if file is None:
            assert self._day is not None, "a day has begun"
            folder = self._folder / self._day.isoformat()
            for each in (self._folder, folder):
                each.mkdir(mode=0o700, exist_ok=True)
            file = _File(descriptor=os.open(folder / f"{name}{ENDING}", _APPENDING, 0o600), size=0)
            file.size = _mended(file.descriptor)
        # Ordered by use.
        self._files[name] = file
        if len(self._files) > _OPEN_LIMIT:
            oldest = next(iter(self._files))
            os.close(self._files.pop(oldest).descriptor)
        return file

    def _begin_day(self) -> None:
        today = self._today()
        if today == self._day and self._unchecked_bytes < _CHECKED_BYTES:
            return
        if today != self._day:
            self.close()
            folder = self._folder / today.isoformat()
            self._sizes = {file.stem: file.stat().st_size for file in folder.glob(f"*{ENDING}")}
        self._day, self._unchecked_bytes = today, 0
        self._forget(today)

    def _forget(self, today: date) -> None:
        """Remove days that are kept no longer, then the oldest files of the largest sources beyond the bound."""
        first = today - timedelta(days=self._keep_days())
        kept: dict[str, list[tuple[str, Path, int]]] = {}
        for folder in days_in(self._folder):
            files = sorted(folder.glob(f"*{ENDING}"))
            if date.fromisoformat(folder.name) < first:
                for file in files:
                    file.unlink()
                with suppress(OSError):
                    # Whoever put other files there keeps them.
                    folder.rmdir()
                continue
            for file in files:
                kept.setdefault(file.stem, []).append((folder.name, file, file.stat().st_size))
        totals = Counter({source: sum(size for _, _, size in files) for source, files in kept.items()})
        while totals.total() > TOTAL_BYTES:
            old = {source: files for source, files in kept.items() if files and files[0][0] != today.isoformat()}
            if not old:
                return
            source = max(old, key=totals.__getitem__)
            _, file, size = kept[source].pop(0)
            file.unlink()
            totals[source] -= size


def days_in(folder: Path) -> list[Path]:
    """Return the folders of days, the oldest first."""
    return sorted(each for each in folder.glob("????-??-??") if _is_day(each.name))


def _mended(descriptor: int) -> int:
    """Return the size of a file, after its last line was ended: that may be torn by a crash."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        size += os.write(descriptor, b"\n")
    return size


def _is_day(name: str) -> bool:
    try:
        date.fromisoformat(name)
    except ValueError:
        return False
    return True


def _today() -> date:
    return datetime.now(UTC).date()
