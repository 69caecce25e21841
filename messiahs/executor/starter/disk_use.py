"""The disk that running attempts use, looked at a little at a time, because everything else waits meanwhile.

Blocks count, not sizes, so holes in files cost nothing, and every file counts as a little, because a disk has a number
of them. Files that were deleted while a process has them open are not found; they show only on a disk that fills up.
"""

from contextlib import AbstractContextManager
from typing import Final

from messiahs.config.disk import is_last_part_reached
from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempts import NEVER, Held, Phase, Table
from messiahs.executor.protocol.layout import ATTEMPTS, SLOTS, WORK
from messiahs.executor.starter.disk_walk import Walk

_LOOK_NS: Final = 1_000_000_000
"""Time between two looks at all running attempts."""
_PAUSE_NS: Final = 20_000_000
"""Time between two pieces of a look."""
_PIECE: Final = 256
"""Files and folders of a piece."""
_SMALL_BYTES, _SMALL_FILES = 64 << 20, 1024
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
        self._walk: Walk | None = None
        """Through the files of the last of those that wait."""
        self._used: dict[AttemptId, tuple[int, int]] = {}
        """Bytes and files."""
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
        with self._capabilities:
            walk = self._walk = self._walk or Walk(*self._folders_of(held))
            if not walk.go_on(_PIECE) and not _is_above(held, walk):
                return None
        self._walk = None
        del self._waiting[-1]
        return held if self._is_beyond(held, walk) else None

    def text_of(self, held: Held) -> str:
        """Return why an attempt was ended, and forget it."""
        self._used.pop(held.attempt, None)
        return self._texts.pop(held.attempt, "")

    def _is_beyond(self, held: Held, walk: Walk) -> bool:
        """Judge an attempt by all of its files, unless it ends already."""
        if held.phase is not Phase.RUNNING or held.cause or held.start is None:
            return False
        before_bytes, before_files = self._used.get(held.attempt, (0, 0))
        if not walk.missed:
            self._used[held.attempt] = walk.used_bytes, walk.files
        used = f"{walk.used_bytes / _MIB:.1f} MiB of disk"
        lacks_bytes, lacks_files = self._lacks()
        if walk.problem:
            self._texts[held.attempt] = f"the disk that the task uses cannot be measured: {walk.problem}"
        elif _is_above(held, walk):
            limit = f"{(held.start.limits.disk_bytes or 0) / _MIB:.1f} MiB"
            text = _OF_SITE if "disk" in held.start.limits.of_site else _OWN
            self._texts[held.attempt] = f"the task used {used} in {walk.files} files, more than {text.format(limit)}"
        elif lacks_bytes and walk.used_bytes > max(before_bytes, _SMALL_BYTES):
            self._texts[held.attempt] = f"the task used {used}, and the last twentieth of it is not for tasks"
        elif lacks_files and walk.files > max(before_files, _SMALL_FILES):
            has = f"the task has {walk.files} files"
            self._texts[held.attempt] = f"{has}, and the last twentieth of what its disk can have is not for tasks"
        return held.attempt in self._texts

    def _lacks(self) -> tuple[bool, bool]:
        """Return whether the disk has reached its last twentieth, of bytes and of files."""
        try:
            return is_last_part_reached(self._root)
        except OSError:
            return False, False

    def _folders_of(self, held: Held) -> tuple[str, ...]:
        """Return the folder of the attempt, with its logs and (without a sandbox) its work, and that of its sandbox."""
        folder = f"{self._root}/{ATTEMPTS}/{held.folder}"
        return (folder, f"{self._root}/{SLOTS}/{held.slot}/{WORK}") if held.slot >= 0 else (folder,)


def _is_above(held: Held, walk: Walk) -> bool:
    """Whether what was counted so far is more than the limit of an attempt."""
    limit_bytes = held.start.limits.disk_bytes if held.start is not None else None
    return limit_bytes is not None and walk.used_bytes > limit_bytes
