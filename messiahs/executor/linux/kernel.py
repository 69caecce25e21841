"""System calls of Linux that Python does not offer: `prctl` for a process that is the parent of tasks."""

import ctypes
import os
import signal
import time

_SET_PARENT_DEATH_SIGNAL = 1
_SET_KEEP_CAPABILITIES = 8
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVILEGES = 38


def boottime_ns() -> int:
    """Return the time since boot, including sleep of the machine."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not needed here
        return file.read().strip()


def die_with_parent() -> None:
    """Be killed when the parent ends. A change of the uid undoes this, so call it afterwards."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent ends (pid 1 of a namespace always does)."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def see_children_end() -> None:
    """Undo an inherited setting to ignore the ends of children, with which no exit code can be read."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def give_up_new_privileges() -> None:
    """Make set-uid programs ineffective for this process and its descendants."""
    _prctl(_SET_NO_NEW_PRIVILEGES, 1)


def be_named(name: str) -> None:
    """Set the name of this process in listings, at most 15 letters."""
    library = ctypes.CDLL(None)
    library.prctl(_SET_NAME, name.encode(), 0, 0, 0)


def keep_capabilities(*, keeps: bool) -> None:
    """Keep, or drop, capabilities when this process changes from root to another account."""
    _prctl(_SET_KEEP_CAPABILITIES, int(keeps))


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
