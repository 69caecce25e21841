"""Who waits for more in a file is woken when somebody writes (inotify), instead of looking again and again."""

import asyncio
import ctypes
import errno
import os
import struct
from collections import defaultdict
from typing import Final

_MODIFY: Final = 0x2
_NONBLOCK: Final = os.O_NONBLOCK
_CLOEXEC: Final = os.O_CLOEXEC
_EVENT: Final = struct.Struct("=iIII")
"""The number of a watch, what happened, a cookie, and the length of a name that follows (`struct inotify_event`)."""
_READ_BYTES: Final = 65_536


class FileChanges:
    """The watched files of a process, with one descriptor for all (mutable). Belongs to the event loop."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = -1
        self._watches: defaultdict[int, set[Watch]] = defaultdict(set)

    def watch(self, descriptor: int) -> "Watch":
        """Watch an open file from now on; raises `OSError` where the kernel has no more watches."""
        if self._descriptor < 0:
            self._descriptor = self._checked(self._libc.inotify_init1(_NONBLOCK | _CLOEXEC))
            asyncio.get_running_loop().add_reader(self._descriptor, self._wake)
        # By the open file, not by its name: nobody can put another one in its place.
        path = f"/proc/self/fd/{descriptor}".encode()
        number = self._checked(self._libc.inotify_add_watch(self._descriptor, path, _MODIFY))
        made = Watch(self, number)
        self._watches[number].add(made)
        return made

    def forget(self, watch: "Watch") -> None:
        """End a watch; the last one of a file ends that of the kernel."""
        watches = self._watches.get(watch.number, set())
        watches.discard(watch)
        if not watches and self._watches.pop(watch.number, None) is not None:
            # The kernel has ended that of a deleted file itself.
            self._libc.inotify_rm_watch(self._descriptor, watch.number)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        self._watches.clear()

    def _wake(self) -> None:
        try:
            events = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        at, changed = 0, dict[int, None]()
        while at < len(events):
            number, _, _, name_bytes = _EVENT.unpack_from(events, at)
            changed[number] = None
            at += _EVENT.size + name_bytes
        # -1: the kernel had no room for more events, and any file may have changed.
        for number in self._watches if -1 in changed else changed:
            for watch in self._watches.get(number, ()):
                watch.wake()

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno() or errno.EIO
            raise OSError(number, os.strerror(number))
        return result


class Watch:
    """A watched file (mutable)."""

    def __init__(self, changes: FileChanges, number: int) -> None:
        self.number, self.has_changed = number, asyncio.Event()
        self._changes = changes

    async def changed(self) -> None:
        """Wait until somebody has written since the last call, or until `wake`."""
        await self.has_changed.wait()
        self.has_changed.clear()

    def wake(self) -> None:
        """End the wait of `changed`, or the next one."""
        self.has_changed.set()

    def close(self) -> None:
        """End the watch; repeated calls are allowed."""
        self._changes.forget(self)
