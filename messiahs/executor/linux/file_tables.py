"""Telling which threads share one table of open files, by `kcmp`: most share it with all threads of their process."""

import ctypes
import os
from typing import Final

from messiahs.executor.linux.processes import numbers_of

_COMPARE: Final = {"x86_64": 312, "aarch64": 272}
_FILES: Final = 2
_SAME, _BEFORE, _AFTER = 0, 1, 2
"""What `kcmp` returns; it puts all tables in an order, and fails with -1."""


class FileTables:
    """The tables of files of those threads of a process that were asked about (mutable).

    Some machines do not let processes compare tables; there each thread has one of its own, as far as this can say.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._call = _COMPARE.get(os.uname().machine)
        self._level = len(numbers_of(b"self")) - 1
        """Position of this process's namespace, whose numbers `kcmp` takes, among those for which /proc lists any."""
        self._threads: list[int] = []
        """One thread for each table, in the order of the tables."""

    def begin(self) -> None:
        """Forget all threads: those of another process follow. Numbers of the former may be reused meanwhile."""
        self._threads.clear()

    def is_new(self, name: bytes) -> bool:
        """Return whether no earlier thread is known to have the table of this one; `name` is its folder in /proc."""
        thread = self._number(name)
        if not thread or self._compared(thread, thread) != _SAME:
            return True
        first, last = 0, len(self._threads)
        while first < last:
            middle = (first + last) // 2
            order = self._compared(self._threads[middle], thread)
            if order == _SAME:
                return False
            if order == _BEFORE:
                first = middle + 1
            elif order == _AFTER:
                last = middle
            else:
                # This one has ended meanwhile.
                del self._threads[middle]
                first, last = 0, len(self._threads)
        self._threads.insert(first, thread)
        return True

    def _number(self, name: bytes) -> int:
        """Translate a thread's number in /proc to the namespace of this process; 0 if it cannot be found."""
        if self._level == 0:
            return int(name.rpartition(b"/")[2])
        numbers = numbers_of(name)
        return numbers[self._level] if 0 < self._level < len(numbers) else 0

    def _compared(self, one: int, other: int, /) -> int:
        if self._call is None:
            return -1
        result: int = self._library.syscall(self._call, one, other, _FILES, ctypes.c_ulong(0), ctypes.c_ulong(0))
        return result
