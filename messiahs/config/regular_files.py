"""Reading files that a user named: only regular files of bounded size.

A FIFO has no end until its writer closes it, a device may have none, and opening a device can change its state. Only
one kind of pipe is accepted: one that the caller opened for this command, as `<(command)` in a shell.
"""

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, Final

TEXT_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Sufficient for every file that an administrator or a user writes by hand or by a script."""
_PIECE_BYTES: Final = 1024 * 1024
# The path may refer to something else when it is opened, so opening must not block either.
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
    """The file is not regular, or it is too long; `strerror` gives the reason."""

    def __str__(self) -> str:
        """Return the file's name and the reason; there is no error number."""
        return f"{self.filename}: {self.strerror}"


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file for reading, unbuffered; raises OSError, and `NotRegularError` for anything else."""
    # Checked first, because opening a device may have an effect.
    _check(Path(path).stat(), path)
    descriptor = os.open(path, _READING)
    try:
        _check(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb", buffering=0)
    except OSError:
        os.close(descriptor)
        raise


def read_regular(path: Path | str, *, limit_bytes: int = TEXT_LIMIT_BYTES) -> bytes:
    """Read a regular file of at most `limit_bytes`; raises OSError, and `NotRegularError` for anything else."""
    content = read_at_most(path, limit_bytes + 1)
    if len(content) > limit_bytes:
        raise _refused(path, f"it is longer than {limit_bytes} bytes")
    return content


def read_at_most(path: Path | str, size_bytes: int) -> bytes:
    """Read a regular file to its end, but at most `size_bytes`; raises OSError as `open_regular` does.

    A pipe that was passed to this process is also accepted.
    """
    pieces, left = [], size_bytes
    with Path(path).open("rb", buffering=0) if _is_passed_pipe(path) else open_regular(path) as file:
        while left:
            # Some regular files below /proc block; with O_NONBLOCK they raise instead.
            piece = os.read(file.fileno(), min(left, _PIECE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
    return b"".join(pieces)


def _is_passed_pipe(path: Path | str) -> bool:
    """Whether a path refers to an open unnamed pipe, other than standard input and output."""
    is_passed = _PASSED.fullmatch(str(path)) is not None
    return is_passed and Path(path).is_fifo() and str(Path(path).readlink()).startswith("pipe:")


def _check(found: os.stat_result, path: Path | str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "of an unknown type")
        raise _refused(path, f"it is {kind}, not a regular file")


def _refused(path: Path | str, text: str) -> NotRegularError:
    return NotRegularError(None, text, str(path))
