"""The folder of a slot in which its tasks work, all with one account, one after the other: a new one for each.

It is taken from a task with everything in it, also if that is nothing: a process outside of the sandbox may have got it
open from the task, and would see and change what the next one has in it.
"""

import os
from dataclasses import dataclass

from messiahs.executor.starter.pool import Pool


@dataclass(slots=True, kw_only=True)
class WorkFolder:
    """A folder at `path` (mutable)."""

    path: str
    account: int
    group: int
    is_there: bool = False
    """Whether it was created, and no task has had it."""

    def prepare(self) -> None:
        """Have a folder that no task has had. Raises `OSError`."""
        if not self.is_there:
            os.mkdir(self.path, 0o700)  # noqa: PTH102 - strings: this module runs once per task
            os.chown(self.path, self.account, self.group)
            self.is_there = True

    def end(self, target: str) -> None:
        """Replace the empty folder `target` by this one, and have a new one. Raises `OSError`."""
        os.rename(self.path, target)  # noqa: PTH104 - as above
        self.is_there = False
        # Long before the next task begins, if possible.
        self.prepare()

    def dispose(self, pool: Pool) -> None:
        """Remove the folder, if there is one, with what a task left. Raises `OSError`."""
        if self.is_there:
            pool.dispose_of(self.path)
            self.is_there = False
