"""Disk space, sparse files, and syncing many files or large ones sooner."""

import ctypes
import errno
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a write that more room on the disk would prevent."""
KEPT_SHARE: Final = 20
"""One part in so many of a disk, and of the files that it can have, is reserved for other uses than tasks."""
_RESERVED_BYTES, _RESERVED_FILES = 8 << 20, 512
_FULL_BYTES = 1 << 20
_HOLE_BYTES = 64 << 10
_ZEROS = bytes(_HOLE_BYTES)
WRITEBACK_BYTES = 32 << 20
_SYNC_FILE_RANGE_WRITE = 2


def available_bytes(folder: Path) -> int:
    """Return the free bytes of a folder's disk."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def free_bytes(folder: str | Path) -> int:
    """Return the free bytes of a folder's disk, without the last twentieth, which is reserved for other uses."""
    found = os.statvfs(folder)
    return max(0, (found.f_bavail - found.f_blocks // KEPT_SHARE) * found.f_frsize)


def spare_bytes(folder: str | Path) -> int:
    """Return the free bytes of a folder's disk that inputs of tasks may take; negative: so many must become free.

    The last twentieth is reserved for other uses, and on a disk below 320 MiB up to 8 MiB more, 16 MiB in all: inputs
    that stay must not take what `has_room` looks for.
    """
    found = os.statvfs(folder)
    last_part = found.f_blocks * found.f_frsize // KEPT_SHARE
    kept_bytes = max(last_part, min(last_part + _RESERVED_BYTES, 2 * _RESERVED_BYTES))
    return found.f_bavail * found.f_frsize - kept_bytes


def free_files(folder: str | Path) -> int | None:
    """Return how many files a folder's disk can still have without the last twentieth; None: it has no such number."""
    found = os.statvfs(folder)
    return max(0, found.f_favail - found.f_files // KEPT_SHARE) if found.f_files else None


def is_last_part_reached(folder: str | Path, *, more_bytes: int = 0, share: int = KEPT_SHARE) -> tuple[bool, bool]:
    """Return whether only the last twentieth of a folder's disk is free: of bytes, with so many more, and of files.

    With another `share`, the last part is one in so many. A disk without a number of files makes them as they are
    needed, and has none reserved. Raises `OSError`.
    """
    found = os.statvfs(folder)
    lacks_bytes = found.f_bavail * found.f_frsize - more_bytes < found.f_blocks * found.f_frsize // share
    return lacks_bytes, found.f_favail < found.f_files // share


def size_of(folder: str | Path) -> tuple[int, int]:
    """Return the bytes of a folder's disk, and how many files it can have; 0: it has no such number."""
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize, found.f_files


def is_full(folder: str | Path) -> bool:
    """Whether writes to a folder's disk fail, or are about to: less than 1 MiB is left, or no file."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize < _FULL_BYTES or (found.f_files > 0 and found.f_favail == 0)


def has_room(folder: Path) -> bool:
    """Whether a folder's disk has more bytes and inodes than are reserved for work that was accepted."""
    found = os.statvfs(folder)
    # A small disk has few inodes in all, and some kinds make them as they are needed and say that they have none.
    reserved_files = min(_RESERVED_FILES, found.f_files // KEPT_SHARE)
    return found.f_bavail * found.f_frsize >= _RESERVED_BYTES and found.f_favail >= reserved_files


def read_sparsely(descriptor: int, buffer: memoryview, /, offset: int) -> int:
    """Fill a buffer with the bytes of a file from an offset on, and return their number; 0 at its end.

    A part without data is not read, because the kernel would keep its zeros in memory, page by page. Moves the position
    of the descriptor.
    """
    if not _is_hole(descriptor, offset, offset + len(buffer)):
        return os.preadv(descriptor, [buffer], offset)
    buffer[:] = bytes(len(buffer))
    return len(buffer)


def read_piece(descriptor: int, *, offset: int, limit: int) -> bytes:
    """Return at most `limit` bytes of a file, as `read_sparsely` reads them."""
    return bytes(limit) if _is_hole(descriptor, offset, offset + limit) else os.pread(descriptor, limit, offset)


def _is_hole(descriptor: int, start: int, end: int) -> bool:
    """Whether a part of a file is there and has no data."""
    # Before the search: what is appended meanwhile is not part of the hole.
    if os.fstat(descriptor).st_size < end:
        return False
    try:
        return os.lseek(descriptor, start, os.SEEK_DATA) >= end
    except OSError as error:
        # Another one if the file system does not know holes: it is read.
        return error.errno == errno.ENXIO


def write_sparsely(file: BinaryIO, piece: bytes | memoryview) -> None:
    """Append a piece, with holes for zeros; a final hole becomes part of the file by `truncate` at the end."""
    for run, is_hole in runs(piece):
        if is_hole:
            file.seek(len(run), os.SEEK_CUR)
        else:
            file.write(run)


def runs(piece: bytes | memoryview) -> Iterator[tuple[memoryview, bool]]:
    """Divide a piece into parts that are all zeros, and so can be holes, and parts that are not.

    Only zeros for whole blocks of 64 KiB from the beginning of the piece, or for its last block, become holes.
    """
    view = memoryview(piece)
    begin, was_hole = 0, False
    for start in range(0, len(view), _HOLE_BYTES):
        is_hole = _is_zeros(view[start : start + _HOLE_BYTES])
        if is_hole != was_hole and start:
            yield view[begin:start], was_hole
            begin = start
        was_hole = is_hole
    if begin < len(view):
        yield view[begin:], was_hole


def _is_zeros(block: memoryview) -> bool:
    # The first byte decides for most blocks.
    return not block[0] and block.tobytes() == _ZEROS[: len(block)]


def can_sync_disks() -> bool:
    """Whether this system can sync a whole disk and report errors."""
    return _libc_function("syncfs") is not None


def sync_disk(folder: Path) -> None:
    """Return when everything written to a folder's disk is durable; cheaper than syncing many files one by one."""
    syncfs = _libc_function("syncfs")
    assert syncfs is not None, "the caller has checked can_sync_disks()"
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)


class Writeback:
    """Makes the kernel write a growing file to its disk early: little is left for the sync at its end (mutable).

    By itself it begins so late that the sync takes as long as writing most of the file. That sync reports errors.
    """

    def __init__(self, begun_bytes: int = 0) -> None:
        self._begun_bytes = begun_bytes

    def follow(self, descriptor: int, written_bytes: int) -> None:
        """Begin with what was written, if it is `WRITEBACK_BYTES` more than before; does not wait for the disk."""
        size_bytes = written_bytes - self._begun_bytes
        sync_file_range = _libc_function("sync_file_range")
        if size_bytes < WRITEBACK_BYTES or sync_file_range is None:
            return
        start, size = ctypes.c_int64(self._begun_bytes), ctypes.c_int64(size_bytes)
        sync_file_range(descriptor, start, size, _SYNC_FILE_RANGE_WRITE)
        self._begun_bytes = written_bytes


@cache
def _libc_function(name: str) -> Any:  # noqa: ANN401 - a foreign function
    """Return a function of the C library; None if this system does not have it."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)
