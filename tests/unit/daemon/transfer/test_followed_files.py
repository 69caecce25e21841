"""Files that are read while they arrive."""

import hashlib
import threading
from pathlib import Path

import pytest

from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.followed_files import FollowedFile, FollowingSource
from messiahs.errors import ChannelError

CONTENT = bytes(range(256)) * 4_000
SHA256 = hashlib.sha256(CONTENT).digest()


class _Arriving:
    """A source that a test feeds (mutable)."""

    def __init__(self, content: bytes) -> None:
        self._content, self._left = content, len(content)
        self._allowed = threading.Semaphore(0)
        self.is_broken = False

    def allow(self, pieces: int) -> None:
        """Let this many pieces of 1,000 bytes arrive."""
        self._allowed.release(pieces)

    def read_into(self, buffer: memoryview, /) -> int:
        """Wait for the next piece."""
        self._allowed.acquire()
        if self.is_broken:
            raise ChannelError("the peer is gone")
        size = min(1_000, self._left, len(buffer))
        start = len(self._content) - self._left
        buffer[:size] = self._content[start : start + size]
        self._left -= size
        return size

    def close(self) -> None:
        """End the source."""


def opened(file: FollowedFile, offset: int) -> FollowingSource:
    source = file.open(offset)
    assert source is not None
    return source


def read(source: FollowingSource, size: int) -> bytes:
    content = bytearray(size)
    view = memoryview(content)
    while view:
        count = source.read_into(view)
        assert count, f"the file ends {len(view)} bytes early"
        view = view[count:]
    return bytes(content)


def take(file: FollowedFile, store: FileStore, *, arriving: _Arriving) -> threading.Thread:
    def run() -> None:
        draft = store.draft(SHA256, size_bytes=len(CONTENT), of="cs")
        try:
            file.take(draft, arriving)
        except ChannelError:
            pass
        finally:
            draft.close()
            file.end()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_readers_get_what_has_arrived_and_then_the_rest(tmp_path: Path) -> None:
    file, arriving, store = FollowedFile(len(CONTENT)), _Arriving(CONTENT), FileStore(tmp_path)
    early, late = opened(file, 0), opened(file, 500)
    thread = take(file, store, arriving=arriving)
    arriving.allow(3)
    assert read(early, 2_000) == CONTENT[:2_000]
    assert read(late, 1_000) == CONTENT[500:1_500]
    arriving.allow(len(CONTENT))
    assert read(early, len(CONTENT) - 2_000) == CONTENT[2_000:]
    assert early.read_into(memoryview(bytearray(1))) == 0
    thread.join()
    # The file has its place by now, and the reader reads on.
    assert read(late, len(CONTENT) - 1_500) == CONTENT[1_500:]
    assert store.size_for("cs", SHA256) == len(CONTENT)
    assert file.open(0) is None


def test_readers_of_a_file_whose_sender_breaks_off_get_what_arrived_and_an_error(tmp_path: Path) -> None:
    file, arriving = FollowedFile(len(CONTENT)), _Arriving(CONTENT)
    reader = opened(file, 0)
    arriving.allow(2)
    thread = take(file, FileStore(tmp_path), arriving=arriving)
    assert read(reader, 1_000) == CONTENT[:1_000]
    arriving.is_broken = True
    arriving.allow(1)
    thread.join()
    assert read(reader, 1_000) == CONTENT[1_000:2_000]
    with pytest.raises(ChannelError, match="broke off"):
        reader.read_into(memoryview(bytearray(1)))


def test_a_closed_reader_waits_no_longer(tmp_path: Path) -> None:
    file, arriving = FollowedFile(len(CONTENT)), _Arriving(CONTENT)
    reader, errors = opened(file, 0), list[ChannelError]()

    def wait() -> None:
        try:
            reader.read_into(memoryview(bytearray(1)))
        except ChannelError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    reader.close()
    reader.close()
    waiting.join()
    assert [str(error) for error in errors] == ["the stream was closed"]
    arriving.allow(len(CONTENT))
    take(file, FileStore(tmp_path), arriving=arriving).join()
