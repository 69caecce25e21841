"""Why a module that runs does not answer: whether its process is stopped, busy or frozen. Not in the papers."""

import http.client
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.client.local_sockets import connected

_STOPPED_STATES: Final = (b"T", b"t")
_RUNNING_STATE: Final = b"R"
_BLOCKED_STATE: Final = b"D"
_CPU_FIELDS: Final = slice(11, 13)
"""User and system time in clock ticks, counted from the state of the process."""
_WATCHED_SECONDS: Final = 2.0
_BUSY_SHARE: Final = 0.02
"""A daemon that uses a smaller share of a core while a request waits is not working on that request."""
FROZEN_AFTER_SECONDS: Final = 30.0
"""A process is advised to be killed after so long a silence, and not before."""


@dataclass(frozen=True, slots=True)
class _ProcessSample:
    """A process at one time: the letter of its state, and the processor time used since its start."""

    state: bytes
    cpu_seconds: float


def silence_of(path: Path, process: int | None, *, silent_seconds: float = 0.0) -> str:
    """Return why the module behind a socket has not answered a request for `silent_seconds`, and what to do.

    Watches its process for seconds, unless that is stopped, and sends another request meanwhile. `process` is None if
    it cannot be seen from here. Only a process that does nothing and answers nothing is to be killed.
    """
    text = f"the module `{path.stem}` does not answer"
    before = None if process is None else _sampled(process)
    if before is not None and before.state in _STOPPED_STATES:
        return f"{text}: its process {process} is stopped; `kill -CONT {process}` lets it go on"
    began = time.monotonic()
    if _answers(path, _WATCHED_SECONDS):
        return f"{text} this request yet, and it answers others: it is busy; try again later"
    after = None if process is None else _sampled(process)
    if before is None or after is None:
        return f"{text}: its process is frozen or busy; try again later"
    watched_seconds, used_seconds = time.monotonic() - began, after.cpu_seconds - before.cpu_seconds
    states = {before.state, after.state}
    # On a loaded machine, a process may wait for a core and use no time.
    if used_seconds >= _BUSY_SHARE * watched_seconds or _RUNNING_STATE in states:
        share = f"{100 * used_seconds / watched_seconds:.0f} % of a core"
        return f"{text} yet: its process {process} is busy ({share}); try again later"
    if _BLOCKED_STATE in states:
        return f"{text}: its process {process} waits for a disk or a file server; try again when that answers"
    idle = f"{text}: its process {process} does nothing"
    if silent_seconds < FROZEN_AFTER_SECONDS:
        return f"{idle}; try again later"
    return (
        f"{idle} and has not answered for {silent_seconds:.0f} s: it is frozen; end it with `kill -KILL {process}` and "
        f"start it again (`messiahs module run {path.stem}`; after `messiahs up`, and under systemd, it is started "
        "again)"
    )


def is_stopped(process: int) -> bool:
    """Whether a process was stopped by a signal or a debugger, so that it answers nothing until it is continued."""
    found = _sampled(process)
    return found is not None and found.state in _STOPPED_STATES


def _sampled(process: int) -> _ProcessSample | None:
    try:
        text = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    # The program's name is in parentheses and may contain anything.
    fields = text[text.rfind(b")") + 2 :].split()
    return _ProcessSample(fields[0], sum(map(int, fields[_CPU_FIELDS])) / os.sysconf("SC_CLK_TCK"))


def _answers(path: Path, seconds: float) -> bool:
    """Watch for `seconds`, or until the module answers another request."""
    until = time.monotonic() + seconds
    connection = http.client.HTTPConnection("localhost")
    try:
        # http.client opens no connection of its own when it has a socket.
        connection.sock = module = connected(path, seconds=seconds)
        module.settimeout(max(until - time.monotonic(), 0.01))
        connection.request("GET", "/v1/module")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        # What the process does is sampled over all of the time.
        time.sleep(max(0.0, until - time.monotonic()))
        return False
    finally:
        connection.close()
    return True
