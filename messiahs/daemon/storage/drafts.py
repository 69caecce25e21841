"""Incomplete files: what has arrived of a file stays for its supplier, until the file is complete (MESSIAHS 5.3.3)."""

import errno
import os
import threading
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Final

from messiahs.channel.byte_streams.byte_threads import BUFFER_BYTES
from messiahs.channel.contract import ByteSource
from messiahs.config.disk import FULL, Writeback, runs
from messiahs.config.whole_files import sync_folder
from messiahs.daemon.storage.hashing import HashBeside
from messiahs.errors import ChannelError, MessiahsError, NoRoomError, StoreError

_PIECE_BYTES: Final = 960 << 10


class WrongContentError(MessiahsError):
    """The received file is not the announced one: its size or its hash differs."""


class Draft:
    """An incomplete file (mutable); `finish` makes it a file of the store.

    `close` keeps the content for a later draft, `discard` removes it. Both wait for a thread that is still writing, and
    make later writes fail.
    """

    def __init__(
        self, path: Path, target: Path, *, sha256: bytes, size_bytes: int, on_stored: Callable[[], None]
    ) -> None:
        self._on_stored = on_stored
        self.is_durable = True
        self.size_bytes = size_bytes
        self.offset_bytes = 0
        self._path, self._target, self._sha256 = path, target, sha256
        self._hash = HashBeside()
        self._lock = threading.RLock()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise problem(path, error) from error
        try:
            # The content of an earlier draft is hashed again, so that damage on the disk is noticed at the end.
            while piece := os.read(self._file, _PIECE_BYTES):
                self._hash.add(memoryview(piece))
                self._hash.wait(unhashed=1)
                self.offset_bytes += len(piece)
        except OSError as error:
            self.close()
            raise problem(path, error) from error
        self._writeback = Writeback(self.offset_bytes)

    def take(self, source: ByteSource) -> None:
        """Append what is missing from a source; what was read before an error stays. Raises what the source raises."""
        buffers = (memoryview(bytearray(BUFFER_BYTES)), memoryview(bytearray(BUFFER_BYTES)))
        for buffer in cycle(buffers):
            left = self.size_bytes - self.offset_bytes
            if not left:
                return
            # While this buffer is filled, the other one may still be hashed.
            self._hash.wait(unhashed=1)
            size = source.read_into(buffer[:left])
            if not size:
                raise ChannelError("the stream ended in the middle of a file")
            self.add(buffer[:size])

    def add(self, content: bytes | memoryview) -> None:
        """Append a piece, which may change after the next call has returned."""
        with self._lock:
            if self.offset_bytes + len(content) > self.size_bytes:
                self.discard()
                raise WrongContentError(f"{self._target.name} is larger than {self.size_bytes} bytes")
            try:
                self._append(content)
            except OSError as error:
                self.discard()
                raise problem(self._path, error) from error
            # While the next piece is read and written, this one may still be hashed.
            self._hash.wait(unhashed=1)
            self._hash.add(memoryview(content))
            self.offset_bytes += len(content)

    def open_again(self) -> int:
        """Return another descriptor, to read what has arrived."""
        try:
            return os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise problem(self._path, error) from error

    def finish(self) -> None:
        """Make the draft a file, which is durable when this returns, if it is to be."""
        with self._lock:
            if self.offset_bytes != self.size_bytes or self._hash.digest() != self._sha256:
                self.discard()
                raise WrongContentError(f"the content received as {self._target.name} is another file")
            try:
                os.fchmod(self._open_file(), 0o444)
                if self.is_durable:
                    os.fsync(self._file)
                self._path.replace(self._target)
                if self.is_durable:
                    sync_folder(self._target.parent)
            except OSError as error:
                self.discard()
                raise problem(self._path, error) from error
            self._on_stored()
            self.close()

    def close(self) -> None:
        """Close the draft; repeated calls are allowed."""
        with self._lock:
            file, self._file = self._file, -1
            if file >= 0:
                self._hash.close()
                os.close(file)

    def discard(self) -> None:
        """Remove the draft; a finished file is not affected."""
        with self._lock:
            if self._file >= 0:
                self._path.unlink(missing_ok=True)
                self.close()

    def _append(self, content: bytes | memoryview) -> None:
        end = self.offset_bytes
        for run, is_hole in runs(content):
            end += len(run)
            if is_hole:
                os.ftruncate(self._open_file(), end)
                os.lseek(self._open_file(), 0, os.SEEK_END)
            else:
                _write(self._open_file(), run)
        self._writeback.follow(self._open_file(), end)

    def _open_file(self) -> int:
        if self._file < 0:
            raise OSError(errno.ESTALE, "another stream is sending it")
        return self._file


def _write(descriptor: int, content: memoryview) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def problem(path: Path, error: OSError) -> StoreError:
    """Return the error for a file that cannot be stored: a `NoRoomError` if the disk is full."""
    text = f"{path.parent}: a file cannot be stored: {error.strerror}"
    return NoRoomError(f"{text}; check that the disk is not full") if error.errno in FULL else StoreError(text)
