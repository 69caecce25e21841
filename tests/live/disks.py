"""Small disks, mounted for a test, and files that fill them."""

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
    room = os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - leave_bytes)
    return filler
