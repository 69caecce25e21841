"""The supervisor of `messiahs up`: one process that keeps the daemon of every module of a federation running.

`python -m messiahs.daemon.supervise DIRECTORY` reads DIRECTORY/up.json (the names of the modules) and starts a daemon
with DIRECTORY/NAME/settings.json for each, as a fork of itself. It ends on SIGTERM or SIGINT, and then no daemon and no
starter is left.
"""

import asyncio
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.daemon.forking import LOG_FILE, fork_daemon, load_code
from messiahs.executor.processes import ProcessIdentity, identity_of, is_alive

PLAN_FILE: Final = "up.json"
PID_FILE: Final = "supervisor.pid"
DAEMON_FILES: Final = ("*/daemon.pid",)
_ALL_FILES = (*DAEMON_FILES, "*/starter.pid", "*/*/starter.pid")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
_STEADY_SECONDS = 10.0
_END_SECONDS = 20.0
_STARTER_END_SECONDS = 5.0


def recorded_process(path: Path) -> ProcessIdentity | None:
    """Give the running process that a pid file names, or None; a starter's file calls the start time `started`."""
    try:
        document = json.loads(path.read_bytes())
        started = document["start_time"] if "start_time" in document else document["started"]
        process = ProcessIdentity(pid=int(document["pid"]), started=int(started))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return process if is_alive(process) else None


def record_this_process(path: Path) -> None:
    """Write the pid file of this process in one step."""
    identity = identity_of(os.getpid())
    assert identity is not None
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps({"pid": identity.pid, "start_time": identity.started}), encoding="utf-8")
    draft.replace(path)


def recorded_processes(directory: Path, patterns: Iterable[str] = _ALL_FILES) -> tuple[ProcessIdentity, ...]:
    """Give the running processes that the modules of a federation recorded."""
    paths = sorted(path for pattern in patterns for path in directory.glob(pattern))
    found = (recorded_process(path) for path in paths)
    return tuple(process for process in found if process is not None)


def end_processes(processes: Iterable[ProcessIdentity], *, seconds: float) -> None:
    """Send SIGTERM, wait, send SIGKILL to those that are left, and return when all are gone."""
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
    """End every daemon that is left, and then every starter; a starter ends its tasks."""
    end_processes(recorded_processes(directory, DAEMON_FILES), seconds=_END_SECONDS)
    end_processes(recorded_processes(directory), seconds=_STARTER_END_SECONDS)


def _signalled(processes: tuple[ProcessIdentity, ...], number: int) -> list[int]:
    handles = []
    for process in processes:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(process.pid)
            # The number may have been given anew before the handle was opened, but not after.
            if not is_alive(process):
                os.close(handle)
                continue
            handles.append(handle)
            signal.pidfd_send_signal(handle, number)
    return handles


async def supervise(directory: Path) -> None:
    """Keep the daemons running until SIGTERM or SIGINT comes."""
    modules = json.loads((directory / PLAN_FILE).read_bytes())["modules"]
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await asyncio.gather(*(_keep(directory, name, stop) for name in modules))
    # A daemon that had to be killed could not end its starter.
    end_modules(directory)


async def _keep(directory: Path, name: str, stop: asyncio.Event) -> None:
    """Start a module's daemon again whenever it ended, later each time, until `stop` is set."""
    pause = _FIRST_PAUSE_SECONDS
    while not stop.is_set():
        began = time.monotonic()
        try:
            told = f"ended with {await _run_once(directory / name, stop)}"
        except OSError as error:
            # One module that cannot be started must not end the others.
            told = f"cannot be started: {error}"
        if stop.is_set():
            return
        pause = _FIRST_PAUSE_SECONDS if time.monotonic() - began >= _STEADY_SECONDS else pause
        _tell(f"{name}: {told}, next start in {pause:g} s")
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _run_once(folder: Path, stop: asyncio.Event) -> int:
    daemon = fork_daemon(folder)
    _tell(f"{folder.name}: started, process {daemon.pid}, log {folder / LOG_FILE}")
    ended, asked = asyncio.ensure_future(daemon.wait()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((ended, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not ended.done():
        daemon.signal(signal.SIGTERM)
        await asyncio.wait((ended,), timeout=_END_SECONDS)
        daemon.signal(signal.SIGKILL)
    return await ended


def _tell(line: str) -> None:
    with suppress(OSError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main() -> int:
    """Run the supervisor of the directory that the command line names; whoever starts it holds `up.lock`."""
    directory = Path(sys.argv[1])
    record_this_process(directory / PID_FILE)
    load_code()
    try:
        asyncio.run(supervise(directory))
    finally:
        (directory / PID_FILE).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
