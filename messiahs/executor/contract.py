"""What every back end that runs tasks promises its host.

The core asks by actions and learns by events; both are idempotent under the attempt's id, so a host may repeat an
action after a crash, and a back end may repeat an event.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from messiahs.core.interface.actions import (
    DiscardAttempt,
    EndAttempt,
    ExtendLease,
    MeasureAttempts,
    ResumeAttempt,
    StartAttempt,
    SuspendAttempt,
)
from messiahs.core.interface.events import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.model.ids import AttemptId

ExecutorAction = (
    StartAttempt | EndAttempt | SuspendAttempt | ResumeAttempt | MeasureAttempts | ExtendLease | DiscardAttempt
)
ExecutorEvent = AttemptStarted | AttemptEnded | AttemptsMeasured
OnEvent = Callable[[ExecutorEvent], None]
OnLost = Callable[[str], None]
"""Told, with a text for the log, that what runs the tasks was lost; the ends of its attempts follow as events."""

STDOUT, STDERR = "stdout", "stderr"
OUTPUT_NAMES = (STDOUT, STDERR)
"""What every attempt leaves behind, empty or not."""


class AttemptState(StrEnum):
    """How far an attempt that a back end knows has come."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempt:
    """An attempt that was started and not yet discarded; `ended` is set exactly when its state is ended.

    `ran_ns` is how long it has run, suspensions not counted, and `suspended_ns` how long it has been suspended now.
    """

    attempt: AttemptId
    state: AttemptState
    ran_ns: int = 0
    suspended_ns: int = 0
    ended: AttemptEnded | None = None


class Executor(Protocol):
    """Runs attempts: at most once each, and never past their limit or their claim's lease.

    Of a suspended attempt no process runs, and the time does not count against its limit; it keeps its place in its
    claim. One that is told to end is woken, so that it can do so by itself. A process that hides its attempt does not
    run while all attempts are suspended, and is ended with the next attempt that ends.

    Every attempt that was started ends with one `AttemptEnded` at least, and nothing of it runs when that is told; the
    `AttemptStarted` of a short one may be left out.
    """

    @property
    def degraded(self) -> str:
        """Why less is promised here than elsewhere (a sentence for the administrator); empty if nothing is."""

    @property
    def has_rebooted(self) -> bool:
        """Say whether the machine was started anew since the attempts known at `start` were made.

        If so, an attempt that the host remembers and `running` does not name may have run: it must not start again.
        """

    async def start(self, on_event: OnEvent, on_lost: OnLost) -> None:
        """Become ready: find what an earlier host left running, or begin anew.

        Nothing is told before `running` was asked for the first time. Callbacks come from the event loop, never from
        within a call of this interface. Raises `ExecutorError`.
        """

    async def stop(self, *, end_tasks: bool) -> None:
        """Let go of the tasks, which run on, or end them all: they are known as `lost` at the next start."""

    def perform(self, action: ExecutorAction) -> None:
        """Take an action in order; returns at once. What comes of it is told as events."""

    async def running(self) -> tuple[KnownAttempt, ...]:
        """Name every attempt that was started and not discarded; events that follow are told from now on.

        Raises `ExecutorError` while there is no starter.
        """

    def read_output(self, attempt: AttemptId, name: str, *, offset: int, limit: int) -> bytes:
        """Read at most `limit` bytes of a log, or of `work/PATH`, a file that an attempt wrote.

        Empty at its end, which may still move; a not yet started attempt has written nothing. Raises `ExecutorError`
        if the file is gone, or is not a regular file of the task's account.
        """
