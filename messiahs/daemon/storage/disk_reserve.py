"""Disk space that is reserved for the start of a daemon, so that it can restart while the disk is full.

A starting daemon needs a little space before it can report anything: for its pid file, for SQLite's index of the log,
for a starter and its journal. This file takes that space while there is plenty, and releases it when there is none.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.config.disk import available_bytes

RESERVE_BYTES: Final = 1 << 20
_PLENTY_BYTES = 16 << 20
_FILE = "ballast"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def release_reserve(folder: Path) -> None:
    """Release the space if the disk of a module's folder is full."""
    with suppress(OSError):
        if available_bytes(folder) < RESERVE_BYTES:
            (folder / _FILE).unlink(missing_ok=True)


def fill_reserve(folder: Path) -> None:
    """Reserve the space if there is plenty; without it, only a start on a full disk may fail."""
    file = folder / _FILE
    with suppress(OSError):
        if file.exists() or available_bytes(folder) < _PLENTY_BYTES:
            return
        descriptor = os.open(file, _NEW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            file.unlink()
        finally:
            os.close(descriptor)
