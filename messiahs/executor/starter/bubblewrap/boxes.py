"""How boxes are made: what bubblewrap gets for each task, and whether it works here."""

import os
import resource
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, NamedTuple

from messiahs.config.settings import OUTBOUND
from messiahs.core.model.terms import narrower_of
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.seccomp import program, why_not
from messiahs.executor.protocol.bubblewrap_messages import BUBBLEWRAP, MESSAGE_BYTES
from messiahs.executor.starter.bubblewrap.view import WORK_SEEN, BoxView, shown_in_boxes, view_arguments
from messiahs.executor.starter.sandbox.outbound import NAME_SERVER
from messiahs.executor.starter.sandbox.view import resolver_text

PROCESSES: Final = 8192
"""Maximum number of processes and threads of a box."""
_LIMITER, _SCORER = "prlimit", "choom"
_SESSION_LEADER: Final = "setsid"
"""What makes a task the leader of a session with a terminal: bubblewrap would end with the task's Ctrl-C."""
_SCORE: Final = 1000
"""How much likelier than others a box is killed where memory is lacking: the kernel's maximum."""
_FILTER, _ARGUMENTS, _STATUS, _RESOLVER = 4, 5, 6, 7
"""The files that bubblewrap reads, and closes then, and the one to which it writes what became of the box."""
FILES: Final = 4
"""How many they are, from descriptor 4 on."""
NOT_EXECUTED: Final = f"{BUBBLEWRAP}: execvp "
"""How the text of bubblewrap begins about a program that cannot be executed."""
_NAMESPACES: Final = ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
_HOST_NAME: Final = "messiahs"
_NO_USER_NAMESPACES: Final = "--disable-userns"
NO_FOLDER: Final = f"{BUBBLEWRAP}: Can't chdir to "
"""How it begins about a folder in which a task cannot start."""
_NO_PROGRAM: Final = "/"
"""A folder: once a box is set up, bubblewrap says that it cannot be executed."""
_STATUS_BYTES: Final = 4096
_TIME_BYTES: Final = 8
_HAS_EXECUTED: Final = b'"exit-code"'
"""A key that bubblewrap writes only about a program that it has executed."""
_TRIAL_SECONDS = 15.0
_NO_VARIABLES: Final[Mapping[str, str]] = {}


class BoxFiles(NamedTuple):
    """The files of one start: the caller closes them, and the `status` when it has read that."""

    filter: int
    arguments: int
    status: int
    resolver: int = -1
    """The file that names the server of names of a network of its own; -1: there is none."""

    def places(self) -> list[tuple[int, int]]:
        """Return each file with the descriptor at which bubblewrap finds it."""
        # The starter keeps more files open than these, so no place is another file's source.
        found = [(self.filter, _FILTER), (self.arguments, _ARGUMENTS), (self.status, _STATUS)]
        found += [(self.resolver, _RESOLVER)] if self.resolver >= 0 else []
        assert min(found)[0] > _RESOLVER
        return found

    def close(self) -> None:
        """Close them, except the status."""
        os.close(self.filter)
        os.close(self.arguments)
        if self.resolver >= 0:
            os.close(self.resolver)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """How all boxes of a starter are made: `arguments` are those of bubblewrap that all boxes share.

    They have the `network` of the starter, or less of it.

    What is executed, `path`, limits the processes: the starter has other limits. It executes the `scorer`, which makes
    the box a likely victim of lack of memory, and that bubblewrap. They and others are looked for on `programs`.
    """

    path: str
    programs: str
    scorer: str
    bubblewrap: str
    processes: int
    arguments: tuple[str, ...]
    network: str
    view: BoxView
    filter: int
    """A file in memory with the filter of system calls."""
    strict_filter: int
    """Another one, which also refuses sockets of the internet."""
    session_leader: str = ""
    """What tasks with a terminal see of the program that gives it to them; empty: nothing."""

    def argv(self, command: Sequence[str], *, has_terminal: bool = False) -> tuple[str, ...]:
        """Return the arguments of bubblewrap for a task's command. The others are in a file, which nobody sees.

        They are empty if the task is to have a terminal and there is none for boxes.
        """
        if has_terminal and not self.session_leader:
            return ()
        command = (self.session_leader, "--ctty", "--", *command) if has_terminal else command
        limit = f"--nproc={self.processes}"
        score = (self.scorer, "-n", str(_SCORE))
        return (_LIMITER, limit, "--", *score, "--", self.bubblewrap, "--args", str(_ARGUMENTS), "--", *command)

    def files(
        self,
        work: str,
        variables: Mapping[str, str],
        *,
        status: int,
        limit: str = "",
        shown: tuple[str, ...] = (),
        cwd: str = "",
    ) -> BoxFiles:
        """Return the files for a task that works in a folder and has these variables. Raises `OSError`.

        It also sees what the arguments `shown` show, and starts in the folder `cwd`.

        With a `limit` it reaches that network at most. Bubblewrap keeps the network of its process for `outbound`.
        Bubblewrap itself gets no variable of the task: some make programs load libraries, outside of the box.
        """
        own = [part for name, value in variables.items() for part in ("--setenv", name, value)]
        network = self.reached(limit)
        apart: tuple[str, ...] = () if network in ("host", OUTBOUND) else ("--unshare-net",)
        resolver, found = -1, resolver_text(NAME_SERVER) if network == OUTBOUND else None
        with ExitStack() as opened:
            if found is not None:
                resolver = _in_memory(found.text.encode(errors="surrogateescape"))
                opened.callback(os.close, resolver)
                apart = ("--ro-bind-data", str(_RESOLVER), found.place)
            more = shown
            # An absolute path replaces the other one; bubblewrap warns of a second --chdir.
            more += ("--chdir", os.path.join(WORK_SEEN, cwd) if cwd else WORK_SEEN)  # noqa: PTH118 - once per task
            more += ("--bind", work, WORK_SEEN, "--remount-ro", "/dev", "--remount-ro", "/")
            arguments = _in_memory(os.fsencode("\0".join((*self.arguments, *apart, *more, *own, ""))))
            opened.callback(os.close, arguments)
            # Each bubblewrap reads the filter from its beginning.
            program_file = self.strict_filter if network == "none" else self.filter
            code = os.open(f"/proc/self/fd/{program_file}", os.O_RDONLY | os.O_CLOEXEC)
            opened.pop_all()
        return BoxFiles(filter=code, arguments=arguments, status=status, resolver=resolver)

    def reached(self, limit: str) -> str:
        """Return the network of a task with a limit; empty: none."""
        return narrower_of(limit or self.network, self.network)


def make_boxes(view: BoxView, *, network: str, path: str) -> Boxes | str:
    """Return boxes, one of which was tried, or why there are none; `path` is where programs are looked for."""
    found, limiter, scorer = _found(BUBBLEWRAP, path), _found(_LIMITER, path), _found(_SCORER, path)
    problem = why_not() or ("" if found else f"{BUBBLEWRAP} (the package bubblewrap) is not installed")
    lacking = next((name for name, place in ((_LIMITER, limiter), (_SCORER, scorer)) if not place), "")
    problem = problem or (f"{lacking} (the package util-linux) is not installed" if lacking else "")
    if problem:
        return problem
    try:
        known = subprocess.run([found, "--help"], capture_output=True, check=False, timeout=_TRIAL_SECONDS, text=True)
        arguments = [*_NAMESPACES, "--hostname", _HOST_NAME, "--die-with-parent"]
        arguments += [_NO_USER_NAMESPACES] if _NO_USER_NAMESPACES in known.stdout + known.stderr else []
        arguments += [*view_arguments(view), "--clearenv"]
        arguments += ["--seccomp", str(_FILTER), "--json-status-fd", str(_STATUS)]
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        boxes = Boxes(
            path=limiter,
            programs=path,
            scorer=scorer,
            bubblewrap=found,
            processes=PROCESSES if most == resource.RLIM_INFINITY else min(most, PROCESSES),
            arguments=tuple(arguments),
            network=network,
            view=view,
            filter=_in_memory(program(os.uname().machine)),
            strict_filter=_in_memory(program(os.uname().machine, has_network=False)),
            session_leader=_shown(_found(_SESSION_LEADER, path), view),
        )
        return _tried(boxes) or boxes
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{found}: {error}"


def _found(program: str, path: str) -> str:
    return next((place for folder in path.split(":") if os.access(place := f"{folder}/{program}", os.X_OK)), "")


def _shown(program: str, view: BoxView) -> str:
    """Return a program of the machine if tasks see it there; else empty."""
    return program if any(program.startswith(f"{folder}/") for folder in shown_in_boxes(view)) else ""


def _tried(boxes: Boxes) -> str:
    """Return why no box can be set up; empty if one can."""
    status, log = new_status(), _in_memory(b"")
    files = boxes.files("/", _NO_VARIABLES, status=status)
    try:
        actions = [*((os.POSIX_SPAWN_DUP2, *pair) for pair in files.places()), (os.POSIX_SPAWN_DUP2, log, 2)]
        process = os.posix_spawn(boxes.path, boxes.argv((_NO_PROGRAM,)), _NO_VARIABLES, file_actions=actions)
        os.waitpid(process, 0)
    finally:
        files.close()
    said = said_in(f"/proc/self/fd/{log}")
    if has_executed(status):
        said = f"{BUBBLEWRAP} does not tell whether it has executed a program"
    os.close(status)
    os.close(log)
    return "" if said.startswith(f"{NOT_EXECUTED}{_NO_PROGRAM}: ") else said


def new_status() -> int:
    """Return an empty file for the status of a box. Raises `OSError`."""
    return _in_memory(b"")


def has_executed(status: int) -> bool:
    """Return whether a box, which has ended with an exit code, has executed its task. The task cannot write there."""
    return _HAS_EXECUTED in os.pread(status, _STATUS_BYTES, 0)


def note_start() -> None:
    """Note in the status of the box which this process becomes now that it does so, beyond what bubblewrap writes."""
    os.pwrite(_STATUS, boottime_ns().to_bytes(_TIME_BYTES), _STATUS_BYTES)


def noted_start(status: int) -> int:
    """Return when a process noted that it becomes a box; 0 if none did."""
    return int.from_bytes(os.pread(status, _TIME_BYTES, _STATUS_BYTES))


def said_in(log: str) -> str:
    """Return the last line of the log of a task that was never executed, which thus has written nothing of it."""
    try:
        with open(log, "rb") as file:  # noqa: PTH123 - once per task that fails
            lines = file.read(MESSAGE_BYTES).decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it gives no reason"


def _in_memory(content: bytes) -> int:
    file = os.memfd_create(BUBBLEWRAP)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file
