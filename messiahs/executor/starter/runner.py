"""The work of the starter: it accepts commands, starts and reaps processes, kills in time, and reports about attempts.

One step is: commands, `reap`, `enforce`, `settle`. Nothing is started before the journal has it, and no end is reported
before the journal has it; while the disk is full, nothing starts and reports of ends wait.
"""

import os
import signal
from contextlib import suppress
from typing import assert_never

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempt_values import Ended, Known, Start, folder_name
from messiahs.executor.attempts import KILLED, LIMIT_GRACE_NS, NEVER, Held, NotSpawned, Phase, Table
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.processes import identity_of
from messiahs.executor.linux.strays import Children
from messiahs.executor.protocol.frames import (
    Command,
    Discard,
    End,
    Extend,
    Feed,
    MeasureMemory,
    News,
    Resume,
    Started,
    Suspend,
)
from messiahs.executor.starter.end_reports import end_of, truths
from messiahs.executor.starter.journal import Began, Discarded, Finished, Journal, Record, Spawned
from messiahs.executor.starter.leftovers import Clearing
from messiahs.executor.starter.memory_use import MemoryUse
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.process_groups import end_group, next_dead, signal_group
from messiahs.executor.starter.process_trees import ProcessTrees
from messiahs.executor.starter.spawn import Process, Spawner, problem_in
from messiahs.executor.starter.standard_input import Inputs
from messiahs.executor.starter.suspension import Suspended
from messiahs.executor.starter.used_resources import usage_of
from messiahs.executor.starter.watchdog import Watch

_STARTS_PER_STEP = 8
_REPORT_BYTES = 65_536
_STOP_GRACE_NS = 2_000_000_000


class Runner:
    """Attempts and their processes; `reports` is for the daemon, in order.

    `_processes` has exactly the attempts whose first process is not reaped yet, so that a number in it still refers to
    the process that was started.
    """

    def __init__(self, *, pool: Pool, journal: Journal, spawner: Spawner, children: Children, boot: str) -> None:
        self.reports: list[News] = []
        self.notes_processes = False
        """Whether the journal records processes, because they may outlive the starter."""
        self.is_stopping = False
        self.inputs = Inputs()
        self.watch: Watch | None = None
        """The watchdog, which needs the next end of a running attempt's lease."""
        self._pool, self._journal, self._spawner = pool, journal, spawner
        self._boot = boot
        self._table = Table()
        self._processes: dict[int, Held] = {}
        self._staging: list[Held] = []
        self._records: list[Record] = []
        self._unreported: dict[AttemptId, Ended] = {}
        self._is_disk_full = False
        self._trees = ProcessTrees(children, pool, self._processes)
        self.degraded = self._trees.degraded
        """Why tasks are less contained than elsewhere; empty if they are not."""
        self._clearing = Clearing(children=children, trees=self._trees, pool=pool, leaders=self._processes)
        self._suspended = Suspended(self._table, self._trees, self._processes)
        self._memory_use = MemoryUse(self._table, self._trees)

    def recover(self) -> bool:
        """Restore attempts from the journal: those that have not ended are lost. Return whether the machine rebooted.

        Processes of an earlier starter are ended first (after a reboot there are none).
        """
        remembered = self._journal.read()
        has_rebooted = remembered.boot_id not in (None, self._boot)
        for attempt, spawned in remembered.began.items():
            if spawned is not None and not has_rebooted:
                end_group(spawned)
            held = Held(attempt=attempt, folder=folder_name(attempt), cause=Cause.LOST)
            remembered.ended[attempt] = end_of(held, self._pool)
        for attempt, ended in remembered.ended.items():
            self._table.attempts[attempt] = Held(
                attempt=attempt, folder=folder_name(attempt), phase=Phase.ENDED, ended=ended
            )
        self._pool.open({held.folder for held in self._table.attempts.values()})
        self._journal.begin_anew(self._boot, truths(self._table, notes_processes=self.notes_processes))
        return has_rebooted

    def apply(self, command: Command) -> None:
        """Accept one command; a repeated one reports the known state again."""
        match command:
            case Start():
                held = self._table.attempts.get(command.attempt)
                if held is None:
                    self._table.queue(command)
                    if command.takes_stdin:
                        self.inputs.expect(command.attempt)
                else:
                    self._report_again(held)
            case End():
                self._end(command)
            case Suspend() | Resume():
                self._pause(command)
            case MeasureMemory():
                self._memory_use.ask(command.attempts)
            case Extend():
                self._table.extend(command.claim, command.until)
            case Feed():
                self.inputs.feed(command)
            case Discard():
                self._discard(command.attempt)
            case _:
                assert_never(command)

    def end_all(self) -> None:
        """Begin to end everything: every attempt is lost, and none starts any more."""
        self.is_stopping = True
        for held in list(self._table.attempts.values()):
            if held.phase in (Phase.QUEUED, Phase.RUNNING):
                self._end(End(attempt=held.attempt, grace_ns=_STOP_GRACE_NS, cause=Cause.LOST))

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self._table.claims

    @property
    def is_settled(self) -> bool:
        """Whether nothing runs or waits, and the journal lacks nothing."""
        return self.is_idle and not self._records

    @property
    def has_waiting(self) -> bool:
        """Whether attempts wait for a place."""
        return self._table.has_waiting

    @property
    def wake_at(self) -> int:
        """When the next step is due without an event; 0 for at once."""
        if self._is_disk_full:
            return NEVER
        if self._records or self._memory_use.is_asked or (not self.is_stopping and self._table.startable(1)):
            return 0
        return min(self._table.next_due, self._suspended.due_at)

    @property
    def is_clearing(self) -> bool:
        """Whether killed processes are about to disappear."""
        return bool(self._clearing)

    def reap(self) -> None:
        """Find ended processes; an attempt ends when all of its processes have."""
        while (info := next_dead()) is not None:
            process = info.si_pid
            held = self._processes.pop(process, None)
            if held is not None:
                # The dead leader still holds its number, so the group cannot be another one.
                signal_group(process, signal.SIGKILL)
            _, _, used = os.wait4(process, 0)
            self._trees.reaped(process)
            if held is not None:
                held.usage = usage_of(used)
                self._exited(held, info)
            elif process == self._pool.remover:
                self._pool.removed()
        if self._clearing:
            for held, text in self._clearing.ended():
                self._finish(held, cause=held.cause, text=text)

    def enforce(self) -> None:
        """End attempts that have reached their limit, or the end of their lease or grace period."""
        now = boottime_ns()
        for held in self._staging.copy():
            self._read_report(held, now)
        self._suspended.step(now)
        if self._memory_use.is_asked and (measured := self._memory_use.measure()) is not None:
            self.reports.append(measured)
        for held, cause in self._table.due_by(now):
            if held.phase is Phase.QUEUED:
                self._finish(held, cause=cause)
            elif held.phase is Phase.RUNNING:
                held.cause = held.cause or cause
                if cause in (Cause.NONE, Cause.LEASE_EXPIRED):
                    held.kill_at = KILLED
                    signal_group(held.process, signal.SIGKILL)
                else:
                    self._terminate(held, LIMIT_GRACE_NS, now)
        if self.watch is not None:
            # Attempts whose lease has ended by now were killed.
            self.watch.set(self._table.leased_until(now))

    def settle(self) -> None:
        """Write ends and starts to the journal, then report the ends and start the attempts."""
        starting = [] if self.is_stopping else self._table.startable(_STARTS_PER_STEP)
        records = [*self._records, *(Began(attempt=held.attempt) for held in starting)]
        if not records:
            return
        self._is_disk_full = not self._journal.write(records)
        if self._is_disk_full:
            return
        self._records.clear()
        self.reports += self._unreported.values()
        self._unreported.clear()
        for held in starting:
            self._begin(held)
        if self._journal.has_grown:
            # Without room for a second file, the first one keeps growing.
            with suppress(OSError):
                self._journal.begin_anew(self._boot, truths(self._table, notes_processes=self.notes_processes))

    def known(self, number: int) -> Known:
        """Return everything that is known; an end that the journal lacks counts as running."""
        return self._table.known(number, self._unreported, boottime_ns())

    @property
    def can_prepare(self) -> bool:
        """Whether an idle moment can be used to prepare for later attempts."""
        return self._pool.wants_more

    def prepare(self) -> None:
        """Prepare for later attempts."""
        self._pool.prepare_one()

    def _begin(self, held: Held) -> None:
        assert held.start is not None
        self._table.began(held, boottime_ns())
        if self.watch is not None:
            self.watch.lower(self._table.claims[held.start.claim].lease_until)
        outcome: Process | NotSpawned
        try:
            taken = self._pool.take(held.folder)
            try:
                taken = taken._replace(stdin=self.inputs.open(held.attempt))
                self._trees.begin(held.folder)
                outcome = self._spawner.spawn(held.start, taken)
            finally:
                taken.close()
        except Exception as error:  # noqa: BLE001 - one attempt that cannot start must not end all others
            outcome = NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"the task cannot be set up: {error}")
        if isinstance(outcome, NotSpawned):
            held.exit_code = outcome.exit_code
            self._finish(held, cause=outcome.cause, text=outcome.text)
            return
        held.process, held.report = outcome
        self._processes[held.process] = held
        self.inputs.begun(held.attempt)
        if held.report >= 0:
            # Its limit counts from the time at which it has its inputs.
            held.limit_at = NEVER
            self._staging.append(held)
        self.reports.append(Started(attempt=held.attempt))
        if self.notes_processes and (identity := identity_of(held.process)) is not None:
            self._records.append(Spawned(attempt=held.attempt, pid=identity.pid, started=identity.started))

    def _end(self, command: End) -> None:
        held = self._table.attempts.get(command.attempt)
        if held is None:
            held = self._table.attempts[command.attempt] = Held(
                attempt=command.attempt, folder=folder_name(command.attempt)
            )
        match held.phase:
            case Phase.QUEUED:
                self._finish(held, cause=command.cause)
            case Phase.RUNNING if command.only_if_queued:
                self._report_again(held)
            case Phase.RUNNING:
                held.cause = held.cause or command.cause
                self._terminate(held, command.grace_ns, boottime_ns())
            case Phase.CLEARING:
                pass
            case Phase.ENDED:
                self._report_again(held)
            case _:
                assert_never(held.phase)

    def _pause(self, command: Suspend | Resume) -> None:
        held = self._table.attempts.get(command.attempt)
        if held is not None and isinstance(command, Suspend):
            self._suspended.suspend(held)
        elif held is not None:
            self._suspended.resume(held)

    def _terminate(self, held: Held, grace_ns: int, now: int) -> None:
        if grace_ns > 0:
            signal_group(held.process, signal.SIGTERM)
            # A suspended task must be resumed to end by itself.
            signal_group(held.process, signal.SIGCONT)
            self._suspended.resume(held)
        held.kill_at = min(held.kill_at, now + grace_ns)
        self._table.expect(held.kill_at)

    def _discard(self, attempt: AttemptId) -> None:
        held = self._table.attempts.get(attempt)
        if held is None:
            return
        if held.phase is not Phase.ENDED:
            held.is_discarded = True
            self._end(End(attempt=attempt, grace_ns=0, cause=Cause.LOST))
            return
        del self._table.attempts[attempt]
        self._records.append(Discarded(attempt=attempt))
        self._pool.give_back(held.folder)

    def _report_again(self, held: Held) -> None:
        if held.ended is not None:
            if held.attempt not in self._unreported:
                self.reports.append(held.ended)
        elif held.phase is not Phase.QUEUED:
            self.reports.append(Started(attempt=held.attempt))

    def _read_report(self, held: Held, now: int) -> None:
        """Find out whether a process has become its task; for one that has ended, this is the final check."""
        try:
            report = os.read(held.report, _REPORT_BYTES)
        except BlockingIOError:
            return
        os.close(held.report)
        held.report = -1
        self._staging.remove(held)
        if report:
            held.problem = problem_in(report)
            if held.process in self._processes:
                # Whatever it reported, it never becomes the task.
                signal_group(held.process, signal.SIGKILL)
        elif held.phase is Phase.RUNNING:
            self._table.limit(held, now)

    def _exited(self, held: Held, info: os.waitid_result) -> None:
        if held.report >= 0:
            self._read_report(held, boottime_ns())
        if held.problem is not None and not held.cause:
            held.exit_code, held.cause = held.problem.exit_code, held.problem.cause
        elif info.si_code == os.CLD_EXITED:
            held.exit_code = info.si_status
        else:
            held.signal = info.si_status
        held.phase = Phase.CLEARING
        held.ended_at = boottime_ns()
        self.inputs.close(held.attempt)
        self._clearing.add(held)

    def _finish(self, held: Held, *, cause: Cause, text: str = "") -> None:
        held.cause = cause
        self.inputs.close(held.attempt)
        ended = end_of(held, self._pool, text)
        self._trees.forget(held.folder)
        self._table.end(held, ended)
        self._records.append(Finished(ended=ended))
        self._unreported[held.attempt] = ended
        if held.is_discarded:
            self._discard(held.attempt)
