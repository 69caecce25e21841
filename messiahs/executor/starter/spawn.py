"""Starting one task: its environment, the search for its program, and the system call.

`posix_spawn` is the fastest method of `subprocess`; called directly, it needs no pipe to report a failed exec.
"""

import errno
import fcntl
import os
import signal
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import msgspec

from messiahs.config.settings import OUTBOUND
from messiahs.core.interface.causes import Cause
from messiahs.core.model.array_index import ARRAY_INDEX
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.linux.cgroups.contract import Group
from messiahs.executor.protocol.layout import WORK
from messiahs.executor.starter.bubblewrap.boxes import Boxes, BoxFiles, note_start
from messiahs.executor.starter.bubblewrap.outbound import Channel, enter_outbound, new_channel
from messiahs.executor.starter.bubblewrap.view import WORK_SEEN, device_arguments
from messiahs.executor.starter.pool import Taken
from messiahs.executor.starter.staging import StagingError, is_quick, stage

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_REPORT_FILE = 3
_TEXT_LENGTH = 500
_SHOWN_CHARACTERS = 200
TERMINAL_SIGNALS = (signal.SIGHUP, signal.SIGINT)
"""Signals from a terminal: a starter ignores them, and its tasks do not."""
_OF_THE_MACHINE = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EBADF)
"""What keeps a process from being created; every other error of `execve` is one of its program or arguments."""
_HEAD_BYTES = 1 << 17
_NO_SESSION = NotSpawned(
    cause=Cause.SPAWN_FAILED,
    exit_code=None,
    text="a task in a box has a terminal only where setsid (the package util-linux) is installed and shown to tasks",
)


class Process(NamedTuple):
    """A process that is a task, or (if `report` is not negative) becomes one after copying its inputs.

    From `report` a `NotSpawned` can be read if that fails; if it ends empty, the process has become the task.
    """

    number: int
    report: int = -1
    said: int = -1
    """From this file, what its network says can be read, if it has one of its own, until that ends."""


class _Call(NamedTuple):
    """A call of `execve`."""

    path: str
    argv: tuple[str, ...] | list[str]
    variables: Mapping[str, str]


def ignored_signals() -> frozenset[int]:
    """Return the signals that a starter ignores: by its own choice (also if later), by Python's, or inherited."""
    found = (number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN)
    return frozenset((*TERMINAL_SIGNALS, *found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """What all tasks share: the account's name, the search path, and an open /dev/null.

    A task ignores no signal: the signals `ignored` by this process have their default effect again. A process that
    copies inputs keeps `kept_files` files from descriptor 4 on until it becomes the task. With `boxes`, each task runs
    in one.
    """

    user: str
    path: str
    nothing: int
    kept_files: int = 0
    boxes: Boxes | None = None
    ignored: frozenset[int] = field(default_factory=ignored_signals)

    def spawn(
        self, start: Start, taken: Taken, *, group: Group | None = None, status: int = -1
    ) -> Process | NotSpawned:
        """Start a task in its work folder and control group, with its inputs; it leads a session and a process group.

        Its box writes to the file `status`, which remains open. Raises `OSError` if that folder cannot be entered.
        """
        work = f"{taken.folder}/{WORK}"
        if self.boxes is not None and self.boxes.reached(start.network) == OUTBOUND:
            channel = new_channel()
            try:
                made = self._fork(start, taken, work=work, group=group, status=status, channel=channel)
            except OSError:
                os.close(channel.said)
                raise
            finally:
                os.close(channel.says)
            # Nothing can fail here: the process is there, and must be known.
            return made._replace(said=channel.said)
        if not is_quick(start.inputs) or start.terminal is not None or (group is not None and not group.has_inside):
            return self._fork(start, taken, work=work, group=group, status=status)
        # The starter has one thread, and the child inherits its working directory.
        os.chdir(work)
        try:
            stage(start.inputs)
            problem = self._enter(start)
            if problem is not None:
                return problem
            here = partial(self._spawn_here, start, taken, work=work, status=status)
            return here() if group is None else group.inside(here)
        except StagingError as error:
            return NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=str(error))
        finally:
            # Remains of attempts are also recognised by their working directories.
            os.chdir("/")

    def _spawn_here(self, start: Start, taken: Taken, *, work: str, status: int) -> Process | NotSpawned:
        program = start.argv[0] if start.argv else ""
        files: BoxFiles | None = None
        try:
            files = self._box_files(start, work, status)
            call = self._call(start, work)
            if isinstance(call, NotSpawned):
                return call
            try:
                number = os.posix_spawn(
                    call.path,
                    call.argv,
                    call.variables,
                    file_actions=(
                        (os.POSIX_SPAWN_DUP2, self.nothing if taken.stdin is None else taken.stdin, 0),
                        (os.POSIX_SPAWN_DUP2, taken.stdout, 1),
                        (os.POSIX_SPAWN_DUP2, taken.stderr, 2),
                        *(() if files is None else ((os.POSIX_SPAWN_DUP2, *pair) for pair in files.places())),
                    ),
                    # What a process says of the weight of its session beside others ends with it.
                    setsid=True,
                    setsigmask=(),
                    setsigdef=self.ignored,
                )
            except OSError as error:
                return _refusal(program, error)
            return Process(number)
        except (OSError, ValueError) as error:
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"{program!r} cannot be started: {error}")
        finally:
            if files is not None:
                files.close()

    def _enter(self, start: Start) -> NotSpawned | None:
        """Go from the working directory to the folder in which the task starts; in a box, bubblewrap does that."""
        if start.cwd and self.boxes is None:
            try:
                os.chdir(start.cwd)
            except OSError as error:
                return no_folder(start.cwd, error.strerror or str(error))
        return None

    def _call(self, start: Start, work: str) -> _Call | NotSpawned:
        """Return what is executed to start a task, or why there is nothing; the inputs are in this folder."""
        if self.boxes is not None and start.argv:
            argv = self.boxes.argv(start.argv, has_terminal=start.terminal is not None)
            return _Call(self.boxes.path, argv, {}) if argv else _NO_SESSION
        environment = self.environment(start, work)
        found = find_program(start.argv[0] if start.argv else "", environment.get("PATH", ""))
        return found if isinstance(found, NotSpawned) else _Call(found, start.argv, environment)

    def _box_files(self, start: Start, work: str, status: int) -> BoxFiles | None:
        if self.boxes is None:
            return None
        variables = self.environment(start, WORK_SEEN)
        shown = (*start.shown, *device_arguments(start.devices))
        return self.boxes.files(work, variables, status=status, limit=start.network, shown=shown, cwd=start.cwd)

    def _fork(
        self,
        start: Start,
        taken: Taken,
        *,
        work: str,
        group: Group | None,
        status: int,
        channel: Channel | None = None,
    ) -> Process:
        """Start a process that copies the inputs and then becomes the task.

        It is the attempt's process from the beginning: everything that ends a task, except limits, ends it too. Raises
        `OSError` if the process cannot be started.
        """
        files = self._box_files(start, work, status)
        try:
            report, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            ends = [report, write_end]
            try:
                has_group, makes_group = os.pipe2(os.O_CLOEXEC)
                ends += (has_group, makes_group)
                number = os.fork()
            except OSError:
                for end in ends:
                    os.close(end)
                raise
            if number == 0:
                try:
                    os.setsid()
                    os.close(makes_group)
                    if group is not None:
                        group.enter()
                    self._become(start, taken, work=work, report=write_end, files=files, channel=channel)
                finally:
                    os._exit(NOT_EXECUTABLE)
            for end in (write_end, makes_group):
                os.close(end)
            # Whoever signals the task signals its group, which must be there.
            os.read(has_group, 1)
            os.close(has_group)
        finally:
            if files is not None:
                files.close()
        return Process(number, report)

    def _become(
        self,
        start: Start,
        taken: Taken,
        *,
        work: str,
        report: int,
        files: BoxFiles | None,
        channel: Channel | None,
    ) -> None:
        """Become the task; a failure is reported through `report`, which is closed when this has become the task."""
        signal.set_wakeup_fd(-1)
        stdin = self.nothing if taken.stdin is None else taken.stdin
        for source, target in ((stdin, 0), (taken.stdout, 1), (taken.stderr, 2)):
            os.dup2(source, target)
        # The starter's lock and connections must not stay open here.
        os.dup2(report, _REPORT_FILE, inheritable=False)
        for source, target in () if files is None else files.places():
            os.dup2(source, target)
        first = _REPORT_FILE + 1 + self.kept_files
        for kept in sorted(channel or ()):
            os.closerange(first, kept)
            first = kept + 1
        os.closerange(first, os.sysconf("SC_OPEN_MAX"))
        for number in self.ignored:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        problem = self._staged_and_replaced(start, work, channel)
        os.write(_REPORT_FILE, msgspec.json.encode(replace(problem, text=problem.text[:_TEXT_LENGTH])))

    def _staged_and_replaced(self, start: Start, work: str, channel: Channel | None) -> NotSpawned:
        program = start.argv[0] if start.argv else ""
        try:
            if start.terminal is not None and self.boxes is None:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            os.chdir(work)
            stage(start.inputs)
            problem = self._enter(start)
            if problem is not None:
                return problem
            call = self._call(start, work)
            if isinstance(call, NotSpawned):
                return call
            if self.boxes is not None:
                if channel is not None:
                    enter_outbound(self.boxes.programs, channel)
                note_start()
            try:
                os.execve(call.path, call.argv, call.variables)  # noqa: S606 - tasks need no shell
            except OSError as error:
                return _refusal(program, error)
        except StagingError as error:
            return NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=str(error))
        except Exception as error:  # noqa: BLE001 - without a report, the task would seem to have run
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"{program!r} cannot be started: {error}")

    def environment(self, start: Start, work: str) -> dict[str, str]:
        """Return exactly what a task sees: the standard variables below those that it states, and which task it is."""
        task = start.attempt.task
        which = {"MESSIAHS_TASK_ID": str(task), "MESSIAHS_ATTEMPT": str(start.attempt.number)}
        stated = dict(start.env)
        index = stated.pop(ARRAY_INDEX, str(task.member))
        if task.member:
            which[ARRAY_INDEX] = index
        return {
            "PATH": self.path,
            "LANG": "C.UTF-8",
            "HOME": work,
            "TMPDIR": work,
            "USER": self.user,
            **stated,
            **which,
        }


def no_folder(cwd: str, why: str) -> NotSpawned:
    """Return that a task cannot start in its folder, of whose path the beginning is enough."""
    return NotSpawned(cause=Cause.NO_FOLDER, exit_code=None, text=f"the task cannot start in {_shown(cwd)}: {why}")


def problem_in(report: bytes) -> NotSpawned:
    """Parse the report of a process; a report that cannot be parsed is a problem, too.

    Every task of the account could write to it.
    """
    try:
        return msgspec.json.decode(report, type=NotSpawned)
    except (ValueError, RecursionError) as error:
        text = f"the report of its process cannot be read: {error}"
        return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=text)


def find_program(program: str, path: str) -> str | NotSpawned:
    """Find what a shell would run: a name with a slash as it is, other names on the path."""
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
    text = f"{_shown(program)}: {error.strerror}"
    if error.errno in _MISSING:
        return NotSpawned(cause=Cause.NOT_FOUND, exit_code=NOT_FOUND, text=text)
    # Reported for a damaged program as well as for a damaged disk.
    if error.errno in _OF_THE_MACHINE or (error.errno == errno.EIO and not _is_readable(program)):
        return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=text)
    return NotSpawned(cause=Cause.NOT_FOUND, exit_code=NOT_EXECUTABLE, text=text)


def _is_readable(program: str) -> bool:
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - as above
            file.read(_HEAD_BYTES)
    except OSError:
        return False
    return True


def _shown(path: str) -> str:
    return path if len(path) <= _SHOWN_CHARACTERS else f"{path[:_SHOWN_CHARACTERS]}…"
