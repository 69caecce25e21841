"""Files that are there whole or not at all, whatever happens while they are written."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_READABLE = 0o644
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_whole(path: Path, content: bytes, *, mode: int = _READABLE) -> None:
    """Put a file in the place of one, if there is one; it is on disk when this returns, a power cut notwithstanding.

    Who reads meanwhile, or after a crash, finds the old file or the new one. Raises OSError; the old one is still there
    then, unless the folder was the last thing that the disk refused. A full disk refuses nothing that is there already.
    """
    if _is_there(path, content, mode):
        return
    # Of its own for each process: two that write at once must not rename each other's.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, _NEW, mode), "wb") as file:
            # However narrow the mask of the process is.
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
    """Return when it is on disk which files a folder has."""
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
