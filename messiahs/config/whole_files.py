"""Atomic writing of files: a file is complete or absent, whatever happens during the write."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_READABLE = 0o644
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_whole(path: Path, content: bytes, *, mode: int = _READABLE) -> None:
    """Write or replace a file; its content is durable when this returns, even after a power failure.

    Readers, also after a crash, see the old file or the new one. Raises OSError; the old file is intact then, unless
    syncing the folder failed. If the file already has this content, a full disk raises nothing.
    """
    if _is_there(path, content, mode):
        return
    # A name for each process: concurrent writers must not rename each other's file.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, _NEW, mode), "wb") as file:
            # Independent of the process's umask.
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Return when the folder's list of files is durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_there(path: Path, content: bytes, mode: int) -> bool:
    try:
        found = path.lstat()
        is_alike = stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == mode and found.st_uid == os.geteuid()
        return is_alike and found.st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False
