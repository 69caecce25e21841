"""Small disks, mounted for a test, and files that fill them."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, *words: str) -> Iterator[None]:
    """Mount something at a folder; the test is skipped where that is impossible."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    done = subprocess.run(["mount", *words, str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"a disk cannot be mounted here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, *, leave_bytes: int = 0, name: str = "filler") -> Path:
    """Use up every byte, or all but some."""
    filler = disk / name
    with filler.open("wb") as file:
        # A module may use some of the room meanwhile.
        while not _takes(file.fileno(), disk, leave_bytes):
            pass
    return filler


def _takes(file: int, disk: Path, leave_bytes: int) -> bool:
    """Return whether a file could take the room that there is."""
    room = os.statvfs(disk)
    try:
        os.posix_fallocate(file, 0, room.f_bavail * room.f_frsize - leave_bytes)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True
