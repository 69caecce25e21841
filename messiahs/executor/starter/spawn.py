"""Starting one task: its environment, the search for its program, and the one system call.

`posix_spawn` is what `subprocess` uses at best; used directly it needs no pipe to learn of a failed exec.
"""

import errno
import os
import signal
from dataclasses import dataclass

from messiahs.executor.frames import Start
from messiahs.executor.layout import WORK
from messiahs.executor.starter.pool import Taken

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_NOT_RUNNABLE = (errno.EACCES, errno.ENOEXEC, errno.EISDIR, errno.EPERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSpawned:
    """Why a task could not be started; `exit_code` is what a shell would have said."""

    cause: str
    exit_code: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """What all tasks have in common: the account's name, the search path, and an open /dev/null."""

    user: str
    path: str
    nothing: int

    def spawn(self, start: Start, taken: Taken) -> int | NotSpawned:
        """Start a task as leader of its own process group, in its work folder; gives its process number.

        Raises `OSError` if that folder cannot be entered.
        """
        work = f"{taken.folder}/{WORK}"
        environment = self.environment(start, work)
        program = start.argv[0] if start.argv else ""
        # The starter has one thread: its own folder is what the child inherits.
        os.chdir(work)
        try:
            found = find_program(program, environment.get("PATH", ""))
            if isinstance(found, NotSpawned):
                return found
            return os.posix_spawn(
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
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except OSError as error:
            return _refusal(program, error)
        except ValueError as error:
            return NotSpawned(cause="spawn_failed", exit_code=None, text=f"{program!r} cannot be started: {error}")
        finally:
            # Whoever looks for what an attempt left running goes by working directories too.
            os.chdir("/")

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


def find_program(program: str, path: str) -> str | NotSpawned:
    """Find what a shell in the present folder would run: a name with a slash as it stands, others on the path."""
    if "/" in program:
        return program
    candidates = [f"{folder or '.'}/{program}" for folder in path.split(":")] if program else []
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112 - once per task
            return candidate
    if any(os.path.isfile(candidate) for candidate in candidates):  # noqa: PTH113 - as above
        return NotSpawned(cause="not_found", exit_code=NOT_EXECUTABLE, text=f"{program}: no permission to execute")
    return NotSpawned(cause="not_found", exit_code=NOT_FOUND, text=f"{program!r} was not found on PATH={path}")


def _refusal(program: str, error: OSError) -> NotSpawned:
    if error.errno in _MISSING:
        return NotSpawned(cause="not_found", exit_code=NOT_FOUND, text=f"{program}: {error.strerror}")
    if error.errno in _NOT_RUNNABLE:
        return NotSpawned(cause="not_found", exit_code=NOT_EXECUTABLE, text=f"{program}: {error.strerror}")
    return NotSpawned(cause="spawn_failed", exit_code=None, text=f"{program}: {error.strerror}")
