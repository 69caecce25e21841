"""The work of the starter: it accepts commands, starts and reaps processes, kills in time, and reports about attempts.

One step is: commands, `reap`, `enforce`, `settle`. Nothing is started before the journal has it, and no end is reported
before the journal has it; while the disk is full, nothing starts and reports of ends wait.
"""

from contextlib import suppress
from typing import assert_never

from msgspec import structs

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.usage import Containment
from messiahs.executor.attempt_values import REBOOTED, STARTER_ENDED, Ended, Known, Start, folder_name
from messiahs.executor.attempts import KILLED, LIMIT_GRACE_NS, NEVER, Held, NotSpawned, Phase, Table
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.processes import identity_of
from messiahs.executor.protocol.frames import (
    Command,
    Discard,
    End,
    Extend,
    Feed,
    MeasureMemory,
    News,
    Read,
    Resume,
    Started,
    Suspend,
)
from messiahs.executor.starter.disk_use import DiskUse
from messiahs.executor.starter.end_reports import end_of, leaves_outputs, truths
from messiahs.executor.starter.journal import Began, Discarded, Finished, Journal, Record, Spawned
from messiahs.executor.starter.memory_use import MemoryUse
from messiahs.executor.starter.output_search import Found
from messiahs.executor.starter.output_searches import OutputSearches
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.process_groups import end_group
from messiahs.executor.starter.standard_input import Inputs
from messiahs.executor.starter.task_processes import Exited, Staged, TaskProcesses
from messiahs.executor.starter.terminals import Terminals
from messiahs.executor.starter.watchdog import Watch

_STARTS_PER_STEP = 8
_STOP_GRACE_NS = 2_000_000_000


class Runner:
    """Attempts and what becomes of them; `reports` is for the daemon, in order."""

    def __init__(self, *, pool: Pool, journal: Journal, tasks: TaskProcesses, boot: str) -> None:
        self.reports: list[News] = []
        self.notes_processes = False
        """Whether the journal records processes, because they may outlive the starter."""
        self.is_stopping = False
        self.terminals = Terminals()
        self.inputs = Inputs(self.terminals)
        self.watch: Watch | None = None
        """The watchdog, which needs the next end of a running attempt's lease."""
        self.containment: Containment | None = None
        """How attempts are contained here, for the reports on their ends."""
        self.tasks = tasks
        self._pool, self._journal = pool, journal
        self._boot = boot
        self._table = Table()
        self._records: list[Record] = []
        self._unreported: dict[AttemptId, Ended] = {}
        self._is_disk_full = False
        self._searches = OutputSearches(pool.root)
        self._memory_use = MemoryUse(self._table, tasks)
        self._disk_use = DiskUse(
            self._table, pool.root, pool.capabilities, tasks.processes, must_show=tasks.must_show_files
        )

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
            remembered.ended[attempt] = end_of(held, self._pool, text=REBOOTED if has_rebooted else STARTER_ENDED)
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
                        self.inputs.expect(command)
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
            case Read():
                self.terminals.note_read(command.attempt, command.offset_bytes)
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
        if self._searches:
            return 0
        if self._is_disk_full:
            return NEVER
        can_start = not self.is_stopping and self.tasks.room > 0 and self._table.startable(1)
        if self._records or self._memory_use.is_asked or can_start:
            return 0
        return min(self._table.next_due, self.tasks.due_at, self._disk_use.due_at)

    @property
    def is_clearing(self) -> bool:
        """Whether killed processes are about to disappear."""
        return self.tasks.is_clearing

    def reap(self) -> None:
        """Find ended processes; an attempt ends when all of its processes have, and its outputs were sought."""
        for event in self.tasks.events():
            match event:
                case Staged(held, at):
                    if held.phase is Phase.RUNNING:
                        self._table.limit(held, at)
                case Exited():
                    self._exited(event)
                case _:
                    assert_never(event)
        for held, problem in self.tasks.cleared():
            text = "; ".join(filter(None, (problem, self._disk_use.text_of(held))))
            if leaves_outputs(held):
                self._searches.add(held, text)
            else:
                self._finish(held, cause=held.cause, text=text)
        for held, text, found in self._searches.ended():
            self._finish(held, cause=held.cause, text=text, found=found)

    def enforce(self) -> None:
        """End attempts that have reached their limit, or the end of their lease or grace period."""
        now = boottime_ns()
        self.tasks.step(now)
        if self._memory_use.is_asked and (measured := self._memory_use.measure()) is not None:
            self.reports.append(measured)
        if (beyond := self._disk_use.step(now)) is not None:
            beyond.cause, beyond.kill_at = Cause.DISK_LIMIT, KILLED
            self.tasks.kill(beyond)
        for held, cause in self._table.due_by(now):
            if held.phase is Phase.QUEUED:
                self._finish(held, cause=cause)
            elif held.phase is Phase.CLEARING and cause is Cause.LEASE_EXPIRED:
                self._seek_no_longer(held, cause)
            elif held.phase is Phase.RUNNING:
                held.cause = held.cause or cause
                if cause in (Cause.NONE, Cause.LEASE_EXPIRED):
                    held.kill_at = KILLED
                    self.tasks.kill(held)
                else:
                    self._terminate(held, LIMIT_GRACE_NS, now)
        if self.watch is not None:
            # Attempts whose lease has ended by now were killed.
            self.watch.set(self._table.leased_until(now))

    def settle(self) -> None:
        """Write ends and starts to the journal, then report the ends and start the attempts."""
        starting = [] if self.is_stopping else self._table.startable(min(_STARTS_PER_STEP, self.tasks.room))
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
        problem: NotSpawned | None
        try:
            account = self.tasks.account(held.start)
            taken = self._pool.take(held.folder, account)
            try:
                taken = self.inputs.open(held.start, taken, account=account)
                problem = self.tasks.start(held, taken)
            finally:
                taken.close()
        except Exception as error:  # noqa: BLE001 - one attempt that cannot start must not end all others
            problem = NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"the task cannot be set up: {error}")
        if problem is not None:
            held.exit_code = problem.exit_code
            self._finish(held, cause=problem.cause, text=problem.text)
            return
        self.inputs.begun(held.attempt)
        if held.is_staging:
            # Its limit counts from the time at which it has its inputs.
            held.limit_at = NEVER
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
                if not command.only_if_queued:
                    self._seek_no_longer(held, command.cause)
            case Phase.ENDED:
                self._report_again(held)
            case _:
                assert_never(held.phase)

    def _pause(self, command: Suspend | Resume) -> None:
        held = self._table.attempts.get(command.attempt)
        if held is None or held.phase is not Phase.RUNNING:
            return
        if isinstance(command, Resume):
            self._resume(held)
        elif held.kill_at == NEVER:
            self._table.suspend(held, boottime_ns())
            self.tasks.suspend(held)

    def _resume(self, held: Held) -> None:
        if held.suspended_at:
            self._table.resume(held, boottime_ns())
            self.tasks.resume(held)

    def _terminate(self, held: Held, grace_ns: int, now: int) -> None:
        if grace_ns > 0:
            self.tasks.terminate(held)
            self.inputs.hang_up(held.attempt)
            self._resume(held)
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

    def _exited(self, exited: Exited) -> None:
        held = exited.held
        if held.problem is not None and not held.cause:
            held.exit_code, held.cause = held.problem.exit_code, held.problem.cause
        else:
            held.exit_code, held.signal = exited.exit_code, exited.signal
        held.phase = Phase.CLEARING
        held.ended_at = boottime_ns()
        self.inputs.close(held.attempt)

    def _seek_no_longer(self, held: Held, cause: Cause) -> None:
        """End an attempt whose outputs are sought; one of which processes remain ends when they have."""
        if self._searches.give_up(held):
            self._finish(held, cause=held.cause or cause)

    def _finish(self, held: Held, *, cause: Cause, text: str = "", found: Found | None = None) -> None:
        held.cause = cause
        self.inputs.close(held.attempt)
        self.terminals.hang_up(held.attempt)
        ended = end_of(held, self._pool, text=text, found=found)
        if held.began_at:
            ended = structs.replace(ended, containment=self.containment)
        self.tasks.forget(held)
        self._table.end(held, ended)
        self._records.append(Finished(ended=ended))
        self._unreported[held.attempt] = ended
        if held.is_discarded:
            self._discard(held.attempt)
