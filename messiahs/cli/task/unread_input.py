"""Refuse standard input that would be lost, since only the tasks of `run` have a standard input.

A file or socket with unread data for this process alone is refused, and so is a pipe that still has a writer. A
standard input shared with the parent process is left to the parent: in `while read name; do messiahs submit …;
done` the loop reads the next line from it.
"""

import fcntl
import os
import select
import stat
import struct
import sys
import termios
from typing import Final

import click

STDIN: Final = 0
_NO_STDIN: Final = "a submitted task has no standard input"
_REMEDY: Final = (
    "use `messiahs run`, save it to a file and pass `--input FILE`, or add `</dev/null` to submit without it"
)
_HANG_UP_WAIT_MS: Final = 1_000
"""How long the writer of an empty pipe may take to close it; it often ends just as this process starts."""


def refuse_input() -> None:
    """Raise a usage error if unread data for this process alone is on standard input, or may still come from a pipe."""
    if _is_open_pipe() and not _has_unread_input():
        raise click.UsageError(f"standard input is a pipe that is still open, and {_NO_STDIN}: {_REMEDY}")
    if _has_unread_input():
        raise click.UsageError(f"there is data on standard input, and {_NO_STDIN}: {_REMEDY}")


def _has_unread_input() -> bool:
    """Return whether standard input is a file, pipe or socket with unread data that is not shared with the parent."""
    if sys.stdin is None:
        return False
    try:
        found = os.fstat(STDIN)
        return unread_bytes(found) > 0 and not is_of_the_parent(found)
    except OSError:
        return False


def _is_open_pipe() -> bool:
    """Return whether standard input is a pipe of this process alone with a writer that keeps it open."""
    if sys.stdin is None:
        return False
    try:
        found = os.fstat(STDIN)
        if not stat.S_ISFIFO(found.st_mode) or is_of_the_parent(found):
            return False
    except OSError:
        return False
    poll = select.poll()
    poll.register(STDIN, select.POLLIN)
    # Either data comes, or the last writer hangs up.
    return not any(events & select.POLLHUP for _, events in poll.poll(_HANG_UP_WAIT_MS))


def unread_bytes(found: os.stat_result) -> int:
    """Return how many bytes wait on standard input, if it is a file, pipe or socket; else 0. Raises `OSError`."""
    if stat.S_ISREG(found.st_mode):
        return found.st_size - os.lseek(STDIN, 0, os.SEEK_CUR)
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode):
        (count,) = struct.unpack("i", fcntl.ioctl(STDIN, termios.FIONREAD, bytes(4)))
        return int(count)
    return 0


def is_of_the_parent(found: os.stat_result) -> bool:
    """Return whether the parent process has the same standard input."""
    try:
        other = os.stat(f"/proc/{os.getppid()}/fd/{STDIN}")  # noqa: PTH116 - a link of /proc, which is no path
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)
