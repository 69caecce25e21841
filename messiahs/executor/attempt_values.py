"""Values about attempts that the table of attempts and the starter's frames share: their starts, states and ends."""

import hashlib
import re
from typing import Final

import msgspec

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.core.model.output_names import DECLARED_PREFIX
from messiahs.core.model.task_files import Output
from messiahs.core.model.task_limits import TaskLimits
from messiahs.core.model.texts import printable
from messiahs.core.model.usage import Containment, Usage

REBOOTED = "the machine was rebooted; lost tasks are placed anew"
STARTER_ENDED = "the starter of its machine ended, and all tasks there with it; lost tasks are placed anew"
"""Why attempts were lost, shown to their users."""
TASK_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of all tasks, whoever runs the daemon and with whatever PATH (docs/tasks.md)."""
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


class Staged(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An input: the file `source` is copied to `name` in the task's working directory.

    With a target it is a symbolic link, and an empty folder has no source either.
    """

    name: str
    source: str
    size_bytes: int
    is_executable: bool
    link_target: str = ""
    is_folder: bool = False


class Start(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Run a command when its claim has a place; a repeated start only reports the state again."""

    attempt: AttemptId
    claim: ClaimId
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    places: int
    limit_ns: int | None
    lease_until: int
    inputs: tuple[Staged, ...] = ()
    outputs: tuple[str, ...] = ()
    takes_stdin: bool = False
    limits: TaskLimits = TaskLimits()
    archive: Staged | None = None
    """What is unpacked for it, which is no input any more; without a source: it did not come.

    By its name it is the image that is its root, or an environment, which it finds in its place.
    """
    account: str = ""
    """The name of the local account as which it runs; empty: as tasks usually do."""
    network: str = ""
    """What it reaches at most of the network, one of `NETWORKS`; empty: what the machine gives."""
    cwd: str = ""
    """Where it starts: relative to its working directory, or absolute; empty: there."""
    shown: tuple[str, ...] = ()
    """Arguments of bubblewrap that show what the starter has unpacked for it; a daemon states none."""
    terminal: tuple[int, int] | None = None
    """The rows and columns of its terminal, to which its input is brought in frames; None: it has none."""
    devices: tuple[str, ...] = ()
    """The device files that it finds in its /dev in a sandbox: those of the counted things assigned to it."""


class Left(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A declared output: a file, a symbolic link with a target, or an empty folder.

    The name is its path in the task's working directory.
    """

    name: str
    size_bytes: int
    is_executable: bool
    link_target: str = ""
    is_folder: bool = False


class Ended(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=10):
    """An attempt has ended; the fields are those of `AttemptEnded`."""

    attempt: AttemptId
    exit_code: int | None = None
    signal: int | None = None
    cause: Cause = Cause.NONE
    text: str = ""
    ran_ns: int = 0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    left: tuple[Left, ...] = ()
    usage: Usage | None = None
    containment: Containment | None = None


class Running(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An attempt that has begun: its run time, and the start of its suspension if it is suspended."""

    attempt: AttemptId
    ran_ns: int
    suspended_ns: int | None = None


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=11):
    """Everything that the starter knows, in answer to the `Ask` with that number."""

    number: int
    queued: tuple[AttemptId, ...]
    running: tuple[Running, ...]
    ended: tuple[Ended, ...]


def event_of(ended: Ended) -> AttemptEnded:
    """Convert an end to the core's event."""
    return AttemptEnded(
        attempt=ended.attempt,
        exit_code=ended.exit_code,
        signal=ended.signal,
        cause=ended.cause,
        text=printable(ended.text),
        ran_ns=ended.ran_ns,
        usage=ended.usage,
        containment=_printable(ended.containment),
        outputs=(
            Output(name="stdout", size_bytes=ended.stdout_bytes),
            Output(name="stderr", size_bytes=ended.stderr_bytes),
            *(
                Output(
                    name=f"{DECLARED_PREFIX}{one.name}",
                    size_bytes=one.size_bytes,
                    is_executable=one.is_executable,
                    link_target=one.link_target,
                    is_folder=one.is_folder,
                )
                for one in ended.left
            ),
        ),
    )


def _printable(contained: Containment | None) -> Containment | None:
    if contained is None or not contained.lacks:
        return contained
    return Containment(isolation=contained.isolation, lacks=printable(contained.lacks))


def folder_name(attempt: AttemptId) -> str:
    """Return the name of an attempt's folder; the name of its origin is hashed if it is unusual."""
    task = attempt.task
    system = str(task.system)
    if not _PLAIN_NAME.fullmatch(system):
        system = "~" + hashlib.blake2b(system.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{system}.{task.epoch:x}.{task.number}.{task.member}.{attempt.number}"
