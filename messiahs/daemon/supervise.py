"""The supervisor of `messiahs up`: one process that keeps the daemon of every module of a federation running.

`python -m messiahs.daemon.supervise DIRECTORY` reads DIRECTORY/up.json (the names of the modules) and starts a daemon
with DIRECTORY/NAME/settings.json for each. It ends on SIGTERM or SIGINT, and then no daemon and no starter is left.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PLAN_FILE: Final = "up.json"
PID_FILE: Final = "supervisor.pid"
_PROCESS_FILES = ("daemon.pid", "starter.pid")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
_STEADY_SECONDS = 10.0
_END_SECONDS = 20.0
_STARTER_END_SECONDS = 5.0
_START_TIME_FIELD = 19
"""Of /proc/PID/stat, counted behind the name (which may hold anything, blanks and brackets too)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that cannot be mistaken for a later one with its number; `start_time` is in ticks since boot."""

    pid: int
    start_time: int

    def is_alive(self) -> bool:
        """Say whether it still runs."""
        return start_time_of(self.pid) == self.start_time


def start_time_of(pid: int) -> int | None:
    """Give when a process started; None for one that is gone, or that only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[_START_TIME_FIELD])


def recorded_process(path: Path) -> Process | None:
    """Give the running process that a pid file names, or None."""
    try:
        document = json.loads(path.read_bytes())
        process = Process(pid=document["pid"], start_time=document["start_time"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return process if process.is_alive() else None


def record_this_process(path: Path) -> None:
    """Write the pid file of this process in one step."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps({"pid": os.getpid(), "start_time": start_time_of(os.getpid())}), encoding="utf-8")
    draft.replace(path)


def recorded_processes(directory: Path, names: Iterable[str] = _PROCESS_FILES) -> tuple[Process, ...]:
    """Give the running processes that the modules of a federation recorded."""
    paths = sorted(path for name in names for path in directory.glob(f"*/{name}"))
    found = (recorded_process(path) for path in paths)
    return tuple(process for process in found if process is not None)


def end_processes(processes: Iterable[Process], *, seconds: float) -> None:
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
        left = tuple(process for process in left if process.is_alive())


def end_modules(directory: Path) -> None:
    """End every daemon that is left, and then every starter; a starter ends its tasks."""
    end_processes(recorded_processes(directory, ("daemon.pid",)), seconds=_END_SECONDS)
    end_processes(recorded_processes(directory), seconds=_STARTER_END_SECONDS)


def _signalled(processes: tuple[Process, ...], number: int) -> list[int]:
    handles = []
    for process in processes:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(process.pid)
            # The number may have been given anew before the handle was opened, but not after.
            if not process.is_alive():
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
    pause = _FIRST_PAUSE_SECONDS
    asked = asyncio.ensure_future(stop.wait())
    while not stop.is_set():
        began = time.monotonic()
        daemon = await _started(directory / name)
        _tell(f"{name}: started, process {daemon.pid}, log {directory / name / 'daemon.log'}")
        ended = asyncio.ensure_future(daemon.wait())
        await asyncio.wait((ended, asked), return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            await _end(daemon)
            return
        pause = _FIRST_PAUSE_SECONDS if time.monotonic() - began >= _STEADY_SECONDS else pause
        _tell(f"{name}: ended with {daemon.returncode}, next start in {pause:g} s")
        await asyncio.wait((asked,), timeout=pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _started(folder: Path) -> asyncio.subprocess.Process:
    with (folder / "daemon.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "messiahs.daemon",
            str(folder / "settings.json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C at the terminal is for the supervisor, which then ends its daemons in order.
            start_new_session=True,
        )


async def _end(daemon: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        daemon.terminate()
    try:
        await asyncio.wait_for(daemon.wait(), _END_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            daemon.kill()
        await daemon.wait()


def _tell(line: str) -> None:
    with suppress(OSError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main() -> int:
    """Run the supervisor of the directory that the command line names; whoever starts it holds `up.lock`."""
    directory = Path(sys.argv[1])
    record_this_process(directory / PID_FILE)
    try:
        asyncio.run(supervise(directory))
    finally:
        (directory / PID_FILE).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
