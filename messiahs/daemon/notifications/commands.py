"""A command that notifies a user: a process of that user, which the daemon does not wait for in its event loop."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.core.interface.notifications import NotificationRow
from messiahs.daemon.notifications import in_account
from messiahs.daemon.storage.documents import time_document

COMMAND_SECONDS: Final = 60.0
_OUTPUT_BYTES: Final = 1_024
_PIECE_BYTES: Final = 65_536
_PAUSE_SECONDS: Final = 0.05
"""Time between two reads: a command that prints without end takes little time of the event loop, and blocks."""
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a notification; `problem` is empty if all went well."""

    problem: str = ""
    output: str = ""
    """The end of what a command printed, for its user alone."""
    may_help_again: bool = False
    """Whether another try could succeed."""


class _Output:
    """The read end of a pipe, of whose bytes the last ones are kept (mutable)."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor, self._last = descriptor, b""
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._wait()

    def close(self) -> str:
        """Close the pipe, and return the last text."""
        self._read()
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        return self._last.decode(errors="replace").strip()

    def _wait(self) -> None:
        self._loop.add_reader(self._descriptor, self._read_on)

    def _read_on(self) -> None:
        """Read what is there, and the next piece after a pause."""
        self._loop.remove_reader(self._descriptor)
        if self._read():
            self._pause = self._loop.call_later(_PAUSE_SECONDS, self._wait)

    def _read(self) -> bool:
        """Read a piece of what is there; return whether more can come."""
        with suppress(BlockingIOError):
            piece = os.read(self._descriptor, _PIECE_BYTES)
            self._last = (self._last + piece)[-_OUTPUT_BYTES:]
            return bool(piece)
        return True


async def run_command(notice: NotificationRow) -> Outcome:
    """Run a command as the account that has submitted the task; its process group is killed when it ends."""
    reading, writing = os.pipe()
    output = _Output(reading)
    text = ""
    try:
        try:
            process = await _start(notice, writing)
        except OSError as error:
            return Outcome(problem=f"the command could not be started: {error.strerror}")
        finally:
            os.close(writing)
        problem = await _ended(process)
    finally:
        text = output.close()
    return Outcome(problem=problem, output=text)


async def _start(notice: NotificationRow, output: int) -> asyncio.subprocess.Process:
    notification = notice.notification
    words = (sys.executable, "-I", "-S", str(Path(in_account.__file__)), str(notification.uid), notification.text)
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd="/",
        env={"PATH": _PATH, "LANG": "C.UTF-8", **variables_of(notice)},
        start_new_session=True,
    )


async def _ended(process: asyncio.subprocess.Process) -> str:
    """Return how a command failed; empty if it did not."""
    code = is_killed = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(COMMAND_SECONDS):
                code = await process.wait()
    finally:
        is_killed = _kill_group(process.pid)
        if is_killed:
            await process.wait()
    if code is None:
        what = "was killed" if is_killed else "has rights of another account, so it could not be killed,"
        return f"the command {what} after {COMMAND_SECONDS:g} s"
    if code < 0:
        return f"the command was ended by signal {-code}"
    return f"the command ended with exit code {code}" if code else ""


def _kill_group(leader: int) -> bool:
    """Kill a process and its group; return False if a program with the rights of another account cannot be killed."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def variables_of(notice: NotificationRow) -> dict[str, str]:
    """Return what a command learns of the end."""
    return {
        "MESSIAHS_TASK_ID": str(notice.id),
        "MESSIAHS_TASK_NAME": notice.name,
        "MESSIAHS_STATE": notice.state.value,
        "MESSIAHS_EXIT_CODE": "" if notice.exit_code is None else str(notice.exit_code),
        "MESSIAHS_SUBMITTED_AT": time_document(notice.submitted_at) or "",
        "MESSIAHS_ENDED_AT": time_document(notice.ended_at) or "",
    }
