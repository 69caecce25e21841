"""Messages between the starter and the zygote of a slot, on a socket that both inherit: frames as to the daemon."""

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.core.model.usage import Usage
from messiahs.executor.attempt_values import Start


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Start a task in the slot, which is empty; its logs come along as open files, and its standard input if any."""

    start: Start
    has_stdin: bool


class Terminate(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """Ask the first process and its group to end, and let them run."""


class Kill(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Kill all processes of the slot."""


class Stop(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """Stop all processes of the slot."""


class Continue(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """Let all processes of the slot run."""


class Stopped(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """The processes of the slot are stopped, or there are none."""


class Ready(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """The slot is set up."""


class Unusable(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=7):
    """The slot cannot be set up (`spawn_failed`, or `no_place`), or serves no longer; the zygote ends."""

    text: str
    cause: Cause = Cause.LOST


class Became(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=9):
    """The process that copied the inputs of the task has become the task."""


class Left(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=10):
    """The first process has ended, and all others were killed. With a cause, it has never become the task."""

    exit_code: int | None
    signal: int | None
    cause: Cause = Cause.NONE
    text: str = ""
    usage: Usage | None = None


class Cleared(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=11):
    """No process of the task remains, and nothing that it could write to: the slot is empty.

    With `is_spent` the task can have handed something of it to others, or something could not be replaced: no other
    task may have the slot.
    """

    is_spent: bool = False


ToZygote = Run | Terminate | Kill | Stop | Continue
ToStarter = Stopped | Ready | Unusable | Became | Left | Cleared
