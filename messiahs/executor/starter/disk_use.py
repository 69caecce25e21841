"""The disk that running attempts use, looked at a little at a time, because everything else waits meanwhile.

Blocks count, not sizes, so holes in files cost nothing. Files that were deleted while a process has them open are not
found; they show only on a disk that fills up.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from itertools import islice
from typing import Final

from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempts import NEVER, Held, Phase, Table
from messiahs.executor.protocol.layout import ATTEMPTS, SLOTS, WORK

_LOOK_NS: Final = 1_000_000_000
"""Time between two looks at all running attempts."""
_PAUSE_NS: Final = 20_000_000
"""Time between two pieces of a look."""
_PIECE: Final = 256
"""Files and folders of a piece."""
_BLOCK_BYTES: Final = 512
_RESERVED: Final = 20
"""One part in so many of the disk is never used by tasks."""
_SMALL_BYTES: Final = 64 << 20
"""An attempt that uses less is not ended because the disk is full."""
_MIB: Final = 1 << 20
_OWN: Final = "its limit of {}: raise it with --disk SIZE"
_OF_SITE: Final = "this machine gives to one that states nothing, {}: state what it needs with --disk SIZE"


class DiskUse:
    """What each running attempt used when it was last looked at (mutable)."""

    def __init__(self, table: Table, root: str, capabilities: AbstractContextManager[object]) -> None:
        self._table, self._root, self._capabilities = table, root, capabilities
        self._due = 0
        self._waiting: list[Held] = []
        self._piece: Iterator[int] | None = None
        self._sum_bytes = 0
        self._used: dict[AttemptId, int] = {}
        self._texts: dict[AttemptId, str] = {}

    @property
    def due_at(self) -> int:
        """When the next piece is due."""
        return self._due if self._table.claims else NEVER

    def step(self, now: int) -> Held | None:
        """Look at a piece of the files of one attempt; return the attempt if it must end."""
        if now < self.due_at:
            return None
        if not self._waiting:
            self._waiting = [held for held in self._table.attempts.values() if held.phase is Phase.RUNNING]
            self._due = now + _LOOK_NS
        if not self._waiting:
            return None
        self._due = now + _PAUSE_NS
        held = self._waiting[-1]
        if self._piece is None:
            self._piece, self._sum_bytes = _used_below(*self._folders_of(held)), 0
        with self._capabilities:
            found = list(islice(self._piece, _PIECE))
        self._sum_bytes += sum(found)
        if len(found) < _PIECE:
            self._piece = None
            del self._waiting[-1]
            if self._is_beyond(held):
                return held
        return None

    def text_of(self, held: Held) -> str:
        """Return why an attempt was ended, and forget it."""
        self._used.pop(held.attempt, None)
        return self._texts.pop(held.attempt, "")

    def _is_beyond(self, held: Held) -> bool:
        """Judge an attempt by all of its files, unless it ends already."""
        if held.phase is not Phase.RUNNING or held.cause or held.start is None:
            return False
        before_bytes = self._used.get(held.attempt, 0)
        self._used[held.attempt] = self._sum_bytes
        limit_bytes, used = held.start.limits.disk_bytes, f"{self._sum_bytes / _MIB:.1f} MiB of disk"
        if limit_bytes is not None and self._sum_bytes > limit_bytes:
            limit = f"{limit_bytes / _MIB:.1f} MiB"
            text = _OF_SITE if "disk" in held.start.limits.of_site else _OWN
            self._texts[held.attempt] = f"the task used {used}, more than {text.format(limit)}"
        elif self._sum_bytes > max(before_bytes, _SMALL_BYTES) and self._is_full():
            self._texts[held.attempt] = f"the task used {used}, and the last twentieth of it is not for tasks"
        return held.attempt in self._texts

    def _is_full(self) -> bool:
        try:
            found = os.statvfs(self._root)
        except OSError:
            return False
        return found.f_bavail < found.f_blocks // _RESERVED

    def _folders_of(self, held: Held) -> tuple[str, ...]:
        """Return the folder of the attempt, with its logs and (without a sandbox) its work, and that of its sandbox."""
        folder = f"{self._root}/{ATTEMPTS}/{held.folder}"
        return (folder, f"{self._root}/{SLOTS}/{held.slot}/{WORK}") if held.slot >= 0 else (folder,)


def _used_below(*folders: str) -> Iterator[int]:
    """Yield what each file and folder below folders uses, in bytes; of a file with several names, a part for each."""
    waiting = list(folders)
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield _used_by(entry)


def _used_by(entry: "os.DirEntry[str]") -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        # It was removed meanwhile.
        return 0
    names = 1 if stat.S_ISDIR(found.st_mode) else max(1, found.st_nlink)
    return found.st_blocks * _BLOCK_BYTES // names
