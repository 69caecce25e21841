"""Files that tasks of another account left: given to the present one, which can then remove them."""

import os
from contextlib import suppress
from pathlib import Path

from messiahs.executor.linux.local_accounts import Ranges
from messiahs.executor.protocol.layout import ATTEMPTS, POOL, TRASH


def take_over(root: Path, uid: int, *, former: Ranges) -> None:
    """Give what tasks with one of these former accounts left below `root` to the account `uid`, and follow no link.

    Only root can. What is nested too deeply stays as it is.
    """
    for name in (ATTEMPTS, POOL, TRASH):
        with suppress(OSError, RecursionError):
            for _, folders, files, descriptor in os.fwalk(root / name):
                for each in (*folders, *files):
                    with suppress(OSError):
                        found = os.stat(each, dir_fd=descriptor, follow_symlinks=False).st_uid
                        if found != uid and any(first <= found <= last for first, last in former):
                            os.chown(each, uid, uid, dir_fd=descriptor, follow_symlinks=False)
