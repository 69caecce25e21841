"""Shared memory, semaphores and message queues of a slot's tasks: all of them are in one namespace of the kernel.

A new namespace costs more than a look at the lists of its objects, and most tasks create none.
"""

import os
from contextlib import suppress
from typing import Final

from messiahs.executor.linux import namespaces

_LISTS: Final = ("/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/sysvipc/shm")
"""Each has a title, and a line for each object."""
_LIST_BYTES: Final = 4096
_PLACE: Final = "/tmp"  # noqa: S108 - that of the sandbox


class SharedObjects:
    """The objects in the namespace of this process (mutable)."""

    def __init__(self) -> None:
        self._lists: list[int] = []
        self._queues, self._no_queues_bytes = -1, 0
        self._open()

    def remove(self) -> None:
        """Have none: enter a new namespace, unless the present one is empty. Raises `OSError`."""
        if self._is_empty():
            return
        namespaces.unshare(namespaces.NEW_IPC)
        self._close()
        self._open()

    def _is_empty(self) -> bool:
        """Whether there are no objects; False if that cannot be found out."""
        if self._queues < 0 or os.fstat(self._queues).st_size != self._no_queues_bytes:
            return False
        return all(os.pread(file, _LIST_BYTES, 0).count(b"\n") == 1 for file in self._lists)

    def _open(self) -> None:
        with suppress(OSError):
            # An open list stays that of the namespace in which it was opened.
            self._lists = [os.open(name, os.O_RDONLY | os.O_CLOEXEC) for name in _LISTS]
            # The queues are a file system. Its root grows with every queue, as on every file system in memory.
            namespaces.mount("queues", _PLACE, kind="mqueue")
            try:
                self._queues = os.open(_PLACE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._no_queues_bytes = os.fstat(self._queues).st_size
            finally:
                namespaces.unmount(_PLACE)

    def _close(self) -> None:
        for file in (*self._lists, self._queues):
            if file >= 0:
                os.close(file)
        self._lists, self._queues = [], -1
