"""Accounts that starters of one machine have taken, so that no two of them use the same at once.

Each account has a file, which its user keeps locked; the kernel releases it when that process ends.
"""

import fcntl
import os
from pathlib import Path

_FOLDER = Path("/run/messiahs-accounts")


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
