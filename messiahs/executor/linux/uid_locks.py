"""Accounts that starters of one machine have taken, so that no two of them use the same at once.

Each account has a file, which its user keeps locked; the kernel releases it when that process ends.
"""

import errno
import fcntl
import os
import zlib
from pathlib import Path

_FOLDER = Path("/run/messiahs-accounts")
ALL_TAKEN = "other modules of this machine use all accounts of tasks"


def lock_uid(uid: int, *, folder: Path = _FOLDER) -> int | None:
    """Return a descriptor that keeps the account until it is closed; None if another process has it.

    Raises `OSError` if the folder is not root's alone.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another account")
    descriptor = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def lock_one(uids: range, *, owner: str) -> int:
    """Take one of these accounts until this process ends, and return it: usually the same one for the same owner.

    What its tasks leave on the machine is thus rarely another owner's. Raises `OSError`, also if all are taken.
    """
    wanted = zlib.crc32(os.fsencode(owner)) % len(uids)
    in_order: list[int] = [*uids[wanted:], *uids[:wanted]]
    for uid in in_order:
        if lock_uid(uid) is not None:
            return uid
    raise BlockingIOError(errno.EAGAIN, ALL_TAKEN)
