"""Naming a process so that a later one with the same number is never taken for it."""

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

_READ_BYTES = 1 << 16
_GROUP, _START_TIME = 2, 19
"""Their places behind the program's name."""
_GONE_STATES = (b"Z", b"X")


class Standing(NamedTuple):
    """What a stat file says: a letter for what the process does, its group's leader, and when it started in ticks."""

    state: bytes
    group: bytes
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process of this machine: `started` is its start time in ticks since boot, as its stat file says it."""

    pid: int
    started: int


def identity_of(pid: int) -> ProcessIdentity | None:
    """Say who has a number now; None if nobody has, or only a dead process that was not reaped yet.

    Numbers are those of the namespace in which /proc was mounted.
    """
    found = standing_of(b"%d" % pid)
    return None if found is None or found.state in _GONE_STATES else ProcessIdentity(pid=pid, started=found.started)


def standing_of(name: bytes) -> Standing | None:
    """Read what the process of a number in /proc is and does, also of a dead one that was not reaped; None if gone."""
    try:
        with open(b"/proc/%s/stat" % name, "rb") as file:  # noqa: PTH123 - read for thousands
            text = file.read(_READ_BYTES)
    except OSError:
        return None
    # The program's name stands in parentheses and may hold anything, also parentheses, blanks and halves of letters.
    fields = text[text.rfind(b")") + 2 :].split()
    return Standing(fields[0], fields[_GROUP], int(fields[_START_TIME])) if fields else None


def signal_if(pid: int, number: int, is_meant: Callable[[], bool], /) -> None:
    """Send a signal to the process that has a number, if `is_meant` says so once no other can be hit.

    Nothing happens if nobody has the number, or it may not be signalled.
    """
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # The handle keeps its meaning: checked after it was opened, it can hit no other process.
            if is_meant():
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def is_alive(identity: ProcessIdentity) -> bool:
    """Say whether that very process runs (a process that ends counts until all of it is gone)."""
    return identity_of(identity.pid) == identity


def kill(identity: ProcessIdentity) -> None:
    """Send SIGKILL to that very process; nothing happens if it is gone."""
    signal_if(identity.pid, signal.SIGKILL, lambda: is_alive(identity))


def wait_until_gone(identity: ProcessIdentity, timeout_ns: int) -> bool:
    """Wait until that very process has ended; False if it has not by then.

    An init of a process namespace has ended only when the whole namespace has.
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
