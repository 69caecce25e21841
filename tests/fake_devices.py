"""Device files of GPUs that are none: they have the numbers of /dev/zero, and are below /dev only for a test."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ZERO = os.makedev(1, 5)


@contextmanager
def device_folder() -> Iterator[Path]:
    """Return a folder for devices."""
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can make devices")
    folder = Path(tempfile.mkdtemp(prefix="messiahs-test-", dir="/dev"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def make_device(path: Path, *, numbers: int = ZERO, kind: int = stat.S_IFCHR, mode: int = 0o666) -> Path:
    """Make a device, which everybody may use unless the mode says otherwise."""
    os.mknod(path, kind | 0o600, numbers)
    path.chmod(mode)
    return path
