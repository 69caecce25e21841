"""Safe locations for a module's state: folders that only root and this user can change.

A user who could put a link, a pid file or settings there would decide what is written, ended or run, with root's
rights if root runs the module.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from messiahs.errors import ClientError

_LINK_LIMIT: Final = 40
_OVERFLOW_UID: Final = Path("/proc/sys/kernel/overflowuid")
_UID_MAP: Final = Path("/proc/self/uid_map")


@contextmanager
def as_owner(directory: Path) -> Iterator[None]:
    """Let root act with the rights of the account that owns a folder, or the nearest one above it that is there.

    What is made there then belongs to that account, whose module reads it, and no link that it has put there leads
    root to another place. For others than root nothing changes.
    """
    if os.geteuid() != 0:
        yield
        return
    owner = next(each for each in (directory, *directory.parents) if each.exists()).stat()
    if owner.st_uid == 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups(())
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def check_way(path: Path) -> None:
    """Raise a ClientError if another user could replace a folder on the way to `path`.

    Folders that do not exist or cannot be entered are skipped.
    """
    trusted = {0, os.geteuid(), *_uids_of_nobody_here()}
    for place, found in _way(path):
        if found.st_uid not in trusted:
            raise _unsafe(path, f"{place} belongs to {name_of(found.st_uid)}")
        if stat.S_ISDIR(found.st_mode) and _others_can_write(found) and not found.st_mode & stat.S_ISVTX:
            raise _unsafe(path, f"other users can write to {place}", f"`chmod go-w {place}` (or +t)")


def check_federation(directory: Path) -> None:
    """Raise a ClientError unless STATE/FEDERATION and its contents belong to this user, who alone can write them."""
    check_way(directory)
    own = directory.lstat()
    if own.st_uid != os.geteuid():
        text = f"only {name_of(own.st_uid)} may run and end the modules in {directory}"
        raise ClientError(f"{text}: do this as that account, or choose another location with `--state`")
    if not stat.S_ISDIR(own.st_mode):
        raise _unsafe(directory, f"{directory} is not a folder but a link or a file", "remove it")
    for folder in (directory, *(each for each in directory.iterdir() if each.is_dir() and not each.is_symlink())):
        for place, found in _entries(folder):
            # Folders of tasks belong to the account that runs the tasks.
            is_of_tasks = folder != directory and stat.S_ISDIR(found.st_mode)
            if found.st_uid not in {0, own.st_uid} and not is_of_tasks:
                raise _unsafe(directory, f"{place} belongs to {name_of(found.st_uid)}", "remove it")


def name_of(uid: int) -> str:
    """Return the name of an account with its number, or the number alone if it has no name."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _way(path: Path, links: int = 0) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every existing folder and link on the way to a path, including those reached through links."""
    if links > _LINK_LIMIT:
        raise ClientError(f"the path {path} goes through too many links")
    place = Path(path.anchor)
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        yield place, place.lstat()
        for part in path.parts[1:]:
            place /= part
            found = place.lstat()
            yield place, found
            if stat.S_ISLNK(found.st_mode):
                yield from _way(place.parent / place.readlink(), links + 1)


def _entries(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    with suppress(FileNotFoundError, PermissionError):
        for place in folder.iterdir():
            with suppress(FileNotFoundError):
                yield place, place.lstat()


def _others_can_write(found: os.stat_result) -> bool:
    """Whether a user other than this one and root can write; a private group counts as its user, except for root."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and found.st_gid != 0 and not _is_private_group(found.st_gid)


def _is_private_group(gid: int) -> bool:
    if os.geteuid() == 0 or gid != os.getegid():
        return False
    try:
        return set(grp.getgrgid(gid).gr_mem) <= {pwd.getpwuid(os.geteuid()).pw_name}
    except KeyError:
        return False


def _uids_of_nobody_here() -> set[int]:
    """Return the uid that stands for all accounts outside of this user namespace, if no process here can have it."""
    with suppress(OSError, ValueError):
        overflow = int(_OVERFLOW_UID.read_text(encoding="ascii"))
        ranges = [tuple(map(int, line.split())) for line in _UID_MAP.read_text(encoding="ascii").splitlines()]
        if not any(first <= overflow < first + count for first, _, count in ranges):
            return {overflow}
    return set()


def _unsafe(path: Path, why: str, remedy: str = "") -> ClientError:
    advice = f"{remedy}, or choose" if remedy else "choose"
    return ClientError(f"{path} is not safe from other users: {why}; {advice} another location with `--state`")
