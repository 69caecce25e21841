"""Folders of modules that are gone: those that `layout.py` makes outside of the state directory."""

import hashlib
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.core.model.instants import DAY, SECOND
from messiahs.executor.protocol.layout import MODULE

UNCHANGED_SECONDS: Final = 30 * DAY // SECOND
"""Longer than any attempt runs without its module, and as long as many systems keep files in `/var/tmp`.

A state directory on a disk that is not mounted now looks as if it were gone.
"""
_NAME: Final = re.compile(r"messiahs-(?:tasks|files)-[0-9]+-(?P<digest>[0-9a-f]{16})(?:-\w+)?")


def remove_left_folders(fallback: Path, *, before: float | None = None) -> list[Path]:
    """Remove the folders of this account's modules that are gone, and return them.

    The folder of such a module is not there, and nothing in its folder here has changed since an instant (by default
    30 days ago), so no task of it runs.
    """
    since = time.time() - UNCHANGED_SECONDS if before is None else before
    left = [root for root in sorted(fallback.glob("messiahs-*")) if _is_left(root, since)]
    for root in left:
        shutil.rmtree(root, ignore_errors=True)
    return left


def _is_left(root: Path, since: float) -> bool:
    name = _NAME.fullmatch(root.name)
    # Whoever could write here could name any folder as that of the module, or wait for one to be gone.
    if name is None or not _is_ours_alone(root):
        return False
    with suppress(OSError):
        module = os.readlink(root / MODULE)  # noqa: PTH115 - the very bytes of the link
        is_its_own = hashlib.blake2b(os.fsencode(module), digest_size=8).hexdigest() == name["digest"]
        return is_its_own and not os.path.lexists(module) and _changed_at(root) < since
    return False


def _is_ours_alone(root: Path) -> bool:
    with suppress(OSError):
        found = root.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return False


def _changed_at(root: Path) -> float:
    """Return when a folder, or anything directly in it, was last changed."""
    return max(each.lstat().st_mtime for each in (root, *root.iterdir()))
