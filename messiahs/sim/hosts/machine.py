"""A simulated machine: the starter's own table of attempts, with tasks that pass time instead of processes.

It outlives the daemon, enforces leases and limits itself, and after its own death retains the contents of its journal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import assert_never

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
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.usage import Usage
from messiahs.core.recovery import RunningAttempt
from messiahs.executor.attempt_values import Ended, Start, event_of, folder_name
from messiahs.executor.attempts import NEVER, Held, Phase, Table, ran_ns
from messiahs.sim.world.agenda import Agenda, DriftingClock
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.disk import Disk
from messiahs.sim.world.observer import Watcher

ExecutorAction = (
    StartAttempt | EndAttempt | SuspendAttempt | ResumeAttempt | MeasureAttempts | ExtendLease | DiscardAttempt
)
ExecutorEvent = AttemptStarted | AttemptEnded | AttemptsMeasured
_KILLED_SIGNAL = 9
_AT_ONCE = 1_000_000
_SILENCE_NS = 20 * SECOND
"""Time without a sign of its starter after which a daemon ends it."""
_OUTPUT_BYTES = 100
_MEMORY_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """The behavior of tasks: their run times are exponentially distributed, and equal for equal seeds and tasks.

    `failing` per cent of all attempts exit with code 1, and `writing` per cent write output.
    """

    seed: int
    mean_ns: int
    failing: int = 0
    writing: int = 0

    def of(self, task: TaskId) -> int:
        """Return the run time of a task in ns."""
        return 1 + int(Random(f"{self.seed}/{task}").expovariate(1) * self.mean_ns)  # noqa: S311 - no secret

    def end_of(self, attempt: AttemptId, ran_ns: int) -> Ended:
        """Return how an attempt ends by itself, after it has used one processor all the time."""
        usage = Usage(cpu_ns=ran_ns)
        if not self.failing and not self.writing:
            return Ended(attempt=attempt, exit_code=0, ran_ns=ran_ns, usage=usage)
        random = Random(f"{self.seed}/{attempt}")  # noqa: S311 - no secret
        fails, writes = random.randrange(100) < self.failing, random.randrange(100) < self.writing
        out = _OUTPUT_BYTES if writes else 0
        return Ended(attempt=attempt, exit_code=int(fails), ran_ns=ran_ns, stdout_bytes=out, usage=usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineParts:
    """The surroundings of a machine."""

    system: SystemId
    agenda: Agenda
    clock: DriftingClock
    disk: Disk
    conditions: Conditions
    watcher: Watcher
    run_times: RunTimes


class SimulatedMachine:
    """Starts attempts in order, at most `places` of a claim at a time (mutable)."""

    def __init__(self, parts: MachineParts) -> None:
        self.report: Callable[[ExecutorEvent], None] | None = None
        """Receives events for the daemon; None while it is down."""
        self.is_frozen = False
        self._parts = parts
        self._table = Table()
        self._starts: dict[AttemptId, StartAttempt] = {}
        self._unsent: dict[AttemptId, Ended] = {}
        self._left_ns: dict[AttemptId, int] = {}
        """Remaining run time of each running attempt when it last began or resumed."""
        self._resumed_at: dict[AttemptId, int] = {}
        """When each attempt that is not suspended last began or resumed."""
        self._deferred: list[Callable[[], None]] = []
        self._unread: list[ExecutorAction] = []
        """Actions sent to a starter that is stopped."""
        self._is_stopped = False
        self._stops = 0
        self._life = 0
        self._wakes_at = NEVER

    def perform(self, action: ExecutorAction) -> None:
        """Perform an action of the core; its results are reported as events. A stopped starter performs it later."""
        if self.is_frozen:
            self._unread.append(action)
            return
        match action:
            case StartAttempt():
                self._start(action)
            case EndAttempt():
                self._end(action)
            case SuspendAttempt():
                self._suspend(action.attempt)
            case ResumeAttempt():
                self._resume(action.attempt)
            case MeasureAttempts():
                used = self._parts.conditions.memory
                memory = [
                    (each, used.get(each.task, _MEMORY_BYTES)) for each in action.attempts if each in self._left_ns
                ]
                self._report(AttemptsMeasured(memory=tuple(memory)))
            case ExtendLease():
                self._table.extend(action.claim, action.until)
            case DiscardAttempt():
                self._discard(action.attempt)
            case _:
                assert_never(action)
        self._turn()

    def known(self) -> tuple[RunningAttempt, ...]:
        """Return every attempt that was started and not discarded; one whose end is not stored counts as running."""
        now = self._now()
        return tuple(
            RunningAttempt(
                attempt=held.attempt,
                is_running=held.phase is not Phase.QUEUED and ended is None,
                ran_ns=ran_ns(held, now),
                suspended_ns=now - held.suspended_at if held.suspended_at else None,
                ended=event_of(ended) if ended is not None else None,
            )
            for held in self._table.attempts.values()
            for ended in (None if held.attempt in self._unsent else held.ended,)
        )

    def has_outputs(self, attempt: AttemptId) -> bool:
        """Return whether the outputs of an attempt are still here."""
        held = self._table.attempts.get(attempt)
        return held is not None and held.phase is Phase.ENDED

    @property
    def held(self) -> tuple[AttemptId, ...]:
        """Every attempt that was started and not discarded."""
        return tuple(self._table.attempts)

    def lose_starter(self) -> None:
        """End the starter and all that it runs; its successor reads the journal."""
        self._life += 1
        self._wakes_at = NEVER
        lost = [held for held in self._table.attempts.values() if held.ended is None or held.attempt in self._unsent]
        for held in lost:
            ended = Ended(attempt=held.attempt, cause=Cause.LOST)
            if held.phase is Phase.QUEUED:
                del self._table.attempts[held.attempt]
            else:
                # How an ended one ended is unknown: the journal had no space for it.
                self._stop(held, ended)
            held.ended = ended
        journal = {attempt: held.ended for attempt, held in self._table.attempts.items() if held.ended is not None}
        self._table = Table()
        for attempt, ended in journal.items():
            self._table.attempts[attempt] = Held(
                attempt=attempt, folder=folder_name(attempt), phase=Phase.ENDED, ended=ended
            )
        self._unsent.clear()
        for held in lost:
            self._report(AttemptEnded(attempt=held.attempt, cause=Cause.LOST))

    def wipe(self) -> None:
        """Lose everything, including the journal."""
        self.lose_starter()
        self._table = Table()

    def freeze(self) -> None:
        """Freeze the machine with everything that runs on it."""
        self.is_frozen = True
        self._parts.watcher.froze(self._parts.system, is_frozen=True)

    def stop(self, *, is_daemon_up: bool) -> None:
        """Stop the starter while its tasks continue.

        Its watchdog ends it and all tasks when the first lease of a running attempt ends; a daemon that is up does so
        after a period of silence.
        """
        self.is_frozen = self._is_stopped = True
        self._stops += 1
        clock, now = self._parts.clock, self._parts.agenda.now
        leases = [claim.lease_until for claim in self._table.claims.values() if claim.active]
        delays = [clock.delay_until(Instant(until), now) for until in leases] + [_SILENCE_NS] * is_daemon_up
        if delays:
            self._parts.agenda.later(min(delays), partial(self._end_stopped, self._stops))

    def thaw(self) -> None:
        """Continue; leases that expired meanwhile are enforced first."""
        if not self.is_frozen:
            return
        self.is_frozen = False
        self._enforce()
        if not self._is_stopped:
            self._parts.watcher.froze(self._parts.system, is_frozen=False)
        self._is_stopped = False
        deferred, self._deferred = self._deferred, []
        for happen in deferred:
            happen()
        unread, self._unread = self._unread, []
        for action in unread:
            self.perform(action)
        self._turn()

    def on_disk_changed(self) -> None:
        """Start attempts and report ends that had to wait for space on the disk."""
        self._turn()

    def _end_stopped(self, stops: int) -> None:
        """End a stopped starter: actions that it has not read are lost, and discarded attempts are removed."""
        if not self._is_stopped or self._stops != stops:
            return
        unread, self._unread = self._unread, []
        self.is_frozen = self._is_stopped = False
        self._deferred.clear()
        self.lose_starter()
        for action in unread:
            match action:
                case StartAttempt() | EndAttempt() if action.attempt not in self._table.attempts:
                    self._report(AttemptEnded(attempt=action.attempt, cause=Cause.LOST))
                case DiscardAttempt():
                    self._discard(action.attempt)
                case _:
                    continue

    def _now(self) -> int:
        return self._parts.clock.read(self._parts.agenda.now)

    def _start(self, action: StartAttempt) -> None:
        held = self._table.attempts.get(action.attempt)
        if held is not None:
            if held.ended is not None and held.attempt not in self._unsent:
                self._report(event_of(held.ended))
            elif held.phase is Phase.RUNNING:
                self._report(AttemptStarted(attempt=action.attempt))
            return
        self._starts[action.attempt] = action
        conditions = self._parts.conditions
        has_limit = action.limit_ns is not None and not conditions.happens(conditions.unlimited)
        limit_ns = action.limit_ns if has_limit else None
        self._table.queue(Start(action.attempt, action.claim, (), (), action.places, limit_ns, action.lease_until))

    def _end(self, action: EndAttempt) -> None:
        held = self._table.attempts.get(action.attempt)
        if held is None:
            held = self._table.attempts[action.attempt] = Held(
                attempt=action.attempt, folder=folder_name(action.attempt)
            )
        if held.phase is Phase.QUEUED:
            self._finish(held, Ended(attempt=held.attempt, cause=action.cause))
        elif held.phase is Phase.RUNNING and not action.only_if_queued:
            held.cause = held.cause or action.cause
            if action.grace_ns:
                # A suspended attempt has to run again to end by itself.
                self._resume(held.attempt)
            conditions = self._parts.conditions
            delay_ns = conditions.up_to(min(action.grace_ns, conditions.lingering_ns))
            if delay_ns:
                self._when(delay_ns, lambda: self._kill(held))
            else:
                self._kill(held)
        elif held.ended is not None and held.attempt not in self._unsent:
            self._report(event_of(held.ended))

    def _discard(self, attempt: AttemptId) -> None:
        held = self._table.attempts.get(attempt)
        if held is None:
            return
        if held.phase is not Phase.ENDED:
            self._finish(held, Ended(attempt=attempt, cause=Cause.LOST))
        del self._table.attempts[attempt]
        self._unsent.pop(attempt, None)

    def _kill(self, held: Held) -> None:
        if held.phase is Phase.RUNNING:
            self._finish(held, Ended(attempt=held.attempt, signal=_KILLED_SIGNAL, cause=held.cause))
            self._turn()

    def _turn(self) -> None:
        """End attempts that are due, start attempts that have a place, and schedule the next call."""
        if self.is_frozen:
            return
        self._enforce()
        if not self._parts.disk.is_full:
            unsent, self._unsent = self._unsent, {}
            for ended in unsent.values():
                self._report(event_of(ended))
            for held in self._table.startable(_AT_ONCE):
                self._begin(held)
        due = self._table.next_due
        if due < min(self._wakes_at, NEVER):
            self._wakes_at = due
            clock, now = self._parts.clock, self._parts.agenda.now
            self._when(clock.delay_until(Instant(due), now), self._wake)

    def _wake(self) -> None:
        self._wakes_at = NEVER
        self._turn()

    def _enforce(self) -> None:
        for held, cause in self._table.due_by(self._now()):
            if held.phase is Phase.RUNNING:
                held.cause = held.cause or cause
                self._finish(held, Ended(attempt=held.attempt, signal=_KILLED_SIGNAL, cause=held.cause))
            elif held.phase is Phase.QUEUED:
                self._finish(held, Ended(attempt=held.attempt, cause=cause))

    def _begin(self, held: Held) -> None:
        run_ns = self._parts.run_times.of(held.attempt.task)
        self._table.began(held, self._now())
        conditions = self._parts.conditions
        if self._starts[held.attempt].command.inputs and conditions.happens(conditions.failed_staging):
            self._finish(held, Ended(attempt=held.attempt, cause=Cause.STAGING_FAILED))
            self._when(0, self._turn)
            return
        self._parts.watcher.began(self._parts.system, held.attempt, self._starts[held.attempt])
        self._report(AttemptStarted(attempt=held.attempt))
        self._left_ns[held.attempt] = run_ns
        self._continue(held)

    def _suspend(self, attempt: AttemptId) -> None:
        held, resumed_at = self._table.attempts.get(attempt), self._resumed_at.get(attempt)
        if held is None or resumed_at is None or held.cause:
            return
        self._table.suspend(held, self._now())
        self._left_ns[attempt] -= self._parts.agenda.now - self._resumed_at.pop(attempt)
        self._parts.watcher.paused(self._parts.system, attempt, is_paused=True)

    def _resume(self, attempt: AttemptId) -> None:
        held = self._table.attempts.get(attempt)
        if held is not None and held.suspended_at and held.phase is Phase.RUNNING:
            self._table.resume(held, self._now())
            self._parts.watcher.paused(self._parts.system, attempt, is_paused=False)
            self._continue(held)

    def _continue(self, held: Held) -> None:
        now = self._resumed_at[held.attempt] = self._parts.agenda.now
        self._when(self._left_ns[held.attempt], lambda: self._exit(held, now))

    def _exit(self, held: Held, resumed_at: int) -> None:
        """Let an attempt end by itself, unless it was suspended or ended since it last resumed."""
        if held.phase is Phase.RUNNING and self._resumed_at.get(held.attempt) == resumed_at:
            run_ns = self._parts.run_times.of(held.attempt.task)
            ended = self._parts.run_times.end_of(held.attempt, run_ns)
            if held.cause:
                # It was asked to end, and has done so.
                ended = Ended(attempt=held.attempt, exit_code=ended.exit_code, cause=held.cause, ran_ns=run_ns)
            self._finish(held, ended)
            self._turn()

    def _finish(self, held: Held, ended: Ended) -> None:
        self._stop(held, ended)
        self._table.end(held, ended)
        self._unsent[held.attempt] = ended

    def _stop(self, held: Held, ended: Ended) -> None:
        self._starts.pop(held.attempt, None)
        self._left_ns.pop(held.attempt, None)
        self._resumed_at.pop(held.attempt, None)
        self._parts.watcher.stopped(self._parts.system, event_of(ended))

    def _report(self, event: ExecutorEvent) -> None:
        if self.report is not None:
            self.report(event)

    def _when(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call, unless the starter has been replaced by then; calls wait while it is frozen."""
        life = self._life

        def unless_gone() -> None:
            if self._life != life:
                return
            if self.is_frozen:
                self._deferred.append(unless_gone)
            else:
                happen()

        self._parts.agenda.later(delay_ns, unless_gone)
