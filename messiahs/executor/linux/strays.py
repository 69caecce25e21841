"""Finding what a task left behind: descendants that left its process group, and what an earlier starter left.

The starter adopts every orphan of its tasks. An orphan is recognised by the mark of its attempt (`marks.py`), by the
`TMPDIR` that it inherited, or by its working directory; the last two name the folder of one attempt only.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from messiahs.executor.linux.processes import standing_of

_READ_BYTES = 1 << 16
_NEARLY_A_PAGE = 3500
"""The kernel gives a list in pages; a shorter piece is all of it."""


class Child(NamedTuple):
    """A child: its number in the starter's own namespace, and when it started, in ticks."""

    number: int
    started: int


class Children:
    """The starter's own children, as the kernel lists them (it remembers what it learned of them).

    /proc may name processes by other numbers than the starter's own namespace does. A child keeps both of its numbers
    until it was reaped, so each is asked once.
    """

    def __init__(self) -> None:
        own = os.readlink("/proc/self")  # noqa: PTH115 - a name, not a path
        self._level = len(_numbers(os.fsencode(own))) - 1
        """The place of the starter's own namespace among those in which /proc names a process."""
        self._known: dict[bytes, Child] = {}
        self._names: dict[int, bytes] = {}
        try:
            self._list = os.open(f"/proc/{own}/task/{own}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # A kernel without this list: what leaves its group is ended with the starter only.
            self._list = -1

    def known(self) -> dict[bytes, Child]:
        """Give every child, also the dead ones that were not reaped, by its number in /proc. Raises `OSError`."""
        found = {}
        for name in self.listed():
            child = self._known.get(name) or self._asked(name)
            if child is not None:
                found[name] = child
        return found

    def reaped(self, number: int) -> bytes | None:
        """Take note that a child is gone and its numbers may be used again; say what it was in /proc, if known."""
        name = self._names.pop(number, None)
        if name is not None:
            del self._known[name]
        return name

    def own_number(self, name: bytes) -> int:
        """Translate a number of /proc to the starter's own namespace; 0 if the process is gone.

        A process in a further namespace below has more numbers, and the last one may be anybody's here.
        """
        numbers = _numbers(name)
        return numbers[self._level] if len(numbers) > self._level else 0

    def _asked(self, name: bytes) -> Child | None:
        number, standing = self.own_number(name), standing_of(name)
        if not number or standing is None:
            return None
        self._names[number] = name
        child = self._known[name] = Child(number, standing.started)
        return child

    def listed(self) -> list[bytes]:
        """Name all children, also the dead ones that were not reaped, by their numbers in /proc. Raises `OSError`."""
        if self._list < 0:
            return []
        names = piece = os.pread(self._list, _READ_BYTES, 0)
        while len(piece) > _NEARLY_A_PAGE:
            piece = os.pread(self._list, _READ_BYTES, len(names))
            names += piece
        return names.split()


def _numbers(name: bytes) -> list[int]:
    """Give the numbers of a process, from the namespace of /proc inwards; none if it is gone."""
    try:
        with open(b"/proc/%s/status" % name, "rb") as file:  # noqa: PTH123 - once per stray
            for line in file:
                if line.startswith(b"NSpid:"):
                    return [int(number) for number in line.split()[1:]]
    except OSError:
        pass
    return []


def belongs_to(proc_number: bytes, prefix: bytes) -> bytes | None:
    """Name the folder below `prefix` to which a process belongs; None if it shows none."""
    try:
        with open(b"/proc/%s/environ" % proc_number, "rb") as file:  # noqa: PTH123 - once per stray
            variables = file.read(1 << 20)
        for variable in variables.split(b"\0"):
            if variable.startswith(b"TMPDIR=" + prefix):
                return variable[len(b"TMPDIR=") + len(prefix) :].split(b"/", 1)[0]
        folder = os.readlink(b"/proc/%s/cwd" % proc_number)  # noqa: PTH115 - as above
    except OSError:
        return None
    return folder[len(prefix) :].split(b"/", 1)[0] if folder.startswith(prefix) else None


def all_below(prefix: bytes) -> Iterator[int]:
    """Name every process, but the asking one, that belongs to a folder below `prefix`.

    Of use only to a process that has the numbers of /proc itself.
    """
    own = str(os.getpid()).encode()
    for entry in os.listdir(b"/proc"):  # noqa: PTH208 - names, not paths
        if entry.isdigit() and entry != own and belongs_to(entry, prefix) is not None:
            yield int(entry)
