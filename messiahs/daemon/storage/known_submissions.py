"""Large submissions that were read lately: an array of a million items is needed for each of its members."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from messiahs.core.interface.rows import RowKey, SubmissionRow

LARGE_BYTES: Final = 64 << 10
"""Rows from this stored size on are kept; smaller ones are read from the database each time."""
_KEPT_BYTES: Final = 16 << 20
"""Stored size of all that is kept, except that the latest one always is; in memory they take several times as much."""


class KnownSubmissions:
    """Rows by their keys (mutable, used by several threads); none is older than the last transaction."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[RowKey, tuple[SubmissionRow, int]] = {}
        """With their stored sizes, the latest used last."""
        self._readers: dict[RowKey, object] = {}
        """Who reads a row, and may add it."""
        self._written: Collection[RowKey | tuple[bytes, str]] = ()
        """What the present transaction replaces."""

    def get(self, key: RowKey) -> SubmissionRow | None:
        """Return a row that is kept."""
        with self._lock:
            known = self._rows.pop(key, None)
            if known is None:
                return None
            self._rows[key] = known
            return known[0]

    @contextmanager
    def reading(self, key: RowKey) -> Iterator[object]:
        """Read a row within; what it yields lets `add` recognize a row that was replaced meanwhile."""
        reader = object()
        with self._lock:
            if key not in self._written:
                self._readers[key] = reader
        try:
            yield reader
        finally:
            with self._lock:
                if self._readers.get(key) is reader:
                    del self._readers[key]

    def add(self, key: RowKey, row: SubmissionRow, *, size_bytes: int, reader: object) -> None:
        """Keep a row if it is large and present; those that were not used for longest give way."""
        if size_bytes < LARGE_BYTES:
            return
        with self._lock:
            if self._readers.get(key) is not reader:
                return
            self._rows[key] = (row, size_bytes)
            kept_bytes = sum(size for _, size in self._rows.values())
            while kept_bytes > _KEPT_BYTES and len(self._rows) > 1:
                oldest = next(iter(self._rows))
                kept_bytes -= self._rows.pop(oldest)[1]

    @contextmanager
    def writing(self, keys: Collection[RowKey | tuple[bytes, str]]) -> Iterator[None]:
        """Replace rows within: none of them is here, nor is one added that was read before the end."""
        with self._lock:
            self._written = keys
            for replaced in [key for key in (*self._rows, *self._readers) if key in keys]:
                self._rows.pop(replaced, None)
                self._readers.pop(replaced, None)
        try:
            yield
        finally:
            with self._lock:
                self._written = ()
