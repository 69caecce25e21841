"""Where the folders of attempts lie: somewhere that the tasks' account can reach and only the daemon's can change."""

import hashlib
import os
import pwd
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from messiahs.core.model.ids import AttemptId
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

    The daemon's own account owns it, so that no task of another account can change what is in it; the tasks' account
    can pass through. Raises `ExecutorError` if something else stands in its place.
    """
    mode = 0o700 if account.uid == os.geteuid() else 0o711
    return _prepared(directory, account, name="tasks", mode=mode, fallback=fallback)


def prepare_files_root(directory: Path, account: Account, *, fallback: Path) -> Path:
    """Give the folder for the inputs of tasks, made and safe, in a place chosen as that of the attempts.

    The account can open a file there whose name it is told, and cannot list them; the daemon's own account owns it.
    Raises `ExecutorError` if something else stands in its place.
    """
    return _prepared(directory, account, name="files", mode=0o711, fallback=fallback)


def file_name(sha256: bytes) -> str:
    """Name a file by its content."""
    return sha256.hex()


def _prepared(directory: Path, account: Account, *, name: str, mode: int, fallback: Path) -> Path:
    """Have a folder of our own in `directory`, or if the account cannot get there, in `fallback`."""
    directory = directory.resolve()
    try:
        if can_traverse(directory, account):
            return _in_own_place(directory / name, account, mode)
        digest = hashlib.blake2b(os.fsencode(directory), digest_size=8).hexdigest()
        return _among_others(fallback, f"messiahs-{name}-{account.uid}-{digest}", account, mode)
    except OSError as error:
        raise ExecutorError(f"{directory / name}: the folder cannot be made: {error}", transient=True) from error


def _in_own_place(root: Path, account: Account, mode: int) -> Path:
    with suppress(FileExistsError):
        root.mkdir(mode=mode)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), account.uid}:
        raise ExecutorError(
            f"{root} is not a folder of this account: remove it (someone else made it)", transient=False
        )
    if found.st_uid != os.geteuid():
        # An earlier release gave it to the tasks' account.
        os.chown(root, os.geteuid(), os.getegid(), follow_symlinks=False)
    # Whatever the umask left of it, or a task of our own account made of it.
    root.chmod(mode)
    return root


def _among_others(fallback: Path, stem: str, account: Account, mode: int) -> Path:
    """Have a folder where anybody may make one: the first one that is ours and that nobody else can write to.

    Anybody may have taken its name, which can be told in advance; then another name is used, which cannot.
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
    """Say whether this account made a folder, and nobody else could change it; tasks of this account may open it."""
    found = root.lstat()
    is_open = found.st_mode & 0o022 and account.uid != os.geteuid()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not is_open


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
