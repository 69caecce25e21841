"""Room on a disk, files that are written with holes where they hold nothing but zeros, and one sync for many."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

_KEPT_SHARE = 20


def free_bytes(folder: Path) -> int:
    """Return how much more the disk of a folder takes without its last twentieth, which others' files never use."""
    found = os.statvfs(folder)
    return max(0, (found.f_bavail - found.f_blocks // _KEPT_SHARE) * found.f_frsize)


def write_sparsely(file: BinaryIO, piece: bytes) -> None:
    """Append a piece, as a hole if it is all zeros; `truncate` at the end makes a hole there part of the file."""
    if is_zeros(piece):
        file.seek(len(piece), os.SEEK_CUR)
    else:
        file.write(piece)


def is_zeros(piece: bytes) -> bool:
    """Whether a piece can as well be a hole."""
    return piece.count(0) == len(piece)


def can_sync_disks() -> bool:
    """Whether this system can sync a whole disk and report what went wrong."""
    return _libc_syncfs() is not None


def sync_disk(folder: Path) -> None:
    """Return when all that was written to the disk of a folder is on it; cheaper than a sync for each of many files."""
    syncfs = _libc_syncfs()
    assert syncfs is not None, "the caller has asked for it"
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)


@cache
def _libc_syncfs() -> Any:  # noqa: ANN401 - a foreign function
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
