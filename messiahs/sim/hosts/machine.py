"""A simulated machine: the starter's own table of attempts, with tasks that pass time in place of processes.

It outlives the daemon, keeps the leases and limits itself, and knows after its own death what its journal knew.
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
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.model.ids import AttemptId, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
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
"""So long a daemon waits for a sign of its starter before it ends it."""
_OUTPUT_BYTES = 100
_MEMORY_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """What tasks do: they run for exponentially distributed times, the same ones for the same seed and task.

    So many per cent of all attempts exit with code 1, and so many write something.
    """

    seed: int
    mean_ns: int
    failing: int = 0
    writing: int = 0

    def of(self, task: TaskId) -> int:
        """Give the run time of a task."""
        return 1 + int(Random(f"{self.seed}/{task}").expovariate(1) * self.mean_ns)  # noqa: S311 - no secret

    def end_of(self, attempt: AttemptId, ran_ns: int) -> Ended:
        """Say how an attempt ends by itself."""
        if not self.failing and not self.writing:
            return Ended(attempt=attempt, exit_code=0, ran_ns=ran_ns)
        random = Random(f"{self.seed}/{attempt}")  # noqa: S311 - no secret
        fails, writes = random.randrange(100) < self.failing, random.randrange(100) < self.writing
        return Ended(attempt=attempt, exit_code=int(fails), ran_ns=ran_ns, stdout_bytes=_OUTPUT_BYTES if writes else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineParts:
    """What a machine stands in."""

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
        self.tell: Callable[[ExecutorEvent], None] | None = None
        """Where the daemon listens, None while there is none."""
        self.is_frozen = False
        self._parts = parts
        self._table = Table()
        self._starts: dict[AttemptId, StartAttempt] = {}
        self._untold: dict[AttemptId, Ended] = {}
        self._left_ns: dict[AttemptId, int] = {}
        """What running attempts had still to run when they began or went on."""
        self._went_on_at: dict[AttemptId, int] = {}
        """When those that are not suspended did so."""
        self._deferred: list[Callable[[], None]] = []
        self._unread: list[ExecutorAction] = []
        """What the daemon has sent to a starter that is stopped."""
        self._is_stopped = False
        self._stops = 0
        self._life = 0
        self._wakes_at = NEVER

    def perform(self, action: ExecutorAction) -> None:
        """Take an action of the core; what comes of it is reported as events. A stopped starter reads it later."""
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
                self._say(AttemptsMeasured(memory=tuple(memory)))
            case ExtendLease():
                self._table.extend(action.claim, action.until)
            case DiscardAttempt():
                self._discard(action.attempt)
            case _:
                assert_never(action)
        self._turn()

    def known(self) -> tuple[RunningAttempt, ...]:
        """Name every attempt that was started and not discarded; an end that is not written down counts as running."""
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
            for ended in (None if held.attempt in self._untold else held.ended,)
        )

    def has_outputs(self, attempt: AttemptId) -> bool:
        """Say whether what an attempt left behind is still here."""
        held = self._table.attempts.get(attempt)
        return held is not None and held.phase is Phase.ENDED

    @property
    def held(self) -> tuple[AttemptId, ...]:
        """Every attempt that was started and not discarded."""
        return tuple(self._table.attempts)

    def lose_starter(self) -> None:
        """End the starter with everything that runs; the next one knows what its journal knew."""
        self._life += 1
        self._wakes_at = NEVER
        lost = [held for held in self._table.attempts.values() if held.ended is None or held.attempt in self._untold]
        for held in lost:
            ended = Ended(attempt=held.attempt, cause=Cause.LOST)
            if held.phase is Phase.QUEUED:
                del self._table.attempts[held.attempt]
            else:
                # Of one that has ended, nobody knows how: the journal had no room for it.
                self._stop(held, ended)
            held.ended = ended
        journal = {attempt: held.ended for attempt, held in self._table.attempts.items() if held.ended is not None}
        self._table = Table()
        for attempt, ended in journal.items():
            self._table.attempts[attempt] = Held(
                attempt=attempt, folder=folder_name(attempt), phase=Phase.ENDED, ended=ended
            )
        self._untold.clear()
        for held in lost:
            self._say(AttemptEnded(attempt=held.attempt, cause=Cause.LOST))

    def wipe(self) -> None:
        """Lose everything, the journal too."""
        self.lose_starter()
        self._table = Table()

    def freeze(self) -> None:
        """Stand still, with everything that runs."""
        self.is_frozen = True
        self._parts.watcher.froze(self._parts.system, is_frozen=True)

    def stop(self, *, is_daemon_up: bool) -> None:
        """Stop the starter while its tasks run on.

        Its watchdog ends it with all tasks when the first lease of a running attempt ends; a daemon that runs does so
        when it has heard nothing for a while.
        """
        self.is_frozen = self._is_stopped = True
        self._stops += 1
        clock, now = self._parts.clock, self._parts.agenda.now
        leases = [claim.lease_until for claim in self._table.claims.values() if claim.active]
        delays = [clock.delay_until(Instant(until), now) for until in leases] + [_SILENCE_NS] * is_daemon_up
        if delays:
            self._parts.agenda.later(min(delays), partial(self._end_stopped, self._stops))

    def thaw(self) -> None:
        """Go on; leases that ran out meanwhile are looked at first."""
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
        """Begin and tell what had to wait for room on the disk."""
        self._turn()

    def _end_stopped(self, stops: int) -> None:
        """End a stopped starter: what it has not read is lost with it, and what was discarded is not kept."""
        if not self._is_stopped or self._stops != stops:
            return
        unread, self._unread = self._unread, []
        self.is_frozen = self._is_stopped = False
        self._deferred.clear()
        self.lose_starter()
        for action in unread:
            match action:
                case StartAttempt() | EndAttempt() if action.attempt not in self._table.attempts:
                    self._say(AttemptEnded(attempt=action.attempt, cause=Cause.LOST))
                case DiscardAttempt():
                    self._discard(action.attempt)
                case _:
                    continue

    def _now(self) -> int:
        return self._parts.clock.read(self._parts.agenda.now)

    def _start(self, action: StartAttempt) -> None:
        held = self._table.attempts.get(action.attempt)
        if held is not None:
            if held.ended is not None and held.attempt not in self._untold:
                self._say(event_of(held.ended))
            elif held.phase is Phase.RUNNING:
                self._say(AttemptStarted(attempt=action.attempt))
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
                # One that stands still has to run once more to end by itself.
                self._resume(held.attempt)
            conditions = self._parts.conditions
            delay_ns = conditions.up_to(min(action.grace_ns, conditions.lingering_ns))
            if delay_ns:
                self._when(delay_ns, lambda: self._kill(held))
            else:
                self._kill(held)
        elif held.ended is not None and held.attempt not in self._untold:
            self._say(event_of(held.ended))

    def _discard(self, attempt: AttemptId) -> None:
        held = self._table.attempts.get(attempt)
        if held is None:
            return
        if held.phase is not Phase.ENDED:
            self._finish(held, Ended(attempt=attempt, cause=Cause.LOST))
        del self._table.attempts[attempt]
        self._untold.pop(attempt, None)

    def _kill(self, held: Held) -> None:
        if held.phase is Phase.RUNNING:
            self._finish(held, Ended(attempt=held.attempt, signal=_KILLED_SIGNAL, cause=held.cause))
            self._turn()

    def _turn(self) -> None:
        """End what is due, begin what has a place, and see when something is due again."""
        if self.is_frozen:
            return
        self._enforce()
        if not self._parts.disk.is_full:
            unsent, self._untold = self._untold, {}
            for ended in unsent.values():
                self._say(event_of(ended))
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
        self._say(AttemptStarted(attempt=held.attempt))
        self._left_ns[held.attempt] = run_ns
        self._go_on(held)

    def _suspend(self, attempt: AttemptId) -> None:
        held, went_on_at = self._table.attempts.get(attempt), self._went_on_at.get(attempt)
        if held is None or went_on_at is None or held.cause:
            return
        self._table.suspend(held, self._now())
        self._left_ns[attempt] -= self._parts.agenda.now - self._went_on_at.pop(attempt)
        self._parts.watcher.paused(self._parts.system, attempt, is_paused=True)

    def _resume(self, attempt: AttemptId) -> None:
        held = self._table.attempts.get(attempt)
        if held is not None and held.suspended_at and held.phase is Phase.RUNNING:
            self._table.resume(held, self._now())
            self._parts.watcher.paused(self._parts.system, attempt, is_paused=False)
            self._go_on(held)

    def _go_on(self, held: Held) -> None:
        now = self._went_on_at[held.attempt] = self._parts.agenda.now
        self._when(self._left_ns[held.attempt], lambda: self._exit(held, now))

    def _exit(self, held: Held, went_on_at: int) -> None:
        """Let an attempt end by itself, if nothing has stopped it since it went on."""
        if held.phase is Phase.RUNNING and self._went_on_at.get(held.attempt) == went_on_at:
            run_ns = self._parts.run_times.of(held.attempt.task)
            ended = self._parts.run_times.end_of(held.attempt, run_ns)
            if held.cause:
                # It was asked to end, and did so.
                ended = Ended(attempt=held.attempt, exit_code=ended.exit_code, cause=held.cause, ran_ns=run_ns)
            self._finish(held, ended)
            self._turn()

    def _finish(self, held: Held, ended: Ended) -> None:
        self._stop(held, ended)
        self._table.end(held, ended)
        self._untold[held.attempt] = ended

    def _stop(self, held: Held, ended: Ended) -> None:
        self._starts.pop(held.attempt, None)
        self._left_ns.pop(held.attempt, None)
        self._went_on_at.pop(held.attempt, None)
        self._parts.watcher.stopped(self._parts.system, event_of(ended))

    def _say(self, event: ExecutorEvent) -> None:
        if self.tell is not None:
            self.tell(event)

    def _when(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Let something happen later, unless the starter is another one by then; nothing does while it is frozen."""
        life = self._life

        def unless_gone() -> None:
            if self._life != life:
                return
            if self.is_frozen:
                self._deferred.append(unless_gone)
            else:
                happen()

        self._parts.agenda.later(delay_ns, unless_gone)
