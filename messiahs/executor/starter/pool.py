"""The folders of attempts: taken from a pool by rename, given back if the task left them empty.

Making three files and folders costs more than starting a process; a rename costs next to nothing. What a task filled
is removed by a process of its own, so that a large removal never delays a deadline.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from messiahs.executor.contract import OUTPUT_NAMES, STDERR, STDOUT
from messiahs.executor.layout import ATTEMPTS, POOL, TRASH, WORK

_READY = 64
_KEPT = 1024
_LOG = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_REMOVE = 'chmod -R u+rwX -- "$1" 2>/dev/null; exec rm -rf -- "$1"'


class Taken(NamedTuple):
    """An attempt's folder, and its logs opened for appending, which whoever took it closes."""

    folder: str
    stdout: int
    stderr: int


class Pool:
    """Prepared folders under `root`, and the removal of used ones, one process at a time."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.remover = 0
        """The process that removes at the moment; 0 if there is none."""
        self._ready: list[str] = []
        self._count = 0
        self._can_make = True
        self._trash: list[str] = []

    def open(self, kept: set[str]) -> None:
        """Make the folders, and remove what an earlier starter left, but the folders of the attempts `kept`."""
        for name in (ATTEMPTS, POOL, TRASH):
            folder = f"{self.root}/{name}"
            if not os.path.isdir(folder):  # noqa: PTH112 - strings: this module runs once per task
                os.mkdir(folder, 0o700)  # noqa: PTH102 - as above
        for name in (POOL, TRASH):
            self._trash += [f"{self.root}/{name}/{entry}" for entry in os.listdir(f"{self.root}/{name}")]  # noqa: PTH208 - as above
        folder = f"{self.root}/{ATTEMPTS}"
        unknown = [name for name in os.listdir(folder) if name not in kept]  # noqa: PTH208 - as above
        self._trash += [f"{folder}/{name}" for name in unknown]
        # Numbers that were used are not used again before they are removed.
        names = [path.rsplit("/", 1)[1] for path in self._trash]
        self._count = max((int(name) for name in names if name.isdecimal()), default=0)
        self.remove_next()

    @property
    def wants_more(self) -> bool:
        """Say whether fewer folders are ready than a burst of attempts takes."""
        return self._can_make and len(self._ready) < _READY

    def prepare_one(self) -> None:
        """Make one folder in advance; if the disk takes no more, none is made in advance until one was given back."""
        try:
            if self.wants_more:
                self._ready.append(self._make())
        except OSError:
            self._can_make = False

    def take(self, name: str) -> Taken:
        """Give an attempt its folder, which is `name` from now on."""
        ready = self._ready.pop() if self._ready else self._make()
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        os.rename(ready, folder)  # noqa: PTH104 - as above
        return Taken(folder, os.open(f"{folder}/{STDOUT}", _LOG), os.open(f"{folder}/{STDERR}", _LOG))

    def give_back(self, name: str) -> None:
        """Take a folder back whose attempt is discarded; nothing happens if there is none."""
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        try:
            is_reusable = len(self._ready) < _KEPT and _is_untouched(folder)
            self._count += 1
            target = f"{self.root}/{POOL if is_reusable else TRASH}/{self._count}"
            os.rename(folder, target)  # noqa: PTH104 - as above
        except OSError:
            return
        self._can_make = True
        if is_reusable:
            self._ready.append(target)
        elif not _removed_simply(target):
            self._trash.append(target)
            self.remove_next()

    def remove_next(self) -> None:
        """Start to remove the next used folder, unless a removal runs."""
        if self.remover or not self._trash:
            return
        arguments = ["sh", "-c", _REMOVE, "sh", self._trash.pop()]
        try:
            self.remover = os.posix_spawn("/bin/sh", arguments, {"PATH": "/usr/bin:/bin"}, setsigmask=[])
        except OSError:
            # It lies in the trash, and the next starter tries again.
            self.remover = 0

    def removed(self) -> None:
        """Take note that the removing process has ended."""
        self.remover = 0
        self.remove_next()

    def sizes(self, name: str) -> tuple[int, int]:
        """Say how much an attempt wrote to its two logs; what is no file (any more) counts as empty."""
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        return _size(f"{folder}/{STDOUT}"), _size(f"{folder}/{STDERR}")

    def _make(self) -> str:
        self._count += 1
        folder = f"{self.root}/{POOL}/{self._count}"
        os.mkdir(folder, 0o700)  # noqa: PTH102 - as above
        os.mkdir(f"{folder}/{WORK}", 0o700)  # noqa: PTH102 - as above
        for name in OUTPUT_NAMES:
            os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return folder


def _size(path: str) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_untouched(folder: str) -> bool:
    """Say whether a folder is as good as new: the next task must find nothing of this one."""
    if sorted(os.listdir(folder)) != [STDERR, STDOUT, WORK] or os.listdir(f"{folder}/{WORK}"):  # noqa: PTH208 - as above
        return False
    if os.lstat(f"{folder}/{WORK}").st_mode != stat.S_IFDIR | 0o700:
        return False
    for name in OUTPUT_NAMES:
        found = os.lstat(f"{folder}/{name}")
        if found.st_mode != stat.S_IFREG | 0o600 or found.st_size or found.st_nlink != 1:
            return False
    return os.lstat(folder).st_mode == stat.S_IFDIR | 0o700


def _removed_simply(folder: str) -> bool:
    """Remove a folder whose task wrote to its logs only; False if there is more in it."""
    try:
        os.rmdir(f"{folder}/{WORK}")  # noqa: PTH106 - as above
        for name in OUTPUT_NAMES:
            os.unlink(f"{folder}/{name}")  # noqa: PTH108 - as above
        os.rmdir(folder)  # noqa: PTH106 - as above
    except OSError:
        return False
    return True
