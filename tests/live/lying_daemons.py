"""Runs the daemons of several sites as `tests.live.site_daemons`; the back ends of some lie about their tasks."""

import asyncio
from collections.abc import Callable
from typing import Final

from messiahs.core import queries
from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempt_values import Ended, event_of
from messiahs.executor.contract import ExecutorAction, KnownAttempt, OnEvent, OnLost
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.stub import StubExecutor

LOSES, NEVER_ENDS, DRIPS, HOLDS_OPEN = "b2", "b3", "b4", "b5"
"""The modules whose back ends lie."""
RIGHT: Final = "right\n"
"""What the tasks of a test write."""
_LOST_SECONDS: Final = 0.5
_DRIP_SECONDS: Final = 4.0


class LyingExecutor(StubExecutor):
    """Takes all tasks, runs none, enforces neither leases nor limits, and reports what its lie says (mutable)."""

    def __init__(self, lie: str) -> None:
        super().__init__(stdout=RIGHT.encode())
        self._lie = lie
        self._tell: OnEvent = lambda _: None
        self._begun: dict[AttemptId, None] = {}
        self._free_at = 0.0

    async def start(self, on_event: OnEvent, on_lost: OnLost) -> None:
        """Begin without attempts."""
        del on_lost
        self._tell = on_event

    async def stop(self, *, end_tasks: bool) -> None:
        """End nothing."""

    async def running(self) -> tuple[KnownAttempt, ...]:
        """Admit nothing."""
        return ()

    def perform(self, action: ExecutorAction) -> None:
        """Begin nothing, and end nothing."""
        if not isinstance(action, StartAttempt) or action.attempt in self._begun:
            return
        attempt, loop = action.attempt, asyncio.get_running_loop()
        self._begun[attempt] = None
        loop.call_soon(self._tell, AttemptStarted(attempt=attempt))
        if self._lie == LOSES:
            loop.call_later(_LOST_SECONDS, self._tell, AttemptEnded(attempt=attempt, cause=Cause.LOST))
        elif self._lie == HOLDS_OPEN:
            loop.call_later(_LOST_SECONDS, self._tell, _result_of(attempt))
        elif self._lie == DRIPS:
            self._free_at = max(self._free_at, loop.time()) + _DRIP_SECONDS
            loop.call_at(self._free_at, self._tell, _result_of(attempt))

    def read_output(self, attempt: AttemptId, name: str, *, offset: int, limit: int) -> bytes:
        """Return what the task would have written."""
        del attempt
        return RIGHT.encode()[offset : offset + limit] if name == "stdout" else b""


def _result_of(attempt: AttemptId) -> AttemptEnded:
    return event_of(Ended(attempt=attempt, exit_code=0, ran_ns=1, stdout_bytes=len(RIGHT)))


def _back_end(honest: Callable[..., OsProcessExecutor]) -> Callable[..., OsProcessExecutor | LyingExecutor]:
    def made(settings: StarterSettings, *, boottime_offset_ns: int) -> OsProcessExecutor | LyingExecutor:
        name = settings.directory.name
        if name == HOLDS_OPEN:
            # Whoever follows an output is shown no end of it.
            queries.is_executing = lambda *_args, **_named: True
        if name in (LOSES, NEVER_ENDS, DRIPS, HOLDS_OPEN):
            return LyingExecutor(name)
        return honest(settings, boottime_offset_ns=boottime_offset_ns)

    return made


if __name__ == "__main__":
    from messiahs.daemon.host import assembly
    from tests.live.site_daemons import serve

    assembly.OsProcessExecutor = _back_end(OsProcessExecutor)  # type: ignore[attr-defined, assignment]
    serve()
