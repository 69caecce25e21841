"""How long nobody has used the console of this machine (MESSIAHS 2: owners come first on their own machines).

The kernel notes when a terminal was last read, to within 8 s. Of keyboards and mice it notes nothing of that kind, and
a graphical session reads no terminal: what watches the session can touch a file, and that file is looked at instead if
the topology names it.
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
    """Say when each terminal was last read; what is written to it is no use of its keyboard.

    A terminal that nobody has read has the time of its creation instead, which says nothing of its use.
    """
    for folder, is_terminal in _TERMINALS:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if is_terminal(entry.name):
                    with suppress(OSError):
                        found = entry.stat()
                        # Reading moves the one alone; making a terminal, and giving it to who logs in, moves the other.
                        if found.st_atime > found.st_ctime:
                            yield found.st_atime
