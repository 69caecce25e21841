"""The accounts of the people at the console of this machine (MESSIAHS 2: owners have priority on their own machines).

Where the topology names a file that shows the use of the console, its owner is at the console. Elsewhere it is the
owner of a terminal of the machine itself: a login at a text console, a serial line or a graphical session gives that to
its account. Terminals of ssh and of windows show use of the machine, too (console.py), but nobody's right to it.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_TERMINAL: Final = re.compile(r"console|tty\d+|ttyS\d+")


def console_owners(console: Path | None, *, devices: Path = Path("/dev")) -> frozenset[int]:
    """Return the uids of the accounts at the console, without root; none if nobody is known.

    With `console`, only that file counts. It has to be a regular file, since whoever could put a link there would
    appoint others.
    """
    found = _owners_of_terminals(devices) if console is None else _owner_of(console, stat.S_ISREG)
    return frozenset(found) - {0}


def _owners_of_terminals(devices: Path) -> Iterator[int]:
    with suppress(OSError):
        for entry in sorted(devices.iterdir()):
            if _TERMINAL.fullmatch(entry.name):
                yield from _owner_of(entry, stat.S_ISCHR)


def _owner_of(path: Path, is_right: Callable[[int], bool]) -> Iterator[int]:
    with suppress(OSError):
        found = os.lstat(path)
        if is_right(found.st_mode):
            yield found.st_uid
