"""Places of the folders of attempts: the tasks' account can reach them, and only the daemon's can change them."""

import hashlib
import os
import pwd
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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


def task_account(task_uids: tuple[int, int] | None) -> Account:
    """Return the account of tasks: the first of `task_uids` for a daemon that runs as root, else the daemon's own.

    The others of `task_uids` reach the same folders. Without any, no tasks run, and it is the daemon's own, too.
    """
    if os.geteuid() != 0 or task_uids is None:
        return own_account()
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


def prepare_attempts_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Create the folder for attempts in `directory`, or in `fallback` if the account cannot get there, and return it.

    The daemon's account owns it, so that no task of another account can change its content; the tasks' account can
    pass through. Raises `ExecutorError` if something else is in its place.
    """
    mode = 0o700 if account.uid == os.geteuid() else 0o711
    return _prepared(directory, account, name="tasks", mode=mode, fallback=fallback)


def prepare_files_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Create the folder for the inputs of tasks, in a place chosen like that for attempts, and return it.

    The daemon's account owns it. The tasks' account can open a file there if it knows the name, and cannot list names.
    Raises `ExecutorError` if something else is in its place.
    """
    return _prepared(directory, account, name="files", mode=0o711, fallback=fallback)


def file_name(sha256: bytes) -> str:
    """Return the file name for a content."""
    return sha256.hex()


def _prepared(directory: Path, account: Account, *, name: str, mode: int, fallback: Path) -> Path:
    """Return our folder in `directory`, or in `fallback` if the account cannot get there."""
    directory = directory.resolve()
    try:
        if can_traverse(directory, account):
            return _in_own_place(directory / name, mode)
        digest = hashlib.blake2b(os.fsencode(directory), digest_size=8).hexdigest()
        # As in release 0.1.0, so that either release finds what the other one left.
        number = uid_of_release_1() or os.geteuid()
        root = _among_others(fallback, f"messiahs-{name}-{number}-{digest}", account, mode)
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


def _among_others(fallback: Path, stem: str, account: Account, mode: int) -> Path:
    """Return our folder where every account may create one: the first that is ours and that no other can write to.

    Another account may have taken the predictable name; then a random one is used.
    """
    for found in sorted(fallback.glob(f"{stem}*")):
        if _is_ours(found, account):
            found.chmod(mode)
            return found
    root = fallback / stem
    try:
        root.mkdir(mode=mode)
    except FileExistsError:
        root = Path(tempfile.mkdtemp(prefix=f"{stem}-", dir=fallback))
    root.chmod(mode)
    return root


def _is_ours(root: Path, account: Account) -> bool:
    """Whether this account created a folder and no other can change it; tasks of this account may open it."""
    found = root.lstat()
    is_open = found.st_mode & 0o022 and account.uid != os.geteuid()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not is_open


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
