"""Time since the console of this machine was last used (MESSIAHS 2: owners have priority on their own machines).

The kernel records when a terminal was last read, to within 8 s. It records nothing about keyboards and mice, and a
graphical session reads no terminal. A session monitor can touch a file instead; if the topology names that file, it is
used in place of the terminals.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TERMINALS = (
    ("/dev", re.compile(r"console|tty\d+|ttyS\d+").fullmatch),
    ("/dev/pts", re.compile(r"\d+").fullmatch),
)


def keyboard_idle_seconds(console: Path | None) -> int | None:
    """Return whole seconds since the last use; None if unknown.

    With `console`, only that file counts: its last read or write. A clock that was set back counts as use.
    """
    used = list(_used_at()) if console is None else list(_touched_at(console))
    return max(0, int(time.time() - max(used))) if used else None


def _touched_at(path: Path) -> Iterator[float]:
    with suppress(OSError):
        found = path.stat()
        yield max(found.st_atime, found.st_mtime)


def _used_at() -> Iterator[float]:
    """Yield the time at which each terminal was last read; writing to a terminal is not use of its keyboard.

    A terminal that was never read has its creation time, which is no use either and is skipped.
    """
    for folder, is_terminal in _TERMINALS:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if is_terminal(entry.name):
                    with suppress(OSError):
                        found = entry.stat()
                        # Reading changes only the access time; creation and login change the other times, too.
                        if found.st_atime > found.st_ctime:
                            yield found.st_atime
