"""Removing folders of attempts with little in them, which is faster than starting a process for it."""

import os
from itertools import islice

from messiahs.core.model.output_names import LOGS
from messiahs.executor.protocol.layout import WORK

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL_FILES, _SMALL_BYTES = 16, 1 << 20
"""Files that the starter itself removes from a folder."""
_FOLDER_BYTES = 1 << 20
"""Size of a folder itself; some file systems read all that it ever held when they remove it, also if it is empty."""


def is_slow(folder: str) -> bool:
    """Return whether a folder of an attempt, or its work folder, had so many names that its removal takes long."""
    try:
        return max(os.lstat(folder).st_size, os.lstat(f"{folder}/{WORK}").st_size) > _FOLDER_BYTES
    except OSError:
        return False


def removed_simply(folder: str) -> bool:
    """Remove a folder whose task left a few small files beside its logs; False if it contains more."""
    work = f"{folder}/{WORK}"
    try:
        try:
            os.rmdir(work)  # noqa: PTH106 - strings: this module runs once per task
        except OSError:
            if not _emptied(work):
                return False
            os.rmdir(work)  # noqa: PTH106 - as above
        for name in LOGS:
            os.unlink(f"{folder}/{name}")  # noqa: PTH108 - as above
        os.rmdir(folder)  # noqa: PTH106 - as above
    except OSError:
        return False
    return True


def _emptied(folder: str) -> bool:
    """Remove the files of a folder if they are few and small, which is faster than starting a process for them."""
    descriptor = os.open(folder, _FOLDER)
    try:
        with os.scandir(descriptor) as entries:
            files = list(islice(entries, _SMALL_FILES + 1))
        if len(files) > _SMALL_FILES or sum(file.stat(follow_symlinks=False).st_size for file in files) > _SMALL_BYTES:
            return False
        for file in files:
            os.unlink(file.name, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    return True
