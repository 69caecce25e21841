"""How long nobody has used the console of this machine (MESSIAHS 2: an owner comes first on his own machine).

The kernel notes when a terminal or an input device was last read. Desktops read neither, but run a command when a
session becomes idle or busy: it can touch a file, which is looked at instead if the topology names it.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_DEVICES = (
    ("/dev", re.compile(r"console|tty\d+|ttyS\d+").fullmatch),
    ("/dev/pts", re.compile(r"\d+").fullmatch),
    ("/dev/input", re.compile(r"event\d+").fullmatch),
)


def keyboard_idle_seconds(console: Path | None) -> int | None:
    """Give the whole seconds since the newest use; None if there is nothing that could tell.

    With `console` only that file counts, by when it was last written or read. A clock that was set back counts as use.
    """
    used = list(_used_at()) if console is None else list(_touched_at(console))
    return max(0, int(time.time() - max(used))) if used else None


def _touched_at(path: Path) -> Iterator[float]:
    with suppress(OSError):
        found = path.stat()
        yield max(found.st_atime, found.st_mtime)


def _used_at() -> Iterator[float]:
    """Say when each device was last read; what is written to a terminal is no use of its keyboard."""
    for folder, is_device in _DEVICES:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if is_device(entry.name):
                    with suppress(OSError):
                        yield entry.stat().st_atime
