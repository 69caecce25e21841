"""Starting one task: its environment, the search for its program, and the one system call.

`posix_spawn` is what `subprocess` uses at best; used directly it needs no pipe to learn of a failed exec.
"""

import errno
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.protocol.frames import Start
from messiahs.executor.protocol.layout import WORK
from messiahs.executor.starter.pool import Taken
from messiahs.executor.starter.staging import StagingError, is_quick, stage

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_TOLD = 3
_TEXT_LENGTH = 500
_NOT_RUNNABLE = (errno.EACCES, errno.ENOEXEC, errno.EISDIR, errno.EPERM)


class Process(NamedTuple):
    """A process that is a task, or (`report` is not negative) becomes one when it has put its inputs in place.

    From `report` a `NotSpawned` can be read if it cannot; its end without a word says that it has become the task.
    """

    number: int
    report: int = -1


def ignored_signals() -> frozenset[int]:
    """Name what this process ignores: by its own will, by Python's, or as it was started."""
    return frozenset(number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """What all tasks have in common: the account's name, the search path, and an open /dev/null.

    A task ignores no signal: those that were `ignored` when this was made have their usual effect again.
    """

    user: str
    path: str
    nothing: int
    ignored: frozenset[int] = field(default_factory=ignored_signals)

    def spawn(self, start: Start, taken: Taken) -> Process | NotSpawned:
        """Start a task as leader of its own process group, in its work folder, with its inputs.

        Raises `OSError` if that folder cannot be entered.
        """
        work = f"{taken.folder}/{WORK}"
        if not is_quick(start.inputs):
            return self._fork(start, taken, work)
        # The starter has one thread: its own folder is what the child inherits.
        os.chdir(work)
        try:
            stage(start.inputs)
            return self._spawn_here(start, taken, work)
        except StagingError as error:
            return NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=str(error))
        finally:
            # Whoever looks for what an attempt left running goes by working directories too.
            os.chdir("/")

    def _spawn_here(self, start: Start, taken: Taken, work: str) -> Process | NotSpawned:
        environment = self.environment(start, work)
        program = start.argv[0] if start.argv else ""
        try:
            found = find_program(program, environment.get("PATH", ""))
            if isinstance(found, NotSpawned):
                return found
            number = os.posix_spawn(
                found,
                start.argv,
                environment,
                file_actions=(
                    (os.POSIX_SPAWN_DUP2, self.nothing, 0),
                    (os.POSIX_SPAWN_DUP2, taken.stdout, 1),
                    (os.POSIX_SPAWN_DUP2, taken.stderr, 2),
                ),
                setpgroup=0,
                setsigmask=(),
                setsigdef=self.ignored,
            )
            return Process(number)
        except OSError as error:
            return _refusal(program, error)
        except ValueError as error:
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"{program!r} cannot be started: {error}")

    def _fork(self, start: Start, taken: Taken, work: str) -> Process:
        """Start a process that copies the inputs and then becomes the task.

        It is the attempt's process from its beginning: limits apart, whatever ends a task ends it too. Raises `OSError`
        if there can be no such process.
        """
        report, told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            number = os.fork()
        except OSError:
            os.close(report)
            os.close(told)
            raise
        if number == 0:
            try:
                self._become(start, taken, work=work, told=told)
            finally:
                os._exit(NOT_EXECUTABLE)
        os.close(told)
        with suppress(OSError):
            # On both sides, so that the group is there for whoever is first.
            os.setpgid(number, number)
        return Process(number, report)

    def _become(self, start: Start, taken: Taken, *, work: str, told: int) -> None:
        """Be the task; if that is not possible, say why through `told`, which is closed once it is the task."""
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for source, target in ((self.nothing, 0), (taken.stdout, 1), (taken.stderr, 2)):
            os.dup2(source, target)
        # The starter's lock and connections must not outlive it here.
        os.dup2(told, _TOLD, inheritable=False)
        os.closerange(_TOLD + 1, os.sysconf("SC_OPEN_MAX"))
        for number in self.ignored:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        problem = self._staged_and_replaced(start, work)
        os.write(_TOLD, msgspec.json.encode(replace(problem, text=problem.text[:_TEXT_LENGTH])))

    def _staged_and_replaced(self, start: Start, work: str) -> NotSpawned:
        program = start.argv[0] if start.argv else ""
        try:
            os.chdir(work)
            stage(start.inputs)
            environment = self.environment(start, work)
            found = find_program(program, environment.get("PATH", ""))
            if isinstance(found, NotSpawned):
                return found
            os.execve(found, start.argv, environment)  # noqa: S606 - a shell is what no task is to need
        except StagingError as error:
            return NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=str(error))
        except OSError as error:
            return _refusal(program, error)
        except Exception as error:  # noqa: BLE001 - without a word the task would seem to have run
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"{program!r} cannot be started: {error}")

    def environment(self, start: Start, work: str) -> dict[str, str]:
        """Give exactly what a task sees: the standard variables, then its own."""
        task = start.attempt.task
        variables = {
            "PATH": self.path,
            "LANG": "C.UTF-8",
            "HOME": work,
            "TMPDIR": work,
            "USER": self.user,
            "MESSIAHS_TASK_ID": str(task),
            "MESSIAHS_ATTEMPT": str(start.attempt.number),
        }
        if task.member:
            variables["MESSIAHS_ARRAY_INDEX"] = str(task.member)
        variables.update(start.env)
        return variables


def problem_in(report: bytes) -> NotSpawned:
    """Read what a process has reported; one that cannot be read is a problem, too.

    Every task of the account could write there.
    """
    try:
        return msgspec.json.decode(report, type=NotSpawned)
    except (ValueError, RecursionError) as error:
        text = f"what its process reported cannot be read: {error}"
        return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=text)


def find_program(program: str, path: str) -> str | NotSpawned:
    """Find what a shell in the present folder would run: a name with a slash as it stands, others on the path."""
    if "/" in program:
        return program
    candidates = [f"{folder or '.'}/{program}" for folder in path.split(":")] if program else []
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112 - once per task
            return candidate
    if any(os.path.isfile(candidate) for candidate in candidates):  # noqa: PTH113 - as above
        return NotSpawned(cause=Cause.NOT_FOUND, exit_code=NOT_EXECUTABLE, text=f"{program}: no permission to execute")
    return NotSpawned(cause=Cause.NOT_FOUND, exit_code=NOT_FOUND, text=f"{program!r} was not found on PATH={path}")


def _refusal(program: str, error: OSError) -> NotSpawned:
    if error.errno in _MISSING:
        return NotSpawned(cause=Cause.NOT_FOUND, exit_code=NOT_FOUND, text=f"{program}: {error.strerror}")
    if error.errno in _NOT_RUNNABLE:
        return NotSpawned(cause=Cause.NOT_FOUND, exit_code=NOT_EXECUTABLE, text=f"{program}: {error.strerror}")
    return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"{program}: {error.strerror}")
