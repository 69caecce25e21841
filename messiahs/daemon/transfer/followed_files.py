"""Files that are read while they arrive: a hop sends the beginning of a file on before it has the end."""

import os
import threading

from messiahs.channel.contract import ByteSource
from messiahs.daemon.storage.drafts import Draft
from messiahs.errors import ChannelError


class FollowedFile:
    """A draft on its way to this module, and those who read it (mutable). Methods can be called in any thread.

    It is written once, by `take`. A file that ends before its size ends its readers with a `ChannelError`.
    """

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._changed = threading.Condition()
        self._descriptor = -1
        self._users = 1
        self._offset_bytes = 0
        self._has_ended = False

    def take(self, draft: Draft, source: ByteSource) -> None:
        """Append what is missing of the draft, and make it a file; raises what the draft and source raise."""
        with self._changed:
            self._descriptor = draft.open_again()
        self.note(draft.offset_bytes)
        draft.take(_Noting(self, draft, source))
        self.note(draft.offset_bytes)
        draft.finish()

    @property
    def offset_bytes(self) -> int:
        """How much has arrived since the draft was opened, with what it had."""
        return self._offset_bytes

    def note(self, offset_bytes: int) -> None:
        """Let readers read up to this offset."""
        with self._changed:
            self._offset_bytes = offset_bytes
            self._changed.notify_all()

    def end(self) -> None:
        """Let readers read what has arrived, and no more, when nothing more is written; repeated calls are allowed."""
        with self._changed:
            if self._has_ended:
                return
            self._has_ended = True
            self._changed.notify_all()
        self.release()

    def open(self, offset: int) -> "FollowingSource | None":
        """Begin to read; None if nothing more is written: then the file is stored, or its sender broke off."""
        with self._changed:
            if self._has_ended:
                return None
            self._users += 1
        return FollowingSource(self, offset)

    def release(self) -> None:
        """Count a user less; the last one closes the file."""
        with self._changed:
            self._users -= 1
            if not self._users and self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def read_at(self, offset: int, buffer: memoryview, *, reader: "FollowingSource") -> int:
        """Wait for bytes at an offset, and read them; 0 at the end of the file."""
        if offset >= self._size_bytes:
            return 0
        with self._changed:
            self._changed.wait_for(lambda: self._offset_bytes > offset or self._has_ended or reader.is_closed)
            if reader.is_closed:
                raise ChannelError("the stream was closed")
            size = min(len(buffer), self._offset_bytes - offset)
            if size <= 0:
                raise ChannelError("its sender broke off")
            return os.preadv(self._descriptor, [buffer[:size]], offset)

    def wake(self) -> None:
        """Let readers look whether they are closed."""
        with self._changed:
            self._changed.notify_all()


class FollowingSource:
    """A followed file from an offset on (mutable)."""

    def __init__(self, file: FollowedFile, offset: int) -> None:
        self.is_closed = False
        self._file, self._offset = file, offset

    def read_into(self, buffer: memoryview, /) -> int:
        """Wait for the next bytes."""
        size = self._file.read_at(self._offset, buffer, reader=self)
        self._offset += size
        return size

    def close(self) -> None:
        """End the source."""
        if not self.is_closed:
            self.is_closed = True
            self._file.wake()
            self._file.release()


class _Noting:
    """A source that reports what of it was stored whenever more is read."""

    def __init__(self, file: FollowedFile, draft: Draft, source: ByteSource) -> None:
        self._file, self._draft, self._source = file, draft, source

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes."""
        self._file.note(self._draft.offset_bytes)
        return self._source.read_into(buffer)

    def close(self) -> None:
        """End the source."""
        self._source.close()
