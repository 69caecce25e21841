"""Places of the folders of attempts: the tasks' account can reach them, and only the daemon's can change them."""

import hashlib
import os
import pwd
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.config.disk import has_room
from messiahs.errors import ExecutorError
from messiahs.executor.linux.local_accounts import uid_of_release_1

ATTEMPTS = "attempts"
POOL = "pool"
SLOTS = "slots"
"""The working directories of tasks that run in a sandbox, one folder for each slot."""
TRASH = "trash"
VIEW = "view"
"""An empty folder, on which the roots of sandboxes are put together."""
WORK = "work"
FALLBACK: Final = Path("/var/tmp")  # noqa: S108 - the owner of what is found there is checked before it is used
"""Where a daemon keeps folders that the account of its tasks could not reach in the state directory."""
_TASKS, FILES = "tasks", "files"
USER = "task"
"""The name of the account of a task of root's module, which the machine does not know."""
MODULE = "module"
"""In a folder outside the state directory: a link to the folder of the module that it belongs to."""


def group_name(directory: str | Path) -> str:
    """Return the name of the control group of all tasks of a starter, the same at each start in its directory."""
    return f"messiahs-{hashlib.blake2b(os.fsencode(directory), digest_size=6).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account under which tasks run."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFolders:
    """Folders on whose disks a module needs room to accept work; each may be on a disk of its own."""

    state: Path
    files: Path | None = None
    """That of the inputs of tasks; None: the module has no machine."""
    tasks: Path | None = None
    """That of the folders of tasks; None: the module has no machine, or does not know it yet."""

    def all(self) -> tuple[Path, ...]:
        """Return those that there are."""
        return tuple(filter(None, (self.state, self.files, self.tasks)))

    def full(self) -> Path | None:
        """Return one whose disk only has what is reserved for accepted work; None if all disks have more."""
        return next((folder for folder in self.all() if not has_room(folder)), None)


def find_work_folders(directory: Path, task_uids: tuple[int, int] | None, *, fallback: Path = FALLBACK) -> WorkFolders:
    """Return the folders of a module as its daemon chooses them; `task_uids` is None for one without a machine.

    None is made: instead of one that does not exist yet, the folder in which it will be is returned. The module may be
    that of another account.
    """
    directory = directory.resolve()
    if task_uids is None:
        return WorkFolders(state=directory)
    owner = directory.stat().st_uid
    account = task_account(task_uids, daemon=owner)
    files, tasks = (_found(directory, account, name=name, fallback=fallback, owner=owner) for name in (FILES, _TASKS))
    return WorkFolders(state=directory, files=files, tasks=tasks)


def task_account(task_uids: tuple[int, int] | None, *, daemon: int | None = None) -> Account:
    """Return the account of tasks: the first of `task_uids` for a daemon that runs as root, else the daemon's own.

    The daemon runs as this process, or as the account `daemon`. The others of `task_uids` reach the same folders.
    Without any, no tasks run, and it is the daemon's own, too.
    """
    uid = os.geteuid() if daemon is None else daemon
    if uid != 0 or task_uids is None:
        return own_account() if uid == os.geteuid() else _account_of(uid)
    return numbered_account(task_uids[0])


def numbered_account(uid: int) -> Account:
    """Return the account of a task that has one of `task_uids`."""
    assert uid != 0
    return Account(name=USER, uid=uid, gid=uid)


def own_account() -> Account:
    """Return the account of this process."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Account(name=name, uid=uid, gid=gid)


def _account_of(uid: int) -> Account:
    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        return Account(name=str(uid), uid=uid, gid=uid)
    return Account(name=found.pw_name, uid=uid, gid=found.pw_gid)


def prepare_attempts_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Create the folder for attempts in `directory`, or in `fallback` if the account cannot get there, and return it.

    The daemon's account owns it, so that no task of another account can change its content; the tasks' account can
    pass through. Raises `ExecutorError` if something else is in its place.
    """
    mode = 0o700 if account.uid == os.geteuid() else 0o711
    return _prepared(directory, account, name=_TASKS, mode=mode, fallback=fallback)


def prepare_files_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Create the folder for the inputs of tasks, in a place chosen like that for attempts, and return it.

    The daemon's account owns it. The tasks' account can pass through, and cannot list names. Raises `ExecutorError` if
    something else is in its place.
    """
    mode = 0o700 if account.uid == os.geteuid() else 0o711
    return _prepared(directory, account, name=FILES, mode=mode, fallback=fallback)


def file_name(sha256: bytes) -> str:
    """Return the file name for a content."""
    return sha256.hex()


def _prepared(directory: Path, account: Account, *, name: str, mode: int, fallback: Path) -> Path:
    """Return our folder in `directory`, or in `fallback` if the account cannot get there."""
    directory = directory.resolve()
    try:
        if can_traverse(directory, account):
            return _in_own_place(directory / name, mode)
        found = _left_among_others(fallback, directory, account, name=name, owner=os.geteuid())
        root = found or _made_among_others(fallback, directory, name=name)
        root.chmod(mode)
    except OSError as error:
        raise ExecutorError(f"{directory / name}: the folder cannot be created: {error}", transient=True) from error
    # It is for people: a full disk must not stop a daemon for it.
    with suppress(OSError):
        (root / MODULE).symlink_to(directory)
    return root


def _in_own_place(root: Path, mode: int) -> Path:
    with suppress(FileExistsError):
        root.mkdir(mode=mode)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), uid_of_release_1()}:
        raise ExecutorError(
            f"{root} is not a folder of this account: remove it (another account created it)", transient=False
        )
    if found.st_uid != os.geteuid():
        # An earlier release gave it to the tasks' account.
        os.chown(root, os.geteuid(), os.getegid(), follow_symlinks=False)
    # Undo the effect of the umask, or of a task of our own account.
    root.chmod(mode)
    return root


def _found(directory: Path, account: Account, *, name: str, fallback: Path, owner: int) -> Path:
    """Return the folder that `_prepared` returns, or in which it makes that."""
    if can_traverse(directory, account):
        return directory / name if (directory / name).is_dir() else directory
    return _left_among_others(fallback, directory, account, name=name, owner=owner) or fallback


def _left_among_others(fallback: Path, directory: Path, account: Account, *, name: str, owner: int) -> Path | None:
    """Return the folder of a module where every account may create one: the first that no other can write to."""
    for found in sorted(fallback.glob(f"messiahs-{name}-*-{_digest(directory)}*")):
        if _is_of(owner, found, account):
            return found
    return None


def _made_among_others(fallback: Path, directory: Path, *, name: str) -> Path:
    """Make the folder of a module where every account may create one.

    Another account may have taken the predictable name; then a random one is used.
    """
    # As in release 0.1.0, so that either release finds what the other one left.
    stem = f"messiahs-{name}-{uid_of_release_1() or os.geteuid()}-{_digest(directory)}"
    root = fallback / stem
    try:
        root.mkdir(mode=0o700)
    except FileExistsError:
        root = Path(tempfile.mkdtemp(prefix=f"{stem}-", dir=fallback))
    return root


def _digest(directory: Path) -> str:
    return hashlib.blake2b(os.fsencode(directory), digest_size=8).hexdigest()


def _is_of(owner: int, root: Path, account: Account) -> bool:
    """Whether an account created a folder and no other can change it; tasks of that account may open it."""
    found = root.lstat()
    is_open = found.st_mode & 0o022 and account.uid != owner
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not is_open


def can_traverse(directory: Path, account: Account) -> bool:
    """Whether the modes of a folder and of all above it let the account pass (access lists are ignored)."""
    resolved = directory.resolve()
    return all(_lets_pass(folder.stat(), account) for folder in (resolved, *resolved.parents))


def _lets_pass(found: os.stat_result, account: Account) -> bool:
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)
