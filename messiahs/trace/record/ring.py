"""Segment files in one folder, bounded in total: beyond the bound, the oldest is deleted."""

import os
import threading
from pathlib import Path
from typing import BinaryIO, Final

from messiahs.errors import TraceError
from messiahs.trace.record.recorder import Sink

SEGMENTS: Final = 8
"""The number of segments in a full ring."""
SUFFIX: Final = ".trace"

_LARGEST_START: Final = 4
"""The state at the start of a segment may take at most this fraction of the ring."""
_CHECKS: Final = 64
"""The sizes are checked whenever this fraction of the ring has been written."""
_BACKLOG_BYTES: Final = 32 * 1_024 * 1_024
_PAUSE_SECONDS = 0.1
_CLOSE_SECONDS = 5.0


class RingFiles:
    """Writes segments `000001.trace` and so on, readable by their owner alone (mutable).

    Together they take at most `size_bytes`, plus a 64th of it and the last write. Numbers continue after existing
    files. Raises OSError as the file system does.
    """

    def __init__(self, folder: Path, *, size_bytes: int) -> None:
        self._folder, self._size_bytes = folder, size_bytes
        self._file: BinaryIO | None = None
        self._since_check = 0
        # The contents may be secret: command lines, environments, tickets.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)

    def begin(self, start: bytes, /) -> None:
        """Start the next file; a `TraceError` if the ring is too small for a state of this size."""
        if len(start) * _LARGEST_START > self._size_bytes:
            mib = 1 + len(start) * _LARGEST_START // (1 << 20)
            raise TraceError(f"the state of the module is too large for this trace: give it at least {mib}MiB")
        self.close()
        path = self._folder / f"{self._next_number():06}{SUFFIX}"
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb", 0)
        self.append(start)
        self._drop_oldest()

    def append(self, frame: bytes, /) -> None:
        """Add to the file, and delete the oldest files while they exceed the bound."""
        assert self._file is not None, "a segment was begun"
        left = memoryview(frame)
        while left:
            left = left[self._file.write(left) :]
        self._since_check += len(frame)
        if self._since_check > self._size_bytes // _CHECKS:
            self._drop_oldest()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _next_number(self) -> int:
        numbers = [int(path.stem) for path in self._paths()]
        return max(numbers, default=0) + 1

    def _paths(self) -> list[Path]:
        return sorted(path for path in self._folder.glob(f"*{SUFFIX}") if path.stem.isdecimal())

    def _drop_oldest(self) -> None:
        self._since_check = 0
        sizes = [(path, path.stat().st_size) for path in self._paths()]
        total = sum(size for _, size in sizes)
        for path, size in sizes[:-1]:
            if total <= self._size_bytes:
                return
            path.unlink()
            total -= size


class Background:
    """Writes in a thread, so that a slow disk delays no caller; the records of a tenth of a second are one write.

    The first segment is started at once, so that its failure reaches the caller. A later write error is raised by the
    next call, as is a backlog that exceeds its bound (mutable).
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._pending: list[tuple[bool, bytes]] = []
        self._pending_bytes = 0
        self._problem = ""
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)

    def begin(self, start: bytes, /) -> None:
        """Start a new segment: the first one now, later ones soon."""
        if self._thread.ident is not None:
            self._put(start, is_start=True)
            return
        self._sink.begin(start)
        self._thread.start()

    def append(self, frame: bytes, /) -> None:
        """Add a record, soon."""
        self._put(frame, is_start=False)

    def close(self) -> None:
        """Return when everything is written, or after five seconds; at once after a write error."""
        self._is_closing.set()
        if self._thread.ident is not None and not self._problem:
            self._thread.join(_CLOSE_SECONDS)

    def _put(self, data: bytes, *, is_start: bool) -> None:
        with self._lock:
            if not self._problem and self._pending_bytes > _BACKLOG_BYTES:
                self._problem = "the disk is too slow for the recording"
            if self._problem:
                raise TraceError(self._problem)
            self._pending.append((is_start, data))
            self._pending_bytes += len(data)

    def _run(self) -> None:
        is_last = False
        while not is_last and not self._problem:
            is_last = self._is_closing.wait(_PAUSE_SECONDS)
            with self._lock:
                taken, self._pending, self._pending_bytes = self._pending, [], 0
            try:
                self._write(taken)
            except (OSError, TraceError) as error:
                self._problem = str(error)
        self._sink.close()

    def _write(self, taken: list[tuple[bool, bytes]]) -> None:
        gathered: list[bytes] = []
        for is_start, data in taken:
            if is_start:
                self._flush(gathered)
                self._sink.begin(data)
            else:
                gathered.append(data)
        self._flush(gathered)

    def _flush(self, gathered: list[bytes]) -> None:
        if gathered:
            self._sink.append(b"".join(gathered))
        gathered.clear()
