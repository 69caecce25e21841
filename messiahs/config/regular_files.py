"""Reading files that somebody named: regular files of bounded size only.

A FIFO has no end until somebody writes to it, a device may have none at all, and opening one can change its state. The
only pipe that is read is one that the caller opened for this very command: `<(command)` in a shell.
"""

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, Final

TEXT_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Enough for every file that an administrator or a user writes by hand or by a script."""
_PIECE_BYTES: Final = 1024 * 1024
# The path may name something else by the time that it is opened, so that must not block either.
_READING: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PASSED: Final = re.compile(r"/(?:dev|proc/self)/fd/(?:[3-9]|[1-9][0-9]+)", re.ASCII)
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


class NotRegularError(OSError):
    """What was named is no regular file, or it is too long; `strerror` says which."""

    def __str__(self) -> str:
        """Name the file first: there is no number of an error to tell."""
        return f"{self.filename}: {self.strerror}"


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file for reading, unbuffered; raises OSError, `NotRegularError` for everything else."""
    # Opening a device may have an effect, so nothing is opened that is none of ours to read.
    _check(Path(path).stat(), path)
    descriptor = os.open(path, _READING)
    try:
        _check(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb", buffering=0)
    except OSError:
        os.close(descriptor)
        raise


def read_regular(path: Path | str, *, limit_bytes: int = TEXT_LIMIT_BYTES) -> bytes:
    """Read a regular file that is not longer than `limit_bytes`; raises OSError, `NotRegularError` for others."""
    content = read_at_most(path, limit_bytes + 1)
    if len(content) > limit_bytes:
        raise _refused(path, f"it is longer than {limit_bytes} bytes")
    return content


def read_at_most(path: Path | str, size_bytes: int) -> bytes:
    """Read a regular file to its end, but no more than so many bytes; raises OSError as `open_regular` does.

    A pipe that was passed to this process may stand in its place.
    """
    pieces, left = [], size_bytes
    with Path(path).open("rb", buffering=0) if _is_passed_pipe(path) else open_regular(path) as file:
        while left:
            # Some files below /proc are regular and block; with O_NONBLOCK they raise.
            piece = os.read(file.fileno(), min(left, _PIECE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
    return b"".join(pieces)


def _is_passed_pipe(path: Path | str) -> bool:
    """Say whether a path means an open pipe without a name; standard input and output are not for this."""
    is_passed = _PASSED.fullmatch(str(path)) is not None
    return is_passed and Path(path).is_fifo() and str(Path(path).readlink()).startswith("pipe:")


def _check(found: os.stat_result, path: Path | str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise _refused(path, f"it is {kind}, and not a regular file")


def _refused(path: Path | str, text: str) -> NotRegularError:
    return NotRegularError(None, text, str(path))
