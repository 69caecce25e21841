"""Standard input that a task would not get: what waits there must not be lost without a word.

Tasks have no standard input yet. A file or a socket with data for this process alone is refused, and so is a pipe into
which somebody can still write. What the parent process has as its standard input, too, is left to the parent: in
`while read name; do messiahs run …; done` the loop reads the next line from it.
"""

import fcntl
import os
import select
import stat
import struct
import sys
import termios
from contextlib import suppress
from typing import Final

import click

_STDIN: Final = 0
_TOLD: Final = "tasks have no standard input yet"
_REMEDY: Final = "save it in a file and pass that with `--input FILE`, or add `</dev/null` to do without it"
_HANG_UP_WAIT_MS: Final = 1_000
"""How long the writer of an empty pipe may take to close it: it often ends at the same time as this process starts."""


def refuse_input() -> None:
    """Raise a usage error if data for this process alone waits at standard input, or can still come from a pipe."""
    if _is_open_pipe() and not has_unread_input():
        raise click.UsageError(f"standard input is a pipe that may still bring data, and {_TOLD}: {_REMEDY}")
    if has_unread_input():
        raise click.UsageError(f"there is data on standard input, and {_TOLD}: {_REMEDY}")


def tell_of_lost_input() -> None:
    """Say on stderr that data has come since it was looked for."""
    if has_unread_input():
        with suppress(OSError):
            click.echo(f"messiahs: the data on standard input was not used: {_TOLD}; use `--input FILE`", err=True)


def has_unread_input() -> bool:
    """Say whether standard input is a file or a pipe that holds data, and is not the parent's, too."""
    if sys.stdin is None:
        return False
    try:
        found = os.fstat(_STDIN)
        return _unread_bytes(found) > 0 and not _is_the_parents(found)
    except OSError:
        return False


def _is_open_pipe() -> bool:
    """Say whether standard input is a pipe of this process alone that its writers keep open."""
    if sys.stdin is None:
        return False
    try:
        found = os.fstat(_STDIN)
        if not stat.S_ISFIFO(found.st_mode) or _is_the_parents(found):
            return False
    except OSError:
        return False
    poll = select.poll()
    poll.register(_STDIN, select.POLLIN)
    # Either data comes, or the last writer hangs up.
    return not any(events & select.POLLHUP for _, events in poll.poll(_HANG_UP_WAIT_MS))


def _unread_bytes(found: os.stat_result) -> int:
    if stat.S_ISREG(found.st_mode):
        return found.st_size - os.lseek(_STDIN, 0, os.SEEK_CUR)
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode):
        (count,) = struct.unpack("i", fcntl.ioctl(_STDIN, termios.FIONREAD, bytes(4)))
        return int(count)
    return 0


def _is_the_parents(found: os.stat_result) -> bool:
    try:
        other = os.stat(f"/proc/{os.getppid()}/fd/{_STDIN}")  # noqa: PTH116 - a link of /proc, which is no path
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)
