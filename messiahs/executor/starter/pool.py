"""Folders of attempts: taken from a pool by a rename, and returned if the task left them untouched and told nobody.

A task may have handed its open folder and logs to a process that outlives it, which would read and forge what the next
one writes there, and leaves no trace in them. So a folder is used again only where that is known to be impossible, or
where it gives nobody anything new: each of several tasks with one account can hand out what all others have open.

Creating three files and folders costs more than starting a process; a rename costs almost nothing. A folder that a task
has filled is removed by a separate process, so that a large removal never delays a deadline; a few small files are
removed at once.

If tasks have their own account, all folders except those in which they work belong to the daemon's account, so that no
task can change the pool, the folder of another attempt, or the names in its own. Otherwise tasks can do all of that;
then everything that they changed is recreated or repaired, and nothing that they changed is given to another task.

If tasks have several accounts, a folder is prepared for one of them, and never used for another one.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from messiahs.core.model.output_names import LOGS, STDERR, STDOUT
from messiahs.executor.protocol.layout import ATTEMPTS, POOL, TRASH, WORK
from messiahs.executor.starter.pool_owner import Owner
from messiahs.executor.starter.small_folders import is_slow, removed_simply

_READY, _KEPT, _LEAST = 64, 1024, 4
"""Folders that are prepared, and that are kept, for all accounts together; and for each one at least."""
_LOG = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REMOVE = 'exec 2>/dev/null; rm -rf -- "$@" && exit; chmod -R u+rwX -- "$@"; exec rm -rf -- "$@"'
_REMOVE_AS_ROOT = 'exec 2>/dev/null; exec rm -rf -- "$@"'
"""Root needs no permission, and `chmod -R` would follow a link that somebody puts in the place of a file meanwhile."""
_REMOVED_TOGETHER = 64
"""Folders that one process removes."""
_TICK_NS = 50_000_000
"""Coarser than the time stamps of any kernel."""

Change = tuple[int, int]
"""An inode and the time of its last change, in nanoseconds: every change of content, names, mode, attributes or flags
updates it, and no account can set it."""


class Taken(NamedTuple):
    """An attempt's folder, its logs opened for appending, and its standard input, if any; the caller closes them."""

    folder: str
    stdout: int
    stderr: int
    stdin: int | None = None

    def close(self) -> None:
        """Close the logs and the input; an error that appears only now concerns earlier writes."""
        for file in (self.stdout, self.stderr, self.stdin):
            if file is not None:
                with suppress(OSError):
                    os.close(file)


class _Prepared(NamedTuple):
    """A folder as it was created: its content, and the folder itself where its tasks could change it.

    Its content belongs to `account`; None: to the one that the starter has.
    """

    path: str
    inside: tuple[Change, ...]
    itself: Change | None
    account: int | None


class Pool:
    """Prepared folders under `root`, and the removal of used ones, many by one process.

    With `is_open_to_tasks`, each task reaches the folders of all others, so a folder that it has left untouched is used
    again, whoever may have it open.
    """

    def __init__(self, root: Path, owner: Owner | None = None, *, is_open_to_tasks: bool = False) -> None:
        self.root = str(root)
        self.remover = 0
        """The removing process; 0 if there is none."""
        self.unpacker = 0
        """The process that unpacks an image or environment; 0 if there is none."""
        self._owner, self._is_open_to_tasks = owner, is_open_to_tasks
        self.capabilities: AbstractContextManager[object] = nullcontext() if owner is None else owner.capabilities
        """What is needed to look into the folders, within a `with`."""
        self._passable = 0o700 if owner is None else owner.passable
        """Mode of the folders that attempts share."""
        self._closed = self._passable & 0o710
        """Mode of the folder of an attempt, above its work folder."""
        self._ready: dict[int | None, deque[_Prepared]] = {None: deque()}
        """Prepared folders by the accounts for which they are."""
        self._taken: dict[str, _Prepared] = {}
        """Folders in use whose changes would show, by the names of their attempts."""
        self._alone: set[str] = set()
        """Names of attempts that can have handed nothing to anybody."""
        self._stamp = f"{time.time_ns():x}"
        self._count = 0
        self._can_make = True
        self._trash: list[str] = []
        self._removing: list[str] = []

    def open(self, kept: set[str]) -> None:
        """Create the folders, and remove those of an earlier starter, except the folders of the attempts `kept`."""
        with self.capabilities:
            self._lay_out()
            for name in (ATTEMPTS, POOL):
                folder = f"{self.root}/{name}"
                unknown = [entry for entry in os.listdir(folder) if name == POOL or entry not in kept]  # noqa: PTH208 - strings: this module runs once per task
                for entry in unknown:
                    with suppress(OSError):
                        os.rename(f"{folder}/{entry}", self._new_name(TRASH))  # noqa: PTH104 - as above
            for name in kept:
                with suppress(OSError):
                    self._close(f"{self.root}/{ATTEMPTS}/{name}")
            self._trash += [f"{self.root}/{TRASH}/{entry}" for entry in os.listdir(f"{self.root}/{TRASH}")]  # noqa: PTH208 - as above
        self.remove_next()

    @property
    def of_no_attempt(self) -> tuple[int, ...]:
        """The starter's processes that belong to no attempt."""
        return tuple(filter(None, (self.remover, self.unpacker)))

    @property
    def wants_more(self) -> bool:
        """Whether fewer folders are ready than a burst of attempts needs."""
        return self._can_make and any(True for _ in self._lacking())

    def expect(self, account: int) -> None:
        """Prepare folders for this account from now on, and none for the starter's own."""
        self._ready.pop(None, None)
        self._ready.setdefault(account, deque())

    def prepare_one(self) -> None:
        """Create one folder in advance. When the disk is full, this stops until a folder is returned."""
        try:
            for account in self._lacking() if self._can_make else ():
                with self.capabilities:
                    self._ready[account].append(self._make(account))
                return
        except OSError:
            self._can_make = False

    def take(self, name: str, account: int | None = None) -> Taken:
        """Return a folder for an attempt, renamed to `name`, whose content belongs to an account. Raises `OSError`."""
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        with self.capabilities:
            try:
                self._move_in(name, folder, account)
            except OSError:
                self._lay_out()
                self._move_in(name, folder, account)
        stdout = os.open(f"{folder}/{STDOUT}", _LOG)
        try:
            return Taken(folder, stdout, os.open(f"{folder}/{STDERR}", _LOG))
        except OSError:
            os.close(stdout)
            raise

    def note_alone(self, name: str) -> None:
        """Note that an attempt has ended that can have handed its open files to nobody."""
        if name in self._taken:
            self._alone.add(name)

    def give_back(self, name: str) -> None:
        """Take back the folder of a discarded attempt; nothing happens if there is none."""
        prepared = self._taken.pop(name, None)
        is_alone = self._is_open_to_tasks or name in self._alone
        self._alone.discard(name)
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        with self.capabilities, suppress(OSError):
            try:
                if prepared is not None and is_alone and self._is_welcome(prepared) and self._is_untouched(prepared):
                    self._ready[prepared.account].append(self._moved(prepared, self._new_name(POOL)))
                else:
                    self._throw_away(folder)
            except OSError:
                self._lay_out()
                self._throw_away(folder)
            self._can_make = True
        self.remove_next()

    def dispose_of(self, folder: str) -> None:
        """Remove a folder below the root of which nothing is kept. Raises `OSError` if it stays where it is."""
        self._throw_away(folder)
        self.remove_next()

    def remove_next(self) -> None:
        """Start the removal of the next used folders, unless one is in progress."""
        if self.remover or not self._trash:
            return
        self._removing, self._trash = self._trash[:_REMOVED_TOGETHER], self._trash[_REMOVED_TOGETHER:]
        try:
            remove = _REMOVE_AS_ROOT if os.geteuid() == 0 else _REMOVE
            arguments = ["sh", "-c", remove, "sh", *map(self._filled, self._removing)]
            self.remover = os.posix_spawn("/bin/sh", arguments, {"PATH": "/usr/bin:/bin"}, setsigmask=[])
        except OSError:
            # They stay in the trash for the next starter.
            self.remover = 0

    def _filled(self, folder: str) -> str:
        # In a folder of another owner, the task could fill only its work folder, and only that can be emptied.
        is_others = self._owner is not None and self._is_own_folder(folder) and self._owner.uid != os.geteuid()
        return f"{folder}/{WORK}" if is_others else folder

    def removed(self) -> None:
        """Note that the removing process has ended; folders of the owner are removed here."""
        self.remover = 0
        with self.capabilities:
            for folder in self._removing:
                with suppress(OSError):
                    if not self._is_own_folder(folder) or not removed_simply(folder):
                        os.rmdir(folder)  # noqa: PTH106 - as above
        self.remove_next()

    def sizes(self, name: str) -> tuple[int, int]:
        """Return the sizes of an attempt's two logs; a log that is not a file (any more) counts as empty."""
        folder = f"{self.root}/{ATTEMPTS}/{name}"
        try:
            return _size(f"{folder}/{STDOUT}"), _size(f"{folder}/{STDERR}")
        except PermissionError:
            # A task of the daemon's account has closed a folder that all attempts share.
            with self.capabilities, suppress(OSError):
                self._lay_out()
        with suppress(PermissionError):
            return _size(f"{folder}/{STDOUT}"), _size(f"{folder}/{STDERR}")
        return 0, 0

    def _lay_out(self) -> None:
        """Create the folders that attempts share, replacing anything else in their places. Raises `OSError`."""
        if self._owner is None:
            self._have(self.root, 0o700)
        for name in (ATTEMPTS, POOL, TRASH):
            # The removing process runs under the tasks' account and passes through the trash.
            self._have(f"{self.root}/{name}", 0o700 if name == POOL else self._passable)

    def _have(self, folder: str, mode: int) -> None:
        if not self._is_own_folder(folder):
            self._displace(folder)
            self._make_folder(folder, mode)
        _set_mode(folder, mode)

    def _displace(self, folder: str) -> None:
        """Take over a folder that release 0.1.0 gave to the tasks' account; move anything else aside."""
        try:
            descriptor = os.open(folder, _FOLDER)
        except FileNotFoundError:
            return
        except OSError:
            descriptor = -1
        try:
            if descriptor >= 0 and self._owner is not None and os.fstat(descriptor).st_uid == self._owner.former:
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

    def _lacking(self) -> Iterator[int | None]:
        """Yield the accounts for which fewer folders are ready than a burst needs."""
        enough = self._share(_READY)
        return (account for account, ready in self._ready.items() if len(ready) < enough)

    def _share(self, of_all: int) -> int:
        return max(_LEAST, of_all // len(self._ready))

    def _make(self, account: int | None) -> _Prepared:
        folder = self._new_name(POOL)
        os.mkdir(folder, self._closed)  # noqa: PTH102 - as above
        os.mkdir(f"{folder}/{WORK}", 0o700)  # noqa: PTH102 - as above
        for name in LOGS:
            os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if account is not None:
            for name in (WORK, *LOGS):
                os.chown(f"{folder}/{name}", account, account)
        self._close(folder)
        return _Prepared(folder, _changes_inside(folder), self._change_of(folder), account)

    def _close(self, folder: str) -> None:
        """Let only the owner and the tasks pass through the folder of an attempt, which is not theirs."""
        if self._owner is not None:
            os.chown(folder, self._owner.uid, self._owner.gid, follow_symlinks=False)
            _set_mode(folder, self._closed)

    def _change_of(self, folder: str) -> Change | None:
        """Return the last change of a folder itself, if its task could change it."""
        return None if self._owner is not None else _change(folder)

    def _is_untouched(self, prepared: _Prepared) -> bool:
        """Whether a folder is as it was created. Raises `OSError` if it cannot be read."""
        try:
            inside, itself = _changes_inside(prepared.path), self._change_of(prepared.path)
        except FileNotFoundError:
            return False
        return inside == prepared.inside and itself == prepared.itself

    def _is_welcome(self, prepared: _Prepared) -> bool:
        return len(self._ready[prepared.account]) < self._share(_KEPT)

    def _moved(self, prepared: _Prepared, path: str) -> _Prepared:
        os.rename(prepared.path, path)  # noqa: PTH104 - as above
        return prepared._replace(path=path, itself=self._change_of(path))

    def _move_in(self, name: str, folder: str, account: int | None) -> None:
        """Give the prepared folder to an attempt."""
        prepared = self._next(account)
        moved = self._moved(prepared, folder)
        if time.time_ns() - max(changed for _, changed in moved.inside) > _TICK_NS:
            self._taken[name] = moved
            return
        # A change by its task could have the same time stamp as its creation, so it is used once; a later one is older.
        ready = self._ready[account]
        if len(ready) < self._share(_READY):
            with suppress(OSError):
                ready.append(self._make(account))

    def _next(self, account: int | None) -> _Prepared:
        ready = self._ready[account]
        while ready:
            # A folder that cannot be checked now stays.
            is_untouched = self._is_untouched(ready[0])
            prepared = ready.popleft()
            if is_untouched:
                return prepared
            self._throw_away(prepared.path)
        return self._make(account)

    def _throw_away(self, folder: str) -> None:
        """Remove a folder with a few small files, and move any other to the trash. Raises `OSError`."""
        is_own = self._is_own_folder(folder)
        if is_own and not is_slow(folder) and removed_simply(folder):
            return
        target = self._new_name(TRASH)
        if is_own:
            # Moving and emptying a folder require write and search permission.
            _set_mode(folder, self._closed)
        with suppress(FileNotFoundError):
            os.rename(folder, target)  # noqa: PTH104 - as above
            self._trash.append(target)


def _set_mode(folder: str, mode: int) -> None:
    """Set the mode of a folder that is not a link. Raises `OSError`."""
    found = os.lstat(folder)
    if stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) != mode:
        os.chmod(folder, mode)  # noqa: PTH101 - strings: this module runs once per task


def _change(path: str) -> Change:
    found = os.lstat(path)
    return found.st_ino, found.st_ctime_ns


def _changes_inside(folder: str) -> tuple[Change, ...]:
    return _change(f"{folder}/{WORK}"), _change(f"{folder}/{STDOUT}"), _change(f"{folder}/{STDERR}")


def _size(path: str) -> int:
    """Return the size of a file; 0 if there is none. Raises `PermissionError`."""
    try:
        found = os.lstat(path)
    except PermissionError:
        raise
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
