"""The interface of back ends that run tasks.

The core sends actions and receives events. Both are idempotent per attempt: a host may repeat an action after a crash,
and a back end may repeat an event.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from messiahs.core.interface.actions import (
    DiscardAttempt,
    EndAttempt,
    ExtendLease,
    MeasureAttempts,
    ResumeAttempt,
    StartAttempt,
    SuspendAttempt,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.model.ids import AttemptId

ExecutorAction = (
    StartAttempt | EndAttempt | SuspendAttempt | ResumeAttempt | MeasureAttempts | ExtendLease | DiscardAttempt
)
ExecutorEvent = AttemptStarted | AttemptEnded | AttemptsMeasured
OnEvent = Callable[[ExecutorEvent], None]
OnLost = Callable[[str], None]
"""Called with a text for the log when the process that runs the tasks was lost; events with their ends follow."""


class AttemptState(StrEnum):
    """State of an attempt that a back end knows."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempt:
    """An attempt that was started and not discarded; `ended` is set exactly when its state is ended.

    `ran_ns` is how long it has run without suspensions, and `suspended_ns` the duration of its current suspension.
    """

    attempt: AttemptId
    state: AttemptState
    ran_ns: int = 0
    suspended_ns: int = 0
    ended: AttemptEnded | None = None


class Changing(Protocol):
    """A file that may grow."""

    async def changed(self) -> None:
        """Wait until it has grown since the last call, or until `wake`."""

    def wake(self) -> None:
        """End the wait of `changed`, or the next one."""

    def close(self) -> None:
        """Watch it no more; repeated calls are allowed."""


class TakenInput(NamedTuple):
    """How many bytes of standard input an attempt has taken since it began.

    If `is_closed`, it takes no more: it has got the end, has closed its standard input, or has ended.
    """

    offset_bytes: int
    is_closed: bool
    has_terminal: bool = False
    """The attempt has a terminal, and takes frames (core/model/terminals.py)."""


class Executor(Protocol):
    """Runs attempts: each at most once, and never past its time limit or its claim's lease.

    No process of a suspended attempt runs, its time limit is not counted, and it keeps its place in its claim. A
    suspended attempt that must end is resumed, so that it can end by itself. A process that hides its attempt is
    stopped while all attempts are suspended, and is killed when the next attempt ends.

    An attempt with an image runs in it. It ends with `image_unusable` if no machine could use that image, and else with
    `staging_failed`, as it does in every back end that has no sandboxes of its own. One with an account runs as that,
    with all of its groups, or ends with `spawn_failed`, as it does in those other back ends, and where no task can have
    that account (any more).

    Every started attempt is reported by at least one `AttemptEnded`, and by then none of its processes runs; the
    `AttemptStarted` of a short one may be omitted.
    """

    @property
    def degraded(self) -> str:
        """Why this back end guarantees less here than elsewhere, as a sentence for the administrator; else empty."""

    @property
    def isolation(self) -> str:
        """How tasks are contained, as the attribute `isolation` of the machine; known once it is started."""

    @property
    def folder(self) -> Path | None:
        """The folder with the folders of attempts, on whose disk they write; None: there is none, or none yet."""

    @property
    def has_rebooted(self) -> bool:
        """Whether the machine was rebooted since the attempts known at `start` were made.

        If so, an attempt that the host remembers and `running` does not list may have run: it must not start again.
        """

    async def start(self, on_event: OnEvent, on_lost: OnLost) -> None:
        """Attach to what an earlier host left running, or begin without attempts.

        Nothing is reported before the first call of `running`. Callbacks come from the event loop, never from within a
        call of this interface. Raises `ExecutorError`.
        """

    async def stop(self, *, end_tasks: bool) -> None:
        """Detach from the tasks, which keep running, or end them all: the next start reports them as `lost`."""

    def perform(self, action: ExecutorAction) -> None:
        """Accept an action, in order, and return at once. Its effects are reported as events."""

    async def running(self) -> tuple[KnownAttempt, ...]:
        """Return every attempt that was started and not discarded; later events are reported from now on.

        Raises `ExecutorError` while there is no starter.
        """

    async def feed(self, attempt: AttemptId, content: bytes, *, offset_bytes: int, is_end: bool = False) -> TakenInput:
        """Bring a piece of standard input that begins at an offset; return when the attempt has taken it.

        An attempt gets each byte once: those before its offset are left out, and nothing of a piece after a gap is
        taken. A later call, also after a restart of the host, replaces the piece that waits, and the earlier call
        raises. A call without content and end returns the offset at once. `is_closed` is true also for an attempt that
        takes no input, or is unknown. Raises `ExecutorError`.
        """

    def note_read(self, attempt: AttemptId, offset_bytes: int) -> None:
        """Note that somebody who follows the output of an attempt with a terminal has read so much of it.

        Such an attempt waits while much of what it has shown is not read.
        """

    def read_output(self, attempt: AttemptId, name: str, *, offset: int, limit: int) -> bytes:
        """Read at most `limit` bytes of a log, or of `work/PATH`, a file that an attempt wrote.

        Empty at the end of the file, which may still grow, and for an attempt that has not started. Raises
        `ExecutorError` if the file is gone, or is not a regular file of the task's account.
        """

    def read_output_into(self, attempt: AttemptId, name: str, buffer: memoryview, /, *, offset: int) -> int:
        """Read at most a whole buffer of what `read_output` reads, and return the number of bytes; in any thread."""

    def watch_output(self, attempt: AttemptId, name: str) -> Changing | None:
        """Return what tells when a file that `read_output` reads has grown; None where only reading again does."""
