"""The starter's parent: it ends the starter with all tasks if a lease ends and the starter does not act.

The starter ends attempts whose lease has run out. A starter that is stopped, or waits for a disk, cannot; then the
watchdog does so, from outside the starter's process namespace and without using a disk. Both share a page of memory, in
which the starter writes the earliest end of a running attempt's lease, without a system call. The watchdog sleeps until
then and checks again. It imports little, because it stays in memory as long as the starter.
"""

import ctypes
import gc
import mmap
import os
import select
import signal
import time
from contextlib import suppress

from messiahs.executor.attempts import NEVER
from messiahs.executor.linux.kernel import adopt_orphans, be_named, boottime_ns, see_children_end

GRACE_NS = 2_000_000_000
"""Time after the end of a lease within which a working starter has ended its attempts."""
_UNTIL, _ARMED = 0, 1
_ABSOLUTE = 1
_NEW_PID, _NEW_USER = 0x20000000, 0x10000000
_LOCK_WHAT_IS_USED = 1 | 2 | 4
_SWEEP_SECONDS = 0.02
_SECOND_NS = 1_000_000_000
_CANNOT_ENTER = 4
_CAPABILITIES_VERSION = 0x20080522


class Watch:
    """The starter's access to its watchdog."""

    def __init__(self, words: memoryview, bell: int) -> None:
        self._words, self._bell = words, bell

    def set(self, until: int) -> None:
        """Let the watchdog act soon after `until` (CLOCK_BOOTTIME, nanoseconds), unless another instant is set."""
        if until != self._words[_UNTIL]:
            self._words[_UNTIL] = until
            if until < self._words[_ARMED]:
                # The watchdog sleeps longer than that. Without a watchdog the starter continues.
                with suppress(OSError):
                    os.write(self._bell, b"\0")

    def lower(self, until: int) -> None:
        """Let the watchdog act soon after `until` at the latest."""
        if until < self._words[_UNTIL]:
            self.set(until)


def be_watched(*, in_namespace: bool) -> Watch:
    """Fork: the child returns, as init of its own process namespace with `in_namespace`; the parent watches it.

    The child of an ordinary account then has all capabilities within the user namespace around that, and drops them.
    The parent ends after the child, with its exit code, and after everything below it.
    """
    see_children_end()
    library = ctypes.CDLL(None, use_errno=True)
    words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
    words[_UNTIL] = words[_ARMED] = NEVER
    heard, bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    if in_namespace:
        _enter_namespace(library)
    gc.freeze()
    starter = os.fork()
    if starter == 0:
        gc.unfreeze()
        os.close(heard)
        return Watch(words, bell)
    os.close(bell)
    if in_namespace and os.geteuid():
        library.capset((ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Signals that ask all processes to end are handled by the starter.
        signal.signal(number, signal.SIG_IGN)
    be_named("messiahs-watch")
    # Processes that lose their parents become children of the watchdog when the starter is gone.
    adopt_orphans()
    os._exit(_Watchdog(library, starter, words, heard).run())


class _Watchdog:
    """Watches one child (mutable)."""

    def __init__(self, library: ctypes.CDLL, starter: int, words: memoryview, heard: int) -> None:
        self._library, self._starter, self._words, self._heard = library, starter, words, heard
        self._timer = library.timerfd_create(time.CLOCK_BOOTTIME, os.O_CLOEXEC | os.O_NONBLOCK)
        self._status: int | None = None
        self._poll = select.poll()
        self._handle = os.pidfd_open(starter)
        for descriptor in (self._handle, self._heard, self._timer):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> int:
        """Wait for the end of the starter, or end it; return its exit code."""
        _below(os.getpid())
        # All memory that it needs is in use by now, and is locked where that is allowed.
        self._library.mlockall(_LOCK_WHAT_IS_USED)
        while self._status is None:
            until = self._words[_UNTIL]
            self._words[_ARMED] = until
            self._arm(until)
            if self._words[_UNTIL] < until:
                continue
            if any(descriptor == self._heard for descriptor, _ in self._poll.poll()):
                self._listen()
            if boottime_ns() >= self._words[_UNTIL] + GRACE_NS:
                self._sweep()
            self._reap()
        self._sweep()
        return self._status & 0xFF

    def _arm(self, until: int) -> None:
        at = 0 if until >= NEVER else until + GRACE_NS
        seconds, nanoseconds = divmod(at, _SECOND_NS)
        when = (ctypes.c_long * 4)(0, 0, seconds, nanoseconds)
        self._library.timerfd_settime(self._timer, _ABSOLUTE, when, None)

    def _listen(self) -> None:
        if not os.read(self._heard, 4096):
            # The starter is ending.
            self._poll.unregister(self._heard)

    def _reap(self) -> bool:
        """Reap ended processes; False if there is no child any more."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._starter:
                    self._status = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            return False
        return True

    def _sweep(self) -> None:
        """Kill all descendants until none is left, because the starter may not react to a signal yet."""
        while self._reap():
            for process, parent in _below(os.getpid()).items():
                _kill(process, parent)
            select.select([], [], [], _SWEEP_SECONDS)


def _below(ancestor: int) -> dict[int, int]:
    """Return all descendants of a process, each with its parent."""
    parents = {int(name): _parent_of(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208 - imports little
    found = {ancestor}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: parents[process] for process in found - {ancestor}}


def _kill(process: int, parent: int) -> None:
    """Kill a process that still has that parent; a later process with its number is not hit."""
    with suppress(OSError):
        handle = os.pidfd_open(process)
        try:
            if _parent_of(str(process)) == parent:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _parent_of(name: str) -> int:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
            text = file.read(4096)
        return int(text[text.rfind(b")") + 2 :].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _enter_namespace(library: ctypes.CDLL) -> None:
    """Make the next child the init of a process namespace; without root that needs a user namespace around it."""
    uid, gid = os.geteuid(), os.getegid()
    if library.unshare(_NEW_PID | (_NEW_USER if uid else 0)) != 0:
        os.write(2, f"no process namespace: {os.strerror(ctypes.get_errno())}\n".encode())
        os._exit(_CANNOT_ENTER)
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - as above
                file.write(text)
