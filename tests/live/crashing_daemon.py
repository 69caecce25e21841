"""Runs the daemons of a federation and ends one of them at a chosen point, as a crash would.

`python -m tests.live.crashing_daemon DIRECTORY` acts like the supervisor of `messiahs up`, but restarts an ended daemon
at once. DIRECTORY/NAME/crash.json arms the next crash of a module: `{"what": "commit" or "action", "when": "before" or
"after", "number": n}` counts from the moment when the file is read. A daemon removes the file when it crashes; a file
that remains means that the point was not reached.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.core.interface.actions import Decision, Effect, Report, SendVector
from messiahs.core.model.instants import Instant
from messiahs.daemon.host.host import Host
from messiahs.daemon.process.pid_files import end_modules
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import Write
from messiahs.daemon.supervision.forking import fork_daemon, load_code
from tests.waiting import let_pass_in_loop

ARMED: Final = "crash.json"
CRASH_EXIT: Final = 77
_LEAVE_SECONDS = 0.03
"""How long the last effects have to leave the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point in the life of a daemon: before or after its n-th commit or action."""

    what: str
    when: str
    number: int


class Crash:
    """Counts what a daemon does after it was armed, and ends it at the armed point (mutable)."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / ARMED
        self._point: Point | None = None
        self._count = 0
        self._is_dead = False

    def around(self, what: str, do: Callable[[], None]) -> None:
        """Do something that is counted; nothing is done any more after the point was reached."""
        if self._is_dead:
            if what == "commit":
                # This is the writing thread: the rest of the daemon may still send its last messages.
                threading.Event().wait()
            return
        point = self._armed()
        if point is None or point.what != what or not self._is_next(point):
            do()
            return
        self._file.unlink()
        self._is_dead = True
        if point.when == "after":
            do()
        if what == "commit":
            os._exit(CRASH_EXIT)
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, os._exit, CRASH_EXIT)

    def _armed(self) -> Point | None:
        try:
            armed = Point(**json.loads(self._file.read_bytes()))
        except FileNotFoundError:
            return None
        if armed != self._point:
            self._point, self._count = armed, 0
        return armed

    def _is_next(self, point: Point) -> bool:
        self._count += 1
        return self._count == point.number


def arm_daemons() -> None:
    """Insert the crash around every commit and action of the daemons that are forked from here on."""
    crashes: dict[int, Crash] = {}
    commit, perform = RowStore.commit, Host._perform

    def crash_at(folder: Path) -> Crash:
        return crashes.setdefault(os.getpid(), Crash(folder))

    def commit_or_crash(store: RowStore, writes: Sequence[Write], now: Instant) -> None:
        crash_at(store._path.parent).around("commit", lambda: commit(store, writes, now))

    def perform_or_crash(host: Host, action: Effect) -> None:
        if isinstance(action, SendVector | Decision | Report):
            # Not part of a task's life.
            perform(host, action)
        else:
            crash_at(host.store._path.parent).around("action", lambda: perform(host, action))

    RowStore.commit = commit_or_crash  # type: ignore[method-assign, assignment]
    Host._perform = perform_or_crash  # type: ignore[method-assign, assignment]


async def _keep(folder: Path, stop: asyncio.Event) -> None:
    while not stop.is_set():
        daemon = fork_daemon(folder)
        ended, asked = asyncio.ensure_future(daemon.wait()), asyncio.ensure_future(stop.wait())
        await asyncio.wait((ended, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        daemon.signal(signal.SIGTERM)
        if await ended != CRASH_EXIT:
            # Any other failure must not become a restart loop.
            await let_pass_in_loop(1)


async def _run(directory: Path) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    modules = json.loads((directory / "up.json").read_bytes())["modules"]
    await asyncio.gather(*(_keep(directory / name, stop) for name in modules))
    end_modules(directory)


if __name__ == "__main__":
    load_code()
    arm_daemons()
    asyncio.run(_run(Path(sys.argv[1])))
