"""Identifying a process so that a later one with the same number is never mistaken for it."""

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

_READ_BYTES = 1 << 16
_GROUP, _START_TIME = 2, 19
"""Positions of the fields after the program's name."""
_GONE_STATES = (b"Z", b"X")


class Standing(NamedTuple):
    """Content of a stat file: the letter of the process's state, its process group, and its start time in ticks."""

    state: bytes
    group: bytes
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process of this machine; `started` is its start time in ticks since boot, as in its stat file."""

    pid: int
    started: int


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return the process that has a number now; None if there is none, or only a zombie.

    Numbers are those of the namespace in which /proc was mounted.
    """
    found = standing_of(b"%d" % pid)
    return None if found is None or found.state in _GONE_STATES else ProcessIdentity(pid=pid, started=found.started)


def standing_of(name: bytes) -> Standing | None:
    """Read the state of a process in /proc, also of a zombie; None if it is gone."""
    try:
        with open(b"/proc/%s/stat" % name, "rb") as file:  # noqa: PTH123 - read for thousands
            text = file.read(_READ_BYTES)
    except OSError:
        return None
    # The program's name is in parentheses and may contain anything, including parentheses, blanks and partial letters.
    fields = text[text.rfind(b")") + 2 :].split()
    return Standing(fields[0], fields[_GROUP], int(fields[_START_TIME])) if fields else None


def program_of(name: bytes) -> str:
    """Return the name that a process in /proc has for its program, which can be any text; empty if it is gone."""
    try:
        with open(b"/proc/%s/comm" % name, "rb") as file:  # noqa: PTH123 - no path
            return file.read(_READ_BYTES).decode(errors="replace").removesuffix("\n")
    except OSError:
        return ""


def numbers_of(name: bytes) -> list[int]:
    """Return the numbers of a process, or thread, from the namespace of /proc inwards; empty if it is gone."""
    try:
        with open(b"/proc/%s/status" % name, "rb") as file:  # noqa: PTH123 - no path
            for line in file:
                if line.startswith(b"NSpid:"):
                    return [int(number) for number in line.split()[1:]]
    except OSError:
        pass
    return []


def signal_if(pid: int, number: int, is_meant: Callable[[], bool], /) -> None:
    """Send a signal to the process with a number, if `is_meant` confirms that it is the right one.

    Nothing happens if there is no such process, or it may not be signalled.
    """
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # The handle was opened before the check, so it cannot refer to another process.
            if is_meant():
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this process runs; a process that is exiting counts until all of its threads are gone."""
    return identity_of(identity.pid) == identity


def kill(identity: ProcessIdentity) -> None:
    """Send SIGKILL to this process; nothing happens if it is gone."""
    signal_if(identity.pid, signal.SIGKILL, lambda: is_alive(identity))


def wait_until_gone(identity: ProcessIdentity, timeout_ns: int) -> bool:
    """Wait until this process has ended; False after the timeout.

    The init of a process namespace ends only with the whole namespace.
    """
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return True
    try:
        if not is_alive(identity):
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(timeout_ns // 1_000_000))
    finally:
        os.close(handle)
