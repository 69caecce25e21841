"""The supervisor of `messiahs up`: one process that keeps the daemon of every module of a federation running.

`python -m messiahs.daemon.supervision.supervisor DIRECTORY` reads DIRECTORY/up.json (the names of the modules) and
forks a daemon with DIRECTORY/NAME/settings.json for each. It ends on SIGTERM or SIGINT, after all daemons and starters
have ended. With the word `in-front` behind DIRECTORY, a person sees what it prints.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from messiahs.config.settings import load_settings
from messiahs.daemon.process.hangup import hold_hangups, on_hangup
from messiahs.daemon.process.notify import Notifier
from messiahs.daemon.process.pid_files import PID_FILE, end_modules, record_this_process
from messiahs.daemon.supervision.forking import LOG_FILE, ForkedDaemon, fork_daemon, load_code
from messiahs.errors import MessiahsError, UnusableStateError
from messiahs.executor.linux.kernel import see_children_end

PLAN_FILE: Final = "up.json"
FOLLOW_PLAN: Final = signal.SIGUSR1
"""The signal at which the supervisor reads its plan again."""
IN_FRONT: Final = "in-front"
UNUSABLE: Final = "its state cannot be used"
"""What the supervisor reports after the name of a module that it does not start again; `up` reads it."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
_STEADY_SECONDS = 10.0
_END_SECONDS = 20.0
_POLL_SECONDS = 0.05


class _Keepers:
    """One job for each module of the plan, which keeps its daemon running (mutable)."""

    def __init__(self, directory: Path, *, says_starts: bool) -> None:
        self._directory, self._says_starts = directory, says_starts
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._stops: dict[str, asyncio.Event] = {}
        self._is_ending = False
        self.daemons: dict[str, ForkedDaemon] = {}
        self.all_ended = asyncio.Event()

    def follow_plan(self) -> None:
        """Start the modules that are new in the plan, and end those that are gone from it; others just go on."""
        try:
            planned = list(json.loads((self._directory / PLAN_FILE).read_bytes())["modules"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            _report(f"{PLAN_FILE} cannot be read, and nothing changes: {error}")
            planned = list(self._jobs)
        for name, stop in self._stops.items():
            if name not in planned:
                stop.set()
        for name in planned:
            # One that is still ending is started when it has ended.
            if name not in self._jobs and not self._is_ending:
                stop = self._stops[name] = asyncio.Event()
                job = asyncio.create_task(
                    _keep(self._directory / name, stop, self.daemons, says_starts=self._says_starts)
                )
                self._jobs[name] = job
                job.add_done_callback(partial(self._on_ended, name))
        self._note_end()

    @property
    def names(self) -> Iterable[str]:
        """The modules of the plan."""
        return self._jobs

    def reload(self) -> None:
        """Forward SIGHUP to all daemons."""
        for daemon in self.daemons.values():
            daemon.signal(signal.SIGHUP)

    def stop(self) -> None:
        """End all daemons."""
        self._is_ending = True
        for stop in self._stops.values():
            stop.set()
        self._note_end()

    def _on_ended(self, name: str, job: "asyncio.Task[None]") -> None:
        was_asked = self._stops.pop(name).is_set()
        del self._jobs[name]
        self.daemons.pop(name, None)
        if job.exception() is not None:
            _report(f"{name}: {job.exception()!r}")
        if was_asked and not self._is_ending:
            self.follow_plan()
        self._note_end()

    def _note_end(self) -> None:
        if not self._jobs:
            self.all_ended.set()


async def supervise(directory: Path, *, is_in_front: bool = False) -> None:
    """Keep the daemons running until SIGTERM or SIGINT, or until none is left that could run.

    SIGHUP is forwarded to all of them. At SIGUSR1 the plan is read again: its new modules are started, and those that
    are gone from it ended.
    """
    see_children_end()
    notifier = Notifier.of_environment()
    keepers = _Keepers(directory, says_starts=not is_in_front)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, keepers.stop)
    loop.add_signal_handler(FOLLOW_PLAN, keepers.follow_plan)
    keepers.follow_plan()
    on_hangup(keepers.reload, keepers.stop)
    notifier.ready()
    watching = asyncio.create_task(notifier.watch(lambda: f"{len(keepers.daemons)} modules of {directory.name}"))
    telling = asyncio.create_task(_tell_when_ready(directory, list(keepers.names))) if is_in_front else None
    await keepers.all_ended.wait()
    watching.cancel()
    if telling is not None:
        telling.cancel()
    # A daemon that had to be killed could not end its starter.
    end_modules(directory)


async def _tell_when_ready(directory: Path, names: Iterable[str]) -> None:
    """Report once all modules answer their users."""
    for name in names:
        while not await _answers(directory / name):  # noqa: ASYNC110 - another process begins to listen
            await asyncio.sleep(_POLL_SECONDS)
    _report("ready; Ctrl-C ends it")


async def _answers(folder: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(load_settings(folder / "settings.json").socket)
    except (OSError, MessiahsError):
        return False
    writer.close()
    return True


async def _keep(folder: Path, stop: asyncio.Event, running: dict[str, ForkedDaemon], *, says_starts: bool) -> None:
    """Restart a module's daemon whenever it ends, with growing pauses, until `stop` is set.

    A daemon whose state is unusable is not restarted, because a person has to act.
    """
    pause, name = _FIRST_PAUSE_SECONDS, folder.name
    while not stop.is_set():
        began = time.monotonic()
        try:
            code = await _run_once(folder, stop, running, says_starts=says_starts)
            text = f"ended with {code}, see {folder / LOG_FILE}"
            if code == UnusableStateError.EXIT_CODE:
                _report(f"{name}: {UNUSABLE}, see {LOG_FILE}; it stays down until the next `messiahs up`")
                return
        except OSError as error:
            # A module that cannot be started must not end the others.
            text = f"cannot be started: {error}"
        if stop.is_set():
            return
        pause = _FIRST_PAUSE_SECONDS if time.monotonic() - began >= _STEADY_SECONDS else pause
        _report(f"{name}: {text}, next start in {pause:g} s")
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _run_once(folder: Path, stop: asyncio.Event, running: dict[str, ForkedDaemon], *, says_starts: bool) -> int:
    daemon = running[folder.name] = fork_daemon(folder)
    if says_starts:
        _report(f"{folder.name}: started, process {daemon.pid}, log {folder / LOG_FILE}")
    ended, asked = asyncio.ensure_future(daemon.wait()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((ended, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not ended.done():
        daemon.signal(signal.SIGTERM)
        await asyncio.wait((ended,), timeout=_END_SECONDS)
        daemon.signal(signal.SIGKILL)
    return await ended


def _report(line: str) -> None:
    with suppress(OSError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main() -> int:
    """Run the supervisor of the directory on the command line; the caller holds `up.lock`."""
    hold_hangups()
    directory = Path(sys.argv[1])
    record_this_process(directory / PID_FILE)
    load_code()
    try:
        asyncio.run(supervise(directory, is_in_front=sys.argv[2:] == [IN_FRONT]))
    finally:
        (directory / PID_FILE).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
