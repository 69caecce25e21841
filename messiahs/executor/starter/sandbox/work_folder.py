"""The folder of a slot in which its tasks work, all with one account, one after the other.

A task that has changed nothing in it, and can have handed it to nobody, leaves it to the next one. From any other task
it is taken with everything in it.
"""

import os
import time
from dataclasses import dataclass

from messiahs.executor.starter.pool import Change, Pool

_MILLISECOND_NS = 1_000_000
_COARSE_CLOCK = 5
"""Linux takes the time stamps of files from this clock (`CLOCK_REALTIME_COARSE`), or from one that is ahead of it."""


@dataclass(slots=True, kw_only=True)
class WorkFolder:
    """A folder at `path` (mutable)."""

    path: str
    account: int
    group: int
    created: Change | None = None
    """None if it must be created."""
    is_older: bool = False
    """Whether every change by the present task shows in the folder's time stamp."""

    def prepare(self) -> None:
        """Have a folder that no task has changed. Raises `OSError`."""
        if self.created is None:
            os.mkdir(self.path, 0o700)  # noqa: PTH102 - strings: this module runs once per task
            os.chown(self.path, self.account, self.group)
            self.created = self._change()

    def begin(self) -> None:
        """Give the folder to a task. Raises `OSError`."""
        self.prepare()
        assert self.created is not None
        changed_ns = self.created[1]
        is_earlier = changed_ns < time.clock_gettime_ns(_COARSE_CLOCK)
        # A file system that rounds its time stamps shows less.
        self.is_older = is_earlier and changed_ns % _MILLISECOND_NS != 0

    def end(self, target: str, *, is_alone: bool) -> None:
        """Replace the empty folder `target` by this one, unless a task `is_alone` has not changed it.

        Only such a task can have handed it to nobody who would list the names in it later. Raises `OSError`.
        """
        if is_alone and self.is_older and self._change() == self.created:
            return
        os.rename(self.path, target)  # noqa: PTH104 - as above
        self.created = None
        # Long before the next task begins, if possible.
        self.prepare()

    def dispose(self, pool: Pool) -> None:
        """Remove the folder, if there is one, with what a task left. Raises `OSError`."""
        if self.created is not None:
            pool.dispose_of(self.path)
            self.created = None

    def _change(self) -> Change:
        found = os.lstat(self.path)
        return found.st_ino, found.st_ctime_ns
