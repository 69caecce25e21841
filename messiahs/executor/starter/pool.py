"""The folders of attempts: taken from a pool by rename, given back if the task left them untouched.

Making three files and folders costs more than starting a process; a rename costs next to nothing. What a task filled
is removed by a process of its own, so that a large removal never delays a deadline.

If tasks have an account of their own, all folders but those in which they work belong to the daemon's account, so that
no task can change the pool, another attempt's folder, or the names in its own. Otherwise tasks can do all of that; then
whatever they changed is made anew or repaired, and nothing that they changed is given to another task.
"""

import os
import stat
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from messiahs.executor.contract import OUTPUT_NAMES, STDERR, STDOUT
from messiahs.executor.protocol.layout import ATTEMPTS, POOL, TRASH, WORK

_READY = 64
_KEPT = 1024
_LOG = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REMOVE = 'exec 2>/dev/null; chmod -R u+rwX -- "$1"; exec rm -rf -- "$1"'
_TICK_NS = 50_000_000
"""More than any granularity of the times of change that kernels write."""

Change = tuple[int, int]
"""An inode and its last change, in nanoseconds: every change of content, names, mode, attributes or flags moves it, and
no account can set it."""


class Taken(NamedTuple):
    """An attempt's folder, and its logs opened for appending, which whoever took it closes."""

    folder: str
    stdout: int
    stderr: int

    def close(self) -> None:
        """Close both logs; an error that a file system reports only then concerns what was written before."""
        for log in (self.stdout, self.stderr):
            with suppress(OSError):
                os.close(log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose the folders are, if they are not of the tasks' account; the starter may act as this one within `powers`."""

    uid: int
    gid: int
    powers: AbstractContextManager[object]


class _Prepared(NamedTuple):
    """A folder as it was made: what is in it, and itself where its tasks could change it."""

    path: str
    inside: tuple[Change, ...]
    itself: Change | None


class Pool:
    """Prepared folders under `root`, and the removal of used ones, one process at a time."""

    def __init__(self, root: Path, owner: Owner | None = None) -> None:
        self.root = str(root)
        self.remover = 0
        """The process that removes at the moment; 0 if there is none."""
        self._owner = owner
        self._powers: AbstractContextManager[object] = nullcontext() if owner is None else owner.powers
        self._passable = 0o700 if owner is None else 0o711
        """The mode of folders on the way to where tasks work."""
        self._ready: deque[_Prepared] = deque()
        self._taken: dict[str, _Prepared] = {}
        """Those in use that may be used again, by the names of their attempts."""
        self._stamp = f"{time.time_ns():x}"
        self._count = 0
        self._can_make = True
        self._trash: list[str] = []
        self._removing = ""

    def open(self, kept: set[str]) -> None:
        """Make the folders, and remove what an earlier starter left, but the folders of the attempts `kept`."""
        with self._powers:
            self._lay_out()
            for name in (ATTEMPTS, POOL):
                folder = f"{self.root}/{name}"
                unknown = [entry for entry in os.listdir(folder) if name == POOL or entry not in kept]  # noqa: PTH208 - strings: this module runs once per task
                for entry in unknown:
                    with suppress(OSError):
                        os.rename(f"{folder}/{entry}", self._new_name(TRASH))  # noqa: PTH104 - as above
            self._trash += [f"{self.root}/{TRASH}/{entry}" for entry in os.listdir(f"{self.root}/{TRASH}")]  # noqa: PTH208 - as above
        self.remove_next()

    @property
    def wants_more(self) -> bool:
        """Say whether fewer folders are ready than a burst of attempts takes."""
        return self._can_make and len(self._ready) < _READY

    def prepare_one(self) -> None:
        """Make one folder in advance; if the disk takes no more, none is made in advance until one was given back."""
        try:
            if self.wants_more:
                with self._powers:
                    self._ready.append(self._make())
        except OSError:
            self._can_make = False

    def take(self, name: str) -> Taken:
        """Give an attempt its folder, which is `name` from now on. Raises `OSError`."""
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        with self._powers:
            try:
                self._move_in(name, folder)
            except OSError:
                self._lay_out()
                self._move_in(name, folder)
        stdout = os.open(f"{folder}/{STDOUT}", _LOG)
        try:
            return Taken(folder, stdout, os.open(f"{folder}/{STDERR}", _LOG))
        except OSError:
            os.close(stdout)
            raise

    def give_back(self, name: str) -> None:
        """Take a folder back whose attempt is discarded; nothing happens if there is none."""
        prepared = self._taken.pop(name, None)
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        with self._powers, suppress(OSError):
            try:
                if prepared is not None and len(self._ready) < _KEPT and self._is_untouched(prepared):
                    self._ready.append(self._moved(prepared, self._new_name(POOL)))
                else:
                    self._throw_away(folder)
            except OSError:
                self._lay_out()
                self._throw_away(folder)
            self._can_make = True
        self.remove_next()

    def remove_next(self) -> None:
        """Start to remove the next used folder, unless a removal runs."""
        if self.remover or not self._trash:
            return
        self._removing = self._trash.pop()
        try:
            # Of a folder that is the owner's, its task could fill only the one in which it worked.
            is_owners = self._owner is not None and self._is_own_folder(self._removing)
            filled = f"{self._removing}/{WORK}" if is_owners else self._removing
            arguments = ["sh", "-c", _REMOVE, "sh", filled]
            self.remover = os.posix_spawn("/bin/sh", arguments, {"PATH": "/usr/bin:/bin"}, setsigmask=[])
        except OSError:
            # It lies in the trash, and the next starter tries again.
            self.remover = 0

    def removed(self) -> None:
        """Take note that the removing process has ended; what is the owner's was left to the starter."""
        self.remover = 0
        with self._powers, suppress(OSError):
            if not self._is_own_folder(self._removing) or not _removed_simply(self._removing):
                os.rmdir(self._removing)  # noqa: PTH106 - as above
        self.remove_next()

    def sizes(self, name: str) -> tuple[int, int]:
        """Say how much an attempt wrote to its two logs; what is no file (any more) counts as empty."""
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        try:
            return _size(f"{folder}/{STDOUT}"), _size(f"{folder}/{STDERR}")
        except PermissionError:
            # A task of the daemon's own account has closed a folder that all attempts share.
            with self._powers, suppress(OSError):
                self._lay_out()
        with suppress(PermissionError):
            return _size(f"{folder}/{STDOUT}"), _size(f"{folder}/{STDERR}")
        return 0, 0

    def _lay_out(self) -> None:
        """Have every folder that attempts share, and nothing else in its place. Raises `OSError`."""
        if self._owner is None:
            self._have(self.root, 0o700)
        for name in (ATTEMPTS, POOL, TRASH):
            # The process that removes has the tasks' account, and passes through the trash.
            self._have(f"{self.root}/{name}", 0o700 if name == POOL else self._passable)

    def _have(self, folder: str, mode: int) -> None:
        if not self._is_own_folder(folder):
            self._displace(folder)
            self._make_folder(folder, mode)
        _set_mode(folder, mode)

    def _displace(self, folder: str) -> None:
        """Take over a folder that an earlier release gave to the tasks' account; move aside whatever else is there."""
        try:
            descriptor = os.open(folder, _FOLDER)
        except FileNotFoundError:
            return
        except OSError:
            descriptor = -1
        try:
            if descriptor >= 0 and self._owner is not None and os.fstat(descriptor).st_uid == os.geteuid():
                os.fchown(descriptor, self._owner.uid, self._owner.gid)
                return
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        self._count += 1
        aside = f"{folder}-{self._stamp}-{self._count}"
        os.rename(folder, aside)  # noqa: PTH104 - as above
        self._trash.append(aside)

    def _make_folder(self, folder: str, mode: int) -> None:
        with suppress(FileExistsError):
            os.mkdir(folder, mode)  # noqa: PTH102 - as above
            if self._owner is not None:
                os.chown(folder, self._owner.uid, self._owner.gid, follow_symlinks=False)

    def _is_own_folder(self, folder: str) -> bool:
        try:
            found = os.lstat(folder)
        except FileNotFoundError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == (
            os.geteuid() if self._owner is None else self._owner.uid
        )

    def _new_name(self, folder: str) -> str:
        self._count += 1
        return f"{self.root}/{folder}/{self._stamp}-{self._count}"

    def _make(self) -> _Prepared:
        folder = self._new_name(POOL)
        os.mkdir(folder, self._passable)  # noqa: PTH102 - as above
        os.mkdir(f"{folder}/{WORK}", 0o700)  # noqa: PTH102 - as above
        for name in OUTPUT_NAMES:
            os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if self._owner is not None:
            os.chown(folder, self._owner.uid, self._owner.gid)
        return _Prepared(folder, _changes_inside(folder), self._change_of(folder))

    def _change_of(self, folder: str) -> Change | None:
        """Look at a folder itself, if its task could change it."""
        return None if self._owner is not None else _change(folder)

    def _is_untouched(self, prepared: _Prepared) -> bool:
        """Say whether a folder is as it was made. Raises `OSError` if it cannot be reached."""
        try:
            inside, itself = _changes_inside(prepared.path), self._change_of(prepared.path)
        except FileNotFoundError:
            return False
        return inside == prepared.inside and itself == prepared.itself

    def _moved(self, prepared: _Prepared, path: str) -> _Prepared:
        os.rename(prepared.path, path)  # noqa: PTH104 - as above
        return _Prepared(path, prepared.inside, self._change_of(path))

    def _move_in(self, name: str, folder: str) -> None:
        """Let the next folder be that of an attempt."""
        prepared = self._next()
        moved = self._moved(prepared, folder)
        if time.time_ns() - max(changed for _, changed in moved.inside) > _TICK_NS:
            self._taken[name] = moved
            return
        # It is so new that a change by its task may bear the same time: it is used once. A second one will be older.
        if len(self._ready) < _READY:
            with suppress(OSError):
                self._ready.append(self._make())

    def _next(self) -> _Prepared:
        while self._ready:
            # One that cannot be looked at now stays.
            is_untouched = self._is_untouched(self._ready[0])
            prepared = self._ready.popleft()
            if is_untouched:
                return prepared
            self._throw_away(prepared.path)
        return self._make()

    def _throw_away(self, folder: str) -> None:
        """Remove a folder if its task wrote to its logs only, or let it be removed later. Raises `OSError`."""
        is_own = self._is_own_folder(folder)
        if is_own and _removed_simply(folder):
            return
        target = self._new_name(TRASH)
        if is_own:
            # To move a folder, and to empty it, one must be able to write and to enter it.
            _set_mode(folder, self._passable)
        with suppress(FileNotFoundError):
            os.rename(folder, target)  # noqa: PTH104 - as above
            self._trash.append(target)


def _set_mode(folder: str, mode: int) -> None:
    """Set the mode of a folder that is no link. Raises `OSError`."""
    found = os.lstat(folder)
    if stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) != mode:
        os.chmod(folder, mode)  # noqa: PTH101 - strings: this module runs once per task


def _change(path: str) -> Change:
    found = os.lstat(path)
    return found.st_ino, found.st_ctime_ns


def _changes_inside(folder: str) -> tuple[Change, ...]:
    return _change(f"{folder}/{WORK}"), _change(f"{folder}/{STDOUT}"), _change(f"{folder}/{STDERR}")


def _size(path: str) -> int:
    """Give the size of a file; 0 if there is none. Raises `PermissionError`."""
    try:
        found = os.lstat(path)
    except PermissionError:
        raise
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


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
