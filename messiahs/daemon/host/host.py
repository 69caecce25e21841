"""The live host of one scheduling module: performs the core's actions, and answers requests of local users.

Everything runs in one event loop; commits and the task starter run beside it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.contract import Channels, NeighborAddress, Peer
from messiahs.channel.jobs import Jobs
from messiahs.channel.periodic_jobs import repeat
from messiahs.core import queries
from messiahs.core.interface.actions import (
    Answer,
    Decision,
    DiscardAttempt,
    DropLink,
    DropOutputs,
    Effect,
    EndAttempt,
    EndFetch,
    ExtendLease,
    FetchOutputs,
    Link,
    MeasureAttempts,
    Notify,
    Readmit,
    RefuseTransfer,
    Report,
    ResumeAttempt,
    SendControl,
    SendTasks,
    SendVector,
    ShutOff,
    StartAttempt,
    SuspendAttempt,
    TakeOutputs,
    TaskEnded,
    Unlink,
)
from messiahs.core.interface.events import AnswerTo, StoreChanged
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.interface.spliced_bytes import InputsMoving
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.counted import Counted
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, TaskId
from messiahs.core.model.instants import HOUR
from messiahs.core.model.routes import Leg
from messiahs.core.model.usage import Containment
from messiahs.daemon.audit.entries import Caller, Entry
from messiahs.daemon.audit.journal import Journal
from messiahs.daemon.audit.noting import Noted
from messiahs.daemon.host.contained import Expected, notes_of
from messiahs.daemon.host.disks import look_at_disks
from messiahs.daemon.host.driver import Driver
from messiahs.daemon.host.endings import Endings
from messiahs.daemon.host.measuring import measure_periodically
from messiahs.daemon.host.membership_notes import membership_notes
from messiahs.daemon.host.questions import Question, Questions
from messiahs.daemon.host.remains import remains_in
from messiahs.daemon.notifications.giving import Notifications
from messiahs.daemon.process.log_lines import DECISIONS, DecisionLines, log_report
from messiahs.daemon.storage.clock import Clock
from messiahs.daemon.storage.documents import time_document
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.transfer.file_retention import collect_periodically
from messiahs.daemon.transfer.forgotten_outputs import ForgottenOutputs
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.input_room import InputRoom
from messiahs.daemon.transfer.leg_reads import LegReads
from messiahs.daemon.transfer.output_arrivals import Outputs, failure_of
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.daemon.transfer.passed_files import PassingFiles
from messiahs.daemon.transfer.taken_outputs import KeptOutputs, OutputTaking
from messiahs.daemon.transfer.task_departures import Sending
from messiahs.errors import ChannelError, StoreError
from messiahs.executor.contract import Executor, KnownAttempt
from messiahs.probe.contract import Probe
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import ReadRequest

_LOG = logging.getLogger(DECISIONS)
_MOVING_SECONDS = 2.0
_WATCH_SECONDS = 1.0
_NOTED_NS = 7 * 24 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a host; a system without a machine has neither executor nor probe."""

    module: RecordedModule
    store: RowStore
    clock: Clock
    channels: Channels
    outputs: Outputs
    arrivals: ArrivingFiles
    passing: PassingFiles
    own_outputs: OwnOutputs
    reads: LegReads
    tls: TlsInForce
    journal: Journal
    notifications: Notifications
    executor: Executor | None = None
    probe: Probe | None = None
    expected: Expected = field(default_factory=Expected)
    counted: Callable[[], tuple[Counted, ...]] = tuple


class Host:
    """Performs actions, and turns their results into events."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self.notifications = parts, parts.notifications
        self.driver = Driver(parts.module, parts.store, clock=parts.clock, journal=parts.journal, perform=self._perform)
        self._sending = Sending(
            parts.arrivals.files,
            parts.channels,
            on_event=self.driver.post,
            is_wanted=self._is_wanted,
            is_held=self._is_held,
            known=parts.passing.known,
        )
        self._questions = Questions(self.driver)
        self._waiters: dict[TaskId, asyncio.Event] = {}
        self.endings = Endings()
        self._jobs = Jobs()
        self._forgotten_outputs = ForgottenOutputs(parts.outputs.home, self._jobs)
        self._fetches: dict[AttemptId, asyncio.Task[None]] = {}
        self._decisions = DecisionLines()
        self._taking = OutputTaking(
            parts.store,
            KeptOutputs(parts.arrivals.files, parts.arrivals.room, parts.outputs),
            submission_of=partial(queries.live_submission, parts.module.state),
            on_event=self.driver.post,
        )

    @property
    def module(self) -> RecordedModule:
        """The core; `queries` reads its state."""
        return self._parts.module

    @property
    def system(self) -> SystemId:
        """The module's own name."""
        return queries.system_of(self._parts.module.state)

    @property
    def store(self) -> RowStore:
        """The rows, read-only."""
        return self._parts.store

    @property
    def files(self) -> FileStore:
        """The inputs of tasks."""
        return self._parts.arrivals.files

    @property
    def input_room(self) -> InputRoom:
        """The room for them."""
        return self._parts.arrivals.room

    @property
    def channels(self) -> Channels:
        """The channels to other modules."""
        return self._parts.channels

    @property
    def clock(self) -> Clock:
        """The clock of the core's instants."""
        return self._parts.clock

    @property
    def containment(self) -> Containment | None:
        """How tasks are contained here, as the starter found it; None without a machine."""
        executor = self._parts.executor
        return None if executor is None else Containment(isolation=executor.isolation, lacks=executor.degraded)

    def notes(self) -> list[str]:
        """Return problems of this module for its administrator; empty if there are none."""
        has_space, renewed_at = queries.has_space(self.module.state), queries.renewed_at(self.module.state)
        notes = [] if has_space else [f"{self.driver.why_nothing_is_stored}: no new work is accepted"]
        if renewed_at is not None and self.clock.now() - renewed_at < _NOTED_NS:
            notes.append(
                f"its database was found to be an older copy at {time_document(renewed_at)}: what was stored after the "
                "copy is lost, and the numbers of tasks continue above those that were issued"
            )
        rests_until = queries.rests_until(self.module.state)
        if rests_until > self.clock.now():
            until = time_document(rests_until)
            notes.append(f"it places no task until {until}, because tasks of before the older copy may still run")
        notes += filter(None, [self._parts.tls.note()])
        notes += notes_of(self.containment, self._parts.expected)
        notes += membership_notes(self.module, has_joined=self._parts.expected.has_joined)
        unlinked = queries.why_unlinked(self.module.state)
        return [*notes, *(f"no link with {neighbor}: {text}" for neighbor, text in unlinked.items())]

    async def start(self) -> None:
        """Resume from the rows and the executor's attempts, then open the channels and begin to measure."""
        parts = self._parts
        if parts.tls.note():
            _LOG.warning("%s", parts.tls.note())
        else:
            _LOG.info("the certificate of this module is valid until %s", parts.tls.now.own.ends_at)
        known: tuple[KnownAttempt, ...] = ()
        if parts.executor is not None:
            await parts.executor.start(self.driver.post, self._on_executor_lost)
            known = tuple(await parts.executor.running())
            degraded, notes = parts.executor.degraded, notes_of(self.containment, parts.expected)
            if degraded and not any(degraded in note for note in notes):
                _LOG.warning("tasks are less contained than they could be: %s", degraded)
            for note in notes:
                _LOG.warning("%s", note)
        has_rebooted = parts.executor is not None and parts.executor.has_rebooted
        remains = remains_in(parts.store, known, has_rebooted=has_rebooted)
        if remains.forgotten is not None:
            _LOG.warning("the database is an older copy: what was stored after it is lost, and ids begin a new epoch")
        self._forgotten_outputs.delete_left(remains)
        self.driver.start(remains)
        for neighbor in queries.summary_of(self.module.state).shut_off:
            parts.channels.shut_off(neighbor)
        self._apply_members()
        await parts.channels.start()
        self._jobs.begin(
            repeat(self._watch_disk, period_seconds=_WATCH_SECONDS, failure="the disk could not be watched")
        )
        moving = "inputs on their way could not be reported"
        self._jobs.begin(repeat(self._report_moving_inputs, period_seconds=_MOVING_SECONDS, failure=moving))
        unwritten = "decisions could not be written to the audit log"
        self._jobs.begin(repeat(self.driver.write_audit, period_seconds=_WATCH_SECONDS, failure=unwritten))
        self._jobs.begin(collect_periodically(parts.arrivals, parts.passing))
        if parts.probe is not None and parts.executor is not None:
            measuring = measure_periodically(
                parts.probe, parts.executor, counted=parts.counted, on_measured=self.driver.post
            )
            self._jobs.begin(measuring)

    def _apply_members(self) -> None:
        """Dial and accept the neighbors of run time, and no removed ones, from the first moment on."""
        channels = self._parts.channels
        for member in queries.members_of(self.module.state).values():
            channels.link(NeighborAddress(system=member.system, address=member.address or None))
        for removed in queries.removed_from(self.module.state).values():
            if removed.is_ended:
                channels.unlink(removed.system)

    async def stop(self) -> None:
        """Close the channels, end the tasks, and store the final state."""
        await self._parts.channels.stop()
        await self.notifications.stop()
        if self._parts.executor is not None:
            await self._parts.executor.stop(end_tasks=True)
        await self._sending.stop()
        await self._jobs.stop()
        await self.driver.stop()
        self._parts.module.end_recording()
        self._parts.store.close()

    async def ask(self, make: Callable[[AnswerTo], Question], by: Caller | None = None) -> Answer:
        """Return the answer to a user's request, which follows when everything is stored (`Questions.ask`)."""
        return await self._questions.ask(make, by)

    def note(self, entry: Entry) -> None:
        """Write a decision that the core knows nothing of to the audit log, within a second."""
        self._parts.journal.note(Noted(entry))

    async def task_ended(self, task: TaskId, timeout_seconds: float) -> None:
        """Wait until a task ends, or all tasks of an array; returns after the timeout at the latest."""
        waiter = self._waiters.setdefault(task, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await waiter.wait()

    def read_output(self, leg: Leg, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        """Read the output of a local user's task, wherever it runs; raises what `Channels.fetch` raises."""
        parts = self._parts
        return parts.own_outputs.read(request) if leg.system == self.system else parts.reads.fetch(leg, request)

    def _is_wanted(self, attempt: AttemptId) -> bool:
        return queries.is_wanted(self.module.state, attempt)

    def _is_held(self, claim: ClaimId) -> bool:
        return queries.present_leg(self.module.state, claim) is not None

    def _on_executor_lost(self, text: str) -> None:
        _LOG.error("the task starter was lost: %s; its tasks are lost with it", text)

    async def _watch_disk(self) -> None:
        """Accept no new work while there is only room for the results of accepted work."""
        full = await look_at_disks(self.store, self._parts.arrivals, executor=self._parts.executor)
        has_space = full is None and not self.driver.has_failed
        if has_space != queries.has_space(self.module.state):
            what = f"the disk of {full or self.store.folder} is full: no new work is accepted"
            _LOG.warning("the disk has room again" if has_space else what)
            self.driver.post(StoreChanged(has_space=has_space))

    async def _report_moving_inputs(self) -> None:
        parts = self._parts
        self._sending.give_up_ended()
        for claim in (*sorted(self._sending.bringing), *parts.arrivals.arriving, *parts.passing.claims):
            self.driver.post(InputsMoving(claim=claim))

    def _perform(self, action: Effect) -> None:
        channels = self._parts.channels
        match action:
            case SendControl():
                channels.send_control(action.to, action.message)
            case SendVector():
                channels.send_vector(action.to, action.message)
            case SendTasks() if any(task.command.inputs for task in action.message.tasks):
                self._jobs.begin(self._sending.send(action))
            case SendTasks():
                channels.send_tasks(action.to, action.address, action.message)
            case RefuseTransfer():
                refusal = TransferAnswer(claim=action.claim, problem=action.text, kind=action.kind)
                channels.refuse_transfer(Peer(system=action.to, key=action.key), refusal)
            case (
                StartAttempt()
                | EndAttempt()
                | SuspendAttempt()
                | ResumeAttempt()
                | MeasureAttempts()
                | ExtendLease()
                | DiscardAttempt()
            ):
                if self._parts.executor is not None:
                    self._parts.executor.perform(action)
            case FetchOutputs():
                self._fetches[action.attempt] = self._jobs.begin(self._fetch(action))
            case TakeOutputs():
                self._jobs.begin(self._taking.take(action))
            case EndFetch():
                self._jobs.begin(self._end_fetch(action.attempt))
            case DropLink():
                channels.drop_link(action.neighbor, action.text)
            case ShutOff():
                channels.shut_off(action.neighbor)
            case Readmit():
                channels.readmit(action.neighbor)
            case Link():
                channels.link(NeighborAddress(system=action.neighbor.system, address=action.address or None))
            case Unlink():
                channels.unlink(action.neighbor)
            case Answer():
                self._questions.settle(action)
            case TaskEnded():
                self._note_end(action.task)
            case Decision():
                self._decisions.note(action)
            case Notify():
                self.notifications.give(action.notice)
            case DropOutputs():
                self._forgotten_outputs.delete(action.submission.number)
            case Report():
                log_report(_LOG, action)
            case _:
                assert_never(action)

    def _note_end(self, task: TaskId) -> None:
        self.endings.note(task)
        self._wake(task)
        array = task.submission
        if task.member and queries.live_submission(self.module.state, array) is None:
            self.endings.note(array)
            self._wake(array)
        if not task.member:
            # Any of its members may have ended.
            for waiting in [each for each in self._waiters if each.submission == array]:
                self._wake(waiting)

    def _wake(self, task: TaskId) -> None:
        waiter = self._waiters.pop(task, None)
        if waiter is not None:
            waiter.set()

    async def _fetch(self, action: FetchOutputs) -> None:
        try:
            kept = await self._parts.outputs.bring_home(action)
        except (ChannelError, StoreError, OSError) as error:
            has_other = await self._parts.reads.has_other_leg(action.leg, action.claim, error=error)
            self._fetches.pop(action.attempt, None)
            self.driver.post(failure_of(action, error, has_other_leg=has_other))
        else:
            self._fetches.pop(action.attempt, None)
            self.driver.keep(kept)
            self.driver.post(OutputsHome(attempt=action.attempt))

    async def _end_fetch(self, attempt: AttemptId) -> None:
        fetch = self._fetches.pop(attempt, None)
        if fetch is not None:
            fetch.cancel()
            await asyncio.wait({fetch})
        await asyncio.to_thread(self._parts.outputs.discard, attempt)
