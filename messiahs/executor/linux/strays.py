"""Finding remains of a task: descendants that left its process group, and processes of an earlier starter.

The starter adopts every orphan of its tasks. An orphan is recognised by the mark of its attempt
(`starter/attempt_marks.py`), by its inherited `TMPDIR`, or by its working directory; the last two name the folder of
one attempt only.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from messiahs.executor.linux.processes import numbers_of, standing_of

_READ_BYTES = 1 << 16
_NEARLY_A_PAGE = 3500
"""The kernel returns a list in pages; a shorter piece is the whole list."""


class Child(NamedTuple):
    """A child: its number in the starter's namespace, and its start time in ticks."""

    number: int
    started: int


class Children:
    """The starter's children, as the kernel lists them; what is known about each is remembered.

    /proc may use other numbers for processes than the starter's namespace. A child keeps both numbers until it is
    reaped, so each is translated once.
    """

    def __init__(self) -> None:
        own = os.readlink("/proc/self")  # noqa: PTH115 - a name, not a path
        self._level = len(numbers_of(os.fsencode(own))) - 1
        """Position of the starter's namespace among those for which /proc lists numbers."""
        self._known: dict[bytes, Child] = {}
        self._names: dict[int, bytes] = {}
        self._lists: dict[str, int] = {}
        # Without this list, processes that leave their group end only with the starter.
        with suppress(OSError):
            self._list(f"{own}/task/{own}")

    def known(self) -> dict[bytes, Child]:
        """Return every child, including zombies, by its number in /proc. Raises `OSError`."""
        found = {}
        for name in self.listed():
            child = self._known.get(name) or self._asked(name)
            if child is not None:
                found[name] = child
        return found

    def reaped(self, number: int) -> bytes | None:
        """Note that a child is gone and its numbers may be reused; return its number in /proc, if known."""
        name = self._names.pop(number, None)
        if name is not None:
            del self._known[name]
        return name

    def name_of(self, number: int) -> bytes | None:
        """Return the number in /proc of a child that is not reaped yet; None if it cannot be found."""
        if number not in self._names:
            with suppress(OSError):
                self.known()
        return self._names.get(number)

    def own_number(self, name: bytes) -> int:
        """Translate a number in /proc to the starter's namespace; 0 if the process is gone.

        A process in a nested namespace has more numbers, and the last one may belong to another process here.
        """
        numbers = numbers_of(name)
        return numbers[self._level] if len(numbers) > self._level else 0

    def _asked(self, name: bytes) -> Child | None:
        number, standing = self.own_number(name), standing_of(name)
        if not number or standing is None:
            return None
        self._names[number] = name
        child = self._known[name] = Child(number, standing.started)
        return child

    def listed(self) -> list[bytes]:
        """Return the numbers in /proc of all children, including zombies. Raises `OSError`."""
        return [name for file in self._lists.values() for name in _listed_in(file)]

    def add_thread(self) -> None:
        """List the children of the calling thread, too: the kernel lists those of each thread by themselves.

        Those of threads that have ended are children of another one. Raises `OSError`.
        """
        own = os.readlink("/proc/thread-self")  # noqa: PTH115 - a name, not a path
        for thread in [*self._lists]:
            if thread == own or not os.path.exists(f"/proc/{thread}"):  # noqa: PTH110 - as above
                os.close(self._lists.pop(thread))
        self._list(own)

    def _list(self, thread: str) -> None:
        self._lists[thread] = os.open(f"/proc/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)


def _listed_in(file: int) -> list[bytes]:
    names = piece = os.pread(file, _READ_BYTES, 0)
    while len(piece) > _NEARLY_A_PAGE:
        piece = os.pread(file, _READ_BYTES, len(names))
        names += piece
    return names.split()


def belongs_to(proc_number: bytes, prefix: bytes) -> bytes | None:
    """Return the folder below `prefix` to which a process belongs; None if it shows none."""
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
    """Yield every process, except this one, that belongs to a folder below `prefix`.

    Useful only to a process in the namespace of /proc.
    """
    own = str(os.getpid()).encode()
    for entry in os.listdir(b"/proc"):  # noqa: PTH208 - names, not paths
        if entry.isdigit() and entry != own and belongs_to(entry, prefix) is not None:
            yield int(entry)
