"""Pid files of a federation, and ending exactly the processes that they name, never one that reused a number."""

import errno
import json
import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import write_whole
from messiahs.executor.linux.processes import ProcessIdentity, identity_of, is_alive

PID_FILE: Final = "supervisor.pid"
DAEMON_FILES: Final = ("*/daemon.pid",)
_ALL_FILES = (*DAEMON_FILES, "*/starter.pid", "*/*/starter.pid")
_END_SECONDS = 20.0
_STARTER_END_SECONDS = 5.0


def recorded_process(path: Path) -> ProcessIdentity | None:
    """Return the running process that a pid file names, or None; a starter's file calls the start time `started`."""
    try:
        document = json.loads(path.read_bytes())
        started = document["start_time"] if "start_time" in document else document["started"]
        process = ProcessIdentity(pid=int(document["pid"]), started=int(started))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return process if is_alive(process) else None


def record_this_process(path: Path) -> None:
    """Write the pid file of this process atomically."""
    identity = identity_of(os.getpid())
    assert identity is not None
    content = json.dumps({"pid": identity.pid, "start_time": identity.started}).encode()
    try:
        write_whole(path, content)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        try:
            _overwrite(path, content)
        except FileNotFoundError:
            # Nothing has run here before, and the disk is the problem.
            raise error from None


def _overwrite(path: Path, content: bytes) -> None:
    """Overwrite an existing file, which needs no disk space; a crash meanwhile leaves an unreadable pid file."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def recorded_processes(directory: Path, patterns: Iterable[str] = _ALL_FILES) -> tuple[ProcessIdentity, ...]:
    """Return the running processes that the modules of a federation recorded."""
    paths = sorted(path for pattern in patterns for path in directory.glob(pattern))
    found = (recorded_process(path) for path in paths)
    return tuple(process for process in found if process is not None)


def end_processes(processes: Iterable[ProcessIdentity], *, seconds: float) -> None:
    """Send SIGTERM, wait, send SIGKILL to the remaining ones, and return when all are gone."""
    left = tuple(processes)
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, _STARTER_END_SECONDS)):
        handles = _signalled(left, number)
        deadline = time.monotonic() + patience
        for handle in handles:
            ending = select.poll()
            ending.register(handle, select.POLLIN)
            ending.poll(max(0.0, deadline - time.monotonic()) * 1000)
            os.close(handle)
        left = tuple(process for process in left if is_alive(process))


def end_modules(directory: Path) -> None:
    """End every remaining daemon, and then every starter; a starter ends its tasks."""
    end_processes(recorded_processes(directory, DAEMON_FILES), seconds=_END_SECONDS)
    end_processes(recorded_processes(directory), seconds=_STARTER_END_SECONDS)


def _signalled(processes: tuple[ProcessIdentity, ...], number: int) -> list[int]:
    handles = []
    for process in processes:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(process.pid)
            # The number may have been reused before the handle was opened, but not after that.
            if not is_alive(process):
                os.close(handle)
                continue
            handles.append(handle)
            signal.pidfd_send_signal(handle, number)
    return handles
