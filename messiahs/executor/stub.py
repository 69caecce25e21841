"""The back end that runs nothing: every attempt ends after a given delay with a given outcome."""

import asyncio
import time

from messiahs.config.settings import PROCESS
from messiahs.core.interface.actions import (
    DiscardAttempt,
    EndAttempt,
    ExtendLease,
    MeasureAttempts,
    ResumeAttempt,
    StartAttempt,
    SuspendAttempt,
)
from messiahs.core.interface.attempts import AttemptsMeasured, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.output_names import LOGS, STDOUT
from messiahs.core.model.usage import Usage
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import Ended, Start, event_of
from messiahs.executor.attempts import Held, Phase, Table, ran_ns
from messiahs.executor.contract import (
    AttemptState,
    ExecutorAction,
    ExecutorEvent,
    KnownAttempt,
    OnEvent,
    OnLost,
    TakenInput,
)

_TERMINATED = 15
_NO_TERMINALS = "nothing runs here that could have a terminal"
_STARTS_PER_STEP = 1_000_000
_MEMORY_BYTES = 1 << 20
"""Memory that every attempt reports."""


class StubExecutor:
    """Implements the interface with the starter's table of attempts, but without processes.

    An attempt ends `delay_ns` after it began, with `exit_code` and `stdout`.
    """

    def __init__(
        self, *, delay_ns: int = 0, exit_code: int = 0, stdout: bytes = b"", boottime_offset_ns: int = 0
    ) -> None:
        self._delay_ns, self._exit_code, self._stdout = delay_ns, exit_code, stdout
        self._offset_ns = boottime_offset_ns
        self._table = Table()
        self._ends_at: dict[AttemptId, int] = {}
        self._left_ns: dict[AttemptId, int] = {}
        """Remaining run time of suspended attempts."""
        self._inputs: dict[AttemptId, TakenInput] = {}
        """Of attempts that take standard input and have not ended."""
        self._reports: list[ExecutorEvent] = []
        self._on_event: OnEvent | None = None
        self._was_asked = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def degraded(self) -> str:
        """Empty: nothing runs, so nothing can escape."""
        return ""

    @property
    def isolation(self) -> str:
        """The weakest one: nothing runs."""
        return PROCESS

    @property
    def folder(self) -> None:
        """None: nothing is written."""
        return None

    @property
    def has_rebooted(self) -> bool:
        """False: nothing outlives the object."""
        return False

    async def start(self, on_event: OnEvent, on_lost: OnLost) -> None:  # noqa: ARG002 - a stub is never lost
        """Continue with attempts from before a stop, if any."""
        self._on_event, self._was_asked = on_event, False
        self._wake(0)

    async def stop(self, *, end_tasks: bool) -> None:
        """Stop reporting; time continues for running attempts."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_event = None
        if end_tasks:
            for held in list(self._table.attempts.values()):
                if held.phase is not Phase.ENDED:
                    self._finish(held, Ended(attempt=held.attempt, cause=Cause.LOST))
        self._reports.clear()

    def perform(self, action: ExecutorAction) -> None:
        """Accept an action."""
        match action:
            case StartAttempt():
                self._start(action)
            case EndAttempt():
                self._end(action)
            case SuspendAttempt() | ResumeAttempt():
                self._pause(action)
            case MeasureAttempts():
                running = (each for each in action.attempts if self._phase_of(each) is Phase.RUNNING)
                self._reports.append(AttemptsMeasured(memory=tuple((each, _MEMORY_BYTES) for each in running)))
            case ExtendLease():
                self._table.extend(action.claim, action.until - self._offset_ns)
            case DiscardAttempt():
                held = self._table.attempts.get(action.attempt)
                if held is not None and held.phase is Phase.ENDED:
                    del self._table.attempts[action.attempt]
        self._wake(0)

    async def running(self) -> tuple[KnownAttempt, ...]:
        """Return all attempts, and report events from now on."""
        self._was_asked = True
        self._step()
        self._reports.clear()
        return tuple(_known(held) for held in self._table.attempts.values())

    async def feed(self, attempt: AttemptId, content: bytes, *, offset_bytes: int, is_end: bool = False) -> TakenInput:
        """Take everything at once."""
        taken = self._inputs.get(attempt, TakenInput(0, is_closed=True))
        end = offset_bytes + len(content)
        if not taken.is_closed and offset_bytes <= taken.offset_bytes <= end:
            taken = self._inputs[attempt] = TakenInput(end, is_closed=is_end)
        return taken

    def note_read(self, attempt: AttemptId, offset_bytes: int) -> None:
        """Nothing waits."""

    def read_output(self, attempt: AttemptId, name: str, *, offset: int, limit: int) -> bytes:
        """Return the same text for every attempt that has begun."""
        held = self._table.attempts.get(attempt)
        if held is None:
            raise ExecutorError(f"{name} of {attempt} does not exist here (any more)", transient=False)
        if name not in LOGS:
            raise ExecutorError(f"{attempt} left no {name}", transient=False)
        if name != STDOUT or held.phase is Phase.QUEUED:
            return b""
        return self._stdout[offset : offset + limit]

    def read_output_into(self, attempt: AttemptId, name: str, buffer: memoryview, /, *, offset: int) -> int:
        """Return the same text for every attempt that has begun."""
        piece = self.read_output(attempt, name, offset=offset, limit=len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def watch_output(self, attempt: AttemptId, name: str) -> None:
        """Nothing grows."""

    def _start(self, action: StartAttempt) -> None:
        held = self._table.attempts.get(action.attempt)
        if held is not None:
            self._reports += [event_of(held.ended)] if held.ended is not None else []
            return
        if action.command.terminal is not None:
            held = self._table.attempts[action.attempt] = Held(attempt=action.attempt, folder="")
            self._finish(held, Ended(attempt=action.attempt, cause=Cause.SPAWN_FAILED, text=_NO_TERMINALS))
            return
        self._table.queue(
            Start(
                attempt=action.attempt,
                claim=action.claim,
                argv=action.command.argv,
                env=action.command.env,
                places=action.places,
                limit_ns=action.limit_ns,
                lease_until=action.lease_until - self._offset_ns,
            )
        )
        if action.command.takes_stdin:
            self._inputs[action.attempt] = TakenInput(0, is_closed=False)

    def _end(self, action: EndAttempt) -> None:
        held = self._table.attempts.get(action.attempt)
        if held is None:
            held = self._table.attempts[action.attempt] = Held(attempt=action.attempt, folder="")
        if held.ended is not None:
            self._reports.append(event_of(held.ended))
            return
        if action.only_if_queued and held.phase is not Phase.QUEUED:
            return
        number = _TERMINATED if held.phase is Phase.RUNNING else None
        self._finish(held, Ended(attempt=held.attempt, signal=number, cause=action.cause))

    def _pause(self, action: SuspendAttempt | ResumeAttempt) -> None:
        held, now = self._table.attempts.get(action.attempt), _now()
        if held is None or held.phase is not Phase.RUNNING:
            return
        if isinstance(action, SuspendAttempt) and not held.suspended_at:
            self._table.suspend(held, now)
            self._left_ns[held.attempt] = self._ends_at.pop(held.attempt) - now
        elif isinstance(action, ResumeAttempt) and held.suspended_at:
            self._table.resume(held, now)
            self._ends_at[held.attempt] = now + self._left_ns.pop(held.attempt)

    def _phase_of(self, attempt: AttemptId) -> Phase | None:
        held = self._table.attempts.get(attempt)
        return None if held is None else held.phase

    def _wake(self, delay_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_ns / 1e9, self._step)

    def _step(self) -> None:
        """End attempts that are due, begin those with a place, report both, and schedule the next step."""
        now = _now()
        for held, cause in self._table.due_by(now):
            number = None if held.phase is Phase.QUEUED else _TERMINATED
            self._finish(held, Ended(attempt=held.attempt, signal=number, cause=cause))
        while True:
            for attempt in [attempt for attempt, due in self._ends_at.items() if due <= now]:
                self._finish(self._table.attempts[attempt], self._outcome(attempt))
            starting = self._table.startable(_STARTS_PER_STEP)
            if not starting:
                break
            for held in starting:
                self._table.began(held, now)
                self._ends_at[held.attempt] = now + self._delay_ns
                self._reports.append(AttemptStarted(attempt=held.attempt))
        reports, self._reports = self._reports, []
        for report in reports if self._was_asked else ():
            if self._on_event is not None:
                self._on_event(report)
        due = min([self._table.next_due, *self._ends_at.values()])
        if self._on_event is not None and self._table.claims:
            self._wake(max(0, due - now))

    def _outcome(self, attempt: AttemptId) -> Ended:
        return Ended(
            attempt=attempt,
            exit_code=self._exit_code,
            ran_ns=self._delay_ns,
            stdout_bytes=len(self._stdout),
            usage=Usage(cpu_ns=0, suspended_ns=self._table.attempts[attempt].paused_ns),
        )

    def _finish(self, held: Held, ended: Ended) -> None:
        self._table.end(held, ended)
        self._ends_at.pop(held.attempt, None)
        self._left_ns.pop(held.attempt, None)
        self._inputs.pop(held.attempt, None)
        self._reports.append(event_of(ended))


def _known(held: Held) -> KnownAttempt:
    now, ended = _now(), None if held.ended is None else event_of(held.ended)
    return KnownAttempt(
        attempt=held.attempt,
        state=AttemptState.SUSPENDED if held.suspended_at and ended is None else AttemptState(held.phase.value),
        ran_ns=ran_ns(held, now),
        suspended_ns=now - held.suspended_at if held.suspended_at else 0,
        ended=ended,
    )


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
