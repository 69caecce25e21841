"""What was read of a standard input that can be read only once: kept in a file, so that another attempt can have it."""

import os
import tempfile
from typing import IO, Final

from messiahs.core.model.task_limits import size_text

KEPT_BYTES: Final = 256 << 20
"""So much of a standard input is kept."""


class KeptInput:
    """All that was read so far, at most `limit_bytes`, in a temporary file without a name (mutable)."""

    def __init__(self, limit_bytes: int) -> None:
        self.why_gone = ""
        """Why it is not kept (any more); empty if all of it is."""
        self._limit_bytes = limit_bytes
        self._file: IO[bytes] | None = None
        self._size = 0
        self._has_end = False
        self._offset: int | None = None
        """What is read again next; None: everything was."""

    def add(self, content: bytes) -> None:
        """Keep the next bytes; without content, note the end."""
        if self.why_gone:
            return
        if not content:
            self._has_end = True
        elif self._size + len(content) > self._limit_bytes:
            self._drop(f"it is longer than {size_text(self._limit_bytes)}")
        else:
            try:
                self._write(content)
            except OSError as error:
                self._drop(f"it cannot be kept in {tempfile.gettempdir()}: {error.strerror}")

    def go_to(self, offset: int) -> bool:
        """Read again from a byte on; false if that was not kept."""
        if self.why_gone or offset > self._size:
            return False
        self._offset = offset
        return True

    def read(self, limit: int) -> bytes | None:
        """Return the next bytes that are to be read again, empty at the end; None if there are none. Raises `OSError`.

        The end is there as soon as it was read once: a terminal would bring more after it.
        """
        if self._offset is None:
            return None
        if self._offset < self._size:
            assert self._file is not None, "bytes were kept"
            content = os.pread(self._file.fileno(), limit, self._offset)
            self._offset += len(content)
            return content
        self._offset = None
        return b"" if self._has_end else None

    def close(self) -> None:
        """Keep nothing any more."""
        self._drop("it is not kept any more")

    def _write(self, content: bytes) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it has no name, and ends with this process
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]
        self._size += len(content)

    def _drop(self, why: str) -> None:
        self.why_gone = why
        if self._file is not None:
            self._file.close()
            self._file = None
