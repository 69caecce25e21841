"""Naming a process so that a later one with the same number is never taken for it."""

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_FIELDS_BEFORE_STATE = 2
_START_TIME_FIELD = 22
_GONE_STATES = "ZX"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process of this machine: `started` is its start time in ticks since boot, as its stat file says it."""

    pid: int
    started: int


def identity_of(pid: int) -> ProcessIdentity | None:
    """Say who has a number now; None if nobody has, or only a dead process that was not reaped yet.

    Numbers are those of the namespace in which /proc was mounted.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The program's name stands in parentheses and may hold anything, also parentheses and blanks.
    fields = text[text.rindex(")") + 2 :].split()
    if fields[0] in _GONE_STATES:
        return None
    return ProcessIdentity(pid=pid, started=int(fields[_START_TIME_FIELD - _FIELDS_BEFORE_STATE - 1]))


def is_alive(identity: ProcessIdentity) -> bool:
    """Say whether that very process runs (a process that ends counts until all of it is gone)."""
    return identity_of(identity.pid) == identity


def kill(identity: ProcessIdentity) -> None:
    """Send SIGKILL to that very process; nothing happens if it is gone."""
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        # The handle keeps its meaning: checked after it was opened, it can hit no other process.
        if is_alive(identity):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


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
