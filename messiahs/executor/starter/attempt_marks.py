"""A mark that all processes of an attempt inherit, even if they change their group, environment and folder.

The mark is the soft limit on file locks (`RLIMIT_LOCKS`): the kernel has not enforced it since Linux 2.4.25, but
children inherit it and /proc shows it. The starter sets its own limit before it starts a task. A program that sets this
limit changes its mark, which no ordinary program does. If the hard limit, which only a privileged process can raise, is
too low, attempts are not marked and are recognised by other means only.
"""

import resource
from collections.abc import Container

_FILE_LOCKS = 10
"""`RLIMIT_LOCKS`, which the standard library lacks."""
_SHOWN = b"Max file locks"
_LARGEST = 1 << 62
_LEAST_ROOM = 1 << 23
"""Minimum hard limit: twice the number of processes that Linux allows, so that a free mark always exists."""

_DEGRADED = "the hard limit on file locks is {}, below {}: a process that hides its task ends only with the next one"


class Marks:
    """Marks of running attempts, each with the attempt's folder (mutable); no two share a mark."""

    def __init__(self) -> None:
        _, hard = resource.getrlimit(_FILE_LOCKS)
        self._hard = hard
        self._largest = _LARGEST if hard == resource.RLIM_INFINITY else hard
        self.degraded = "" if self._largest >= _LEAST_ROOM else _DEGRADED.format(hard, _LEAST_ROOM)
        """Why attempts are not marked; empty if they are."""
        self._last = 0
        self._folders: dict[int, str] = {}
        self._marks: dict[str, int] = {}

    def put_on(self, folder: str) -> None:
        """Mark every process that is started from now on as of this attempt, until the next call."""
        if self.degraded:
            return
        self._last = next_free(self._last, largest=self._largest, in_use=self._folders)
        resource.setrlimit(_FILE_LOCKS, (self._last, self._hard))
        self._folders[self._last] = folder
        self._marks[folder] = self._last

    def folder_of(self, name: bytes) -> str | None:
        """Return the folder of the running attempt whose mark a process has; None if there is none."""
        try:
            with open(b"/proc/%s/limits" % name, "rb") as file:  # noqa: PTH123 - once per stray
                for line in file:
                    if line.startswith(_SHOWN):
                        soft = line[len(_SHOWN) :].split()[0]
                        return self._folders.get(int(soft)) if soft.isdigit() else None
        except OSError:
            pass
        return None

    def forget(self, folder: str) -> None:
        """Release the mark of an attempt without remaining processes."""
        mark = self._marks.pop(folder, None)
        if mark is not None:
            self._folders.pop(mark, None)


def next_free(last: int, /, *, largest: int, in_use: Container[int]) -> int:
    """Return the next free mark after the last one; 1 follows the largest. At least one must be free."""
    mark = last % largest + 1
    while mark in in_use:
        mark = mark % largest + 1
    return mark
