"""Disk space, sparse files, and syncing many files at once."""

import ctypes
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

_KEPT_SHARE = 20
_HOLE_BYTES = 64 << 10
_ZEROS = bytes(_HOLE_BYTES)


def free_bytes(folder: Path) -> int:
    """Return the free bytes of a folder's disk, without the last twentieth, which is reserved for other uses."""
    found = os.statvfs(folder)
    return max(0, (found.f_bavail - found.f_blocks // _KEPT_SHARE) * found.f_frsize)


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
    return _libc_syncfs() is not None


def sync_disk(folder: Path) -> None:
    """Return when everything written to a folder's disk is durable; cheaper than syncing many files one by one."""
    syncfs = _libc_syncfs()
    assert syncfs is not None, "the caller has checked can_sync_disks()"
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)


@cache
def _libc_syncfs() -> Any:  # noqa: ANN401 - a foreign function
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
