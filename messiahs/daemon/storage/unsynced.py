"""Files stored without a sync: they survive the end of the daemon, and a failure of the machine may damage them.

Inputs of attempts need no more where they run, because attempts do not survive a failure of the machine either.
"""

import hashlib
import os
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from messiahs.config.disk import can_sync_disks, sync_disk
from messiahs.config.whole_files import write_whole
from messiahs.daemon.storage.contents import HEX_DIGITS
from messiahs.executor.linux.kernel import boot_id

SMALL_BYTES = 64 << 10
"""Only files of at most this size are stored without a sync."""


class Unsynced:
    """The files of a folder that were stored without a sync in this process, and a mark on disk while there are any.

    Methods raise `OSError`, and can be called in any thread.
    """

    def __init__(self, mark: Path) -> None:
        self._mark = mark
        self._lock = threading.Lock()
        self._is_marked = False
        self._files: set[bytes] = set()

    def add(self, hashes: Collection[bytes]) -> None:
        """Note files before they are stored without a sync."""
        with self._lock:
            if not self._is_marked:
                write_whole(self._mark, boot_id().encode(), mode=0o600)
                self._is_marked = True
            self._files.update(hashes)

    def remove(self, hashes: Collection[bytes]) -> None:
        """Note that files are durable, or deleted."""
        with self._lock:
            self._files.difference_update(hashes)

    def has(self, sha256: bytes) -> bool:
        """Whether a file was stored without a sync."""
        with self._lock:
            return sha256 in self._files

    def recover(self, folder: Path) -> list[bytes]:
        """Make files of an earlier process durable; delete and return those that a failure of the machine damaged.

        Small files are hashed only after a failure or restart of the machine.
        """
        try:
            is_same_boot = self._mark.read_text(errors="replace") == boot_id()
        except FileNotFoundError:
            return []
        damaged = [] if is_same_boot else [sha256 for sha256 in _small_files(folder) if _is_damaged(folder, sha256)]
        for sha256 in damaged:
            (folder / sha256.hex()).unlink(missing_ok=True)
        if can_sync_disks():
            sync_disk(folder)
            self._mark.unlink()
        return damaged


def _small_files(folder: Path) -> list[bytes]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(entry.name) == HEX_DIGITS and entry.stat(follow_symlinks=False).st_size <= SMALL_BYTES:
                with suppress(ValueError):
                    found.append(bytes.fromhex(entry.name))
    return found


def _is_damaged(folder: Path, sha256: bytes) -> bool:
    return hashlib.sha256((folder / sha256.hex()).read_bytes()).digest() != sha256
