"""Segment files on disk: bounded, private, and written by a thread that delays nobody."""

import threading
from pathlib import Path

import pytest

from messiahs.errors import TraceError
from messiahs.trace.record.ring import Background, RingFiles
from messiahs.trace.show.reader import read_segments, segment_files

KIB = 1_024


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_oldest_segment_goes_when_there_is_too_much(tmp_path: Path) -> None:
    ring = RingFiles(tmp_path, size_bytes=64 * KIB)
    for number in range(20):
        ring.begin(bytes((number,)) * KIB)
        for _ in range(7):
            ring.append(b"x" * KIB)
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 66 * KIB
    ring.close()
    names = _names(tmp_path)
    assert names == [f"{number:06}.trace" for number in range(13, 21)]
    assert (tmp_path / names[-1]).read_bytes() == b"\x13" * KIB + b"x" * 7 * KIB


def test_the_segment_that_is_written_is_never_dropped(tmp_path: Path) -> None:
    ring = RingFiles(tmp_path, size_bytes=16 * KIB)
    ring.begin(b"s")
    ring.append(b"x" * 64 * KIB)
    assert _names(tmp_path) == ["000001.trace"]
    ring.begin(b"s")
    assert _names(tmp_path) == ["000002.trace"]
    ring.close()


def test_numbers_continue_and_other_users_may_not_read(tmp_path: Path) -> None:
    for _ in range(2):
        ring = RingFiles(tmp_path / "trace", size_bytes=64 * KIB)
        ring.begin(b"s")
        ring.close()
    assert _names(tmp_path / "trace") == ["000001.trace", "000002.trace"]
    assert (tmp_path / "trace").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "trace" / "000001.trace").stat().st_mode & 0o777 == 0o600


def test_a_state_that_would_fill_the_ring_is_refused_with_a_size_that_would_do(tmp_path: Path) -> None:
    ring = RingFiles(tmp_path, size_bytes=1 << 20)
    with pytest.raises(TraceError, match="at least 3MiB"):
        ring.begin(b"x" * 600 * KIB)
    ring = RingFiles(tmp_path, size_bytes=3 << 20)
    ring.begin(b"x" * 600 * KIB)
    ring.close()


class Slow:
    """A sink whose disk does nothing before it is told to (mutable)."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.taken: list[bytes] = []
        self.closed = threading.Event()
        self.error: OSError | None = None

    def begin(self, start: bytes, /) -> None:
        """Take it at once."""
        self.taken.append(start)

    def append(self, frame: bytes, /) -> None:
        """Take it when the test lets it."""
        self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        self.taken.append(frame)

    def close(self) -> None:
        """Note it."""
        self.closed.set()


def test_the_thread_keeps_the_order_and_nobody_waits_for_the_disk() -> None:
    slow = Slow()
    writer = Background(slow)
    writer.begin(b"1")
    for part in (b"a", b"b"):
        writer.append(part)
    writer.begin(b"2")
    writer.append(b"c")
    assert slow.taken == [b"1"]
    slow.may_go_on.set()
    writer.close()
    assert b" ".join(slow.taken).replace(b"a b", b"ab") == b"1 ab 2 c"
    assert slow.closed.wait(60)


def test_what_the_thread_could_not_write_is_raised_later() -> None:
    slow = Slow()
    slow.error = OSError(28, "No space left on device")
    slow.may_go_on.set()
    writer = Background(slow)
    writer.begin(b"1")
    with pytest.raises(TraceError, match="No space left"):
        _append_for_ever(writer, b"a")
    writer.close()
    assert slow.closed.wait(60)


def test_a_disk_that_falls_behind_ends_the_recording_instead_of_filling_the_memory() -> None:
    slow = Slow()
    writer = Background(slow)
    writer.begin(b"1")
    with pytest.raises(TraceError, match="too slow"):
        _append_for_ever(writer, b"x" * (1 << 20))
    # The disk still does nothing, and nobody waits for it.
    writer.close()
    assert not slow.closed.is_set()
    slow.may_go_on.set()
    assert slow.closed.wait(60)
    assert len(slow.taken) < 40


def test_files_and_folders_are_found_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        ring = RingFiles(tmp_path / name, size_bytes=64 * KIB)
        for _ in range(2):
            ring.begin(b"")
        ring.close()
    one = tmp_path / "a" / "000002.trace"
    assert segment_files([one, tmp_path]) == (
        one,
        tmp_path / "a" / "000001.trace",
        tmp_path / "b" / "000001.trace",
        tmp_path / "b" / "000002.trace",
    )
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="no trace is here"):
        segment_files([tmp_path / "empty"])
    with pytest.raises(TraceError, match="there is no such file"):
        segment_files([tmp_path / "nothing"])


def test_a_segment_that_was_dropped_meanwhile_is_passed_over(tmp_path: Path) -> None:
    assert list(read_segments([tmp_path / "000001.trace"])) == []


def _append_for_ever(writer: Background, frame: bytes) -> None:
    while True:
        writer.append(frame)
