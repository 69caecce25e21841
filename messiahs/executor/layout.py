"""Where the folders of attempts lie: somewhere that the tasks' account can reach and others cannot."""

import hashlib
import os
import pwd
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from messiahs.core.ids import AttemptId
from messiahs.errors import ExecutorError

ATTEMPTS = "attempts"
POOL = "pool"
TRASH = "trash"
WORK = "work"

_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """As whom tasks run."""

    name: str
    uid: int
    gid: int


def task_account(task_user: str) -> Account:
    """Give the account of the tasks: `task_user` for a daemon that runs as root, else the daemon's own.

    Raises `ExecutorError` for an account that does not exist or is root's.
    """
    if os.geteuid() != 0:
        return own_account()
    try:
        entry = pwd.getpwnam(task_user)
    except KeyError:
        raise ExecutorError(f"there is no account {task_user} to run tasks as", transient=False) from None
    if entry.pw_uid == 0:
        raise ExecutorError("tasks are never run as root: name another task_user", transient=False)
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def own_account() -> Account:
    """Give the account of this very process."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Account(name=name, uid=uid, gid=gid)


def folder_name(attempt: AttemptId) -> str:
    """Name the folder of an attempt; ids of other sites never reach the file system unchecked."""
    task = attempt.task
    system = str(task.system)
    if not _PLAIN_NAME.fullmatch(system):
        system = "~" + hashlib.blake2b(system.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{system}.{task.epoch:x}.{task.number}.{task.member}.{attempt.number}"


def prepare_attempts_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Give the folder for attempts, made and safe: in `directory`, or if the account cannot get there, in `fallback`.

    Only the account (and root) can enter it. Raises `ExecutorError` if something else stands in its place.
    """
    root = _beside(directory, account, name="tasks", fallback=fallback)
    found = _made(root, owner=account, mode=0o700)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or found.st_mode & 0o077:
        raise ExecutorError(
            f"{root} is not a folder that only {account.name} can enter: remove it (someone else made it)",
            transient=False,
        )
    return root


def prepare_files_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Give the folder for the inputs of tasks, made and safe, in a place chosen as that of the attempts.

    The account can open a file there whose name it is told, and cannot list them; the daemon's own account owns it.
    Raises `ExecutorError` if something else stands in its place.
    """
    root = _beside(directory, account, name="files", fallback=fallback)
    own = own_account()
    found = _made(root, owner=own, mode=0o711)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != own.uid or found.st_mode & 0o066:
        raise ExecutorError(
            f"{root} is not a folder that only {own.name} can change: remove it (someone else made it)", transient=False
        )
    return root


def file_name(sha256: bytes) -> str:
    """Name a file by its content."""
    return sha256.hex()


def _beside(directory: Path, account: Account, *, name: str, fallback: Path) -> Path:
    """Choose a place: in `directory`, or if the account cannot get there, in `fallback`."""
    directory = directory.resolve()
    if can_traverse(directory, account):
        return directory / name
    digest = hashlib.blake2b(os.fsencode(directory), digest_size=8).hexdigest()
    return fallback / f"messiahs-{name}-{account.uid}-{digest}"


def _made(root: Path, *, owner: Account, mode: int) -> os.stat_result:
    try:
        root.mkdir(mode=mode)
        # Whatever the umask leaves of it.
        root.chmod(mode)
        os.chown(root, owner.uid, owner.gid, follow_symlinks=False)
    except FileExistsError:
        pass
    except OSError as error:
        raise ExecutorError(f"{root}: the folder cannot be made: {error.strerror}", transient=True) from error
    return root.lstat()


def can_traverse(directory: Path, account: Account) -> bool:
    """Say whether the mode of a folder and of all above it lets the account pass (access lists are not read)."""
    resolved = directory.resolve()
    return all(_lets_pass(folder.stat(), account) for folder in (resolved, *resolved.parents))


def _lets_pass(found: os.stat_result, account: Account) -> bool:
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)
