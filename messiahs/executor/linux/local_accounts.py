"""Accounts of this host that a policy names for tasks, and why some can never be that."""

import os
import pwd
from dataclasses import dataclass
from typing import Final

_OF_RELEASE_1: Final = "nobody"
_OVERFLOW: Final = (65_534, 65_535, 2**32 - 1)
"""Numbers that stand for accounts that have none."""

Ranges = tuple[tuple[int, int], ...]
"""Numbers of accounts, each range with its first and last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAccount:
    """An account as tasks have it: its number, its group, and all groups of which it is a member."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()


def uid_of_release_1() -> int | None:
    """Return the account as which tasks of root's modules ran in release 0.1.0, whose files may still be here.

    No task gets it any more. None: this process is not root, or the host has no such account.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_OF_RELEASE_1).pw_uid
    except KeyError:
        return None


def account_for_tasks(name: str, *, others: Ranges) -> LocalAccount | str:
    """Return an account that a policy names for tasks, as the host knows it now, or why no task runs as it.

    `others` are those of tasks for which no policy names one. The reason does not contain the name.
    """
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError):
        return "this host has no such account"
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    if entry.pw_uid == 0 or 0 in groups:
        return "it is root, or a member of its group"
    if entry.pw_uid in (*_OVERFLOW, uid_of_release_1()) or any(first <= entry.pw_uid <= last for first, last in others):
        return "it is that of other tasks, or stands for accounts without a number"
    return LocalAccount(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups)
