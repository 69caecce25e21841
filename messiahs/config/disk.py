"""Disk space, sparse files, and syncing many files at once."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

_KEPT_SHARE = 20


def free_bytes(folder: Path) -> int:
    """Return the free bytes of a folder's disk, without the last twentieth, which is reserved for other uses."""
    found = os.statvfs(folder)
    return max(0, (found.f_bavail - found.f_blocks // _KEPT_SHARE) * found.f_frsize)


def write_sparsely(file: BinaryIO, piece: bytes) -> None:
    """Append a piece, as a hole if it is all zeros; a final hole becomes part of the file by `truncate` at the end."""
    if is_zeros(piece):
        file.seek(len(piece), os.SEEK_CUR)
    else:
        file.write(piece)


def is_zeros(piece: bytes) -> bool:
    """Whether a piece consists of zeros and can be a hole."""
    return piece.count(0) == len(piece)


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
