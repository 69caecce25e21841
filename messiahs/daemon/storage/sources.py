"""Files on this machine as sources of bytes for threads."""

import threading
from pathlib import Path

from messiahs.config.disk import read_sparsely
from messiahs.errors import ChannelError


class FileSource:
    """A file from an offset on, until its end. A closed one raises `ChannelError`."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._file = path.open("rb", buffering=0)
        self._offset = offset
        self._lock = threading.Lock()

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes; 0 at the end."""
        with self._lock:
            if self._file.closed:
                raise ChannelError("the stream was closed")
            size = read_sparsely(self._file.fileno(), buffer, offset=self._offset)
            self._offset += size
            return size

    def close(self) -> None:
        """Close the file after a read in progress; repeated calls are allowed."""
        with self._lock:
            self._file.close()
