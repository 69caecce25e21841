"""The back end that runs tasks as processes of this machine: the daemon's side of the starter's socket."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from messiahs.config.device_files import devices_for
from messiahs.config.settings import BUBBLEWRAP, PROCESS
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
from messiahs.core.model.environment_modules import with_modules
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import STARTER_ENDED, Ended, Known, Start, event_of
from messiahs.executor.contract import (
    ExecutorAction,
    ExecutorEvent,
    KnownAttempt,
    OnEvent,
    OnLost,
    TakenInput,
)
from messiahs.executor.linux.cgroups.finding import find_place
from messiahs.executor.linux.cgroups.removing import remove_groups
from messiahs.executor.linux.file_changes import FileChanges, Watch
from messiahs.executor.os_process.archives import archive_of, inputs_of
from messiahs.executor.os_process.assigned import variables_for
from messiahs.executor.os_process.known_attempts import known_attempts
from messiahs.executor.os_process.launch import StarterSettings, connect, end_starter, launch, wait_for_end
from messiahs.executor.os_process.link import StarterLink
from messiahs.executor.os_process.older_starters import why_not_started
from messiahs.executor.os_process.outputs import Outputs
from messiahs.executor.protocol.frames import (
    PROTOCOL,
    Ask,
    Discard,
    End,
    Extend,
    Fed,
    Feed,
    Hello,
    MeasureMemory,
    MemoryMeasured,
    News,
    Read,
    Resume,
    Started,
    Suspend,
    ToStarter,
)
from messiahs.executor.protocol.identity import recorded_identity
from messiahs.executor.protocol.layout import group_name

_STOP_NS = 15_000_000_000
_RETRY_SECONDS = 1.0
_OTHER_ISOLATION = "the starter of an earlier daemon still isolates tasks as `{}`: it has to end before that changes"


class OsProcessExecutor:
    """Runs attempts through the starter in `settings.directory`; one executor per directory at a time.

    `_open` has the attempts whose end is not reported yet, `_reported` those that ended and are not discarded. When the
    starter is lost, all open attempts that its successor does not know are lost too.
    """

    def __init__(self, settings: StarterSettings, *, boottime_offset_ns: int) -> None:
        self._settings = settings
        self._offset_ns = boottime_offset_ns
        self.silence_ns = settings.silence_ns
        """Maximum silence of the starter; may be changed at any time."""
        self._link: StarterLink | None = None
        self._waiting: list[ToStarter] = []
        self._unreported: list[ExecutorEvent] = []
        self._open: set[AttemptId] = set()
        self._reported: set[AttemptId] = set()
        self._asked: dict[int, asyncio.Future[Known]] = {}
        self._questions = 0
        self._feeding: dict[AttemptId, tuple[int, asyncio.Future[TakenInput]]] = {}
        self._renewal: asyncio.Task[None] | None = None
        self._lost: set[AttemptId] = set()
        self._lost_links: list[StarterLink] = []
        self._on_event: OnEvent | None = None
        self._on_lost: OnLost | None = None
        self._outputs: Outputs | None = None
        self._changes = FileChanges()
        self._degraded, self._isolation = "", PROCESS
        self._hello: Hello | None = None
        self._has_rebooted = False

    @property
    def degraded(self) -> str:
        """Why a task that hides may outlive the starter; empty where the kernel prevents it."""
        return self._degraded

    @property
    def isolation(self) -> str:
        """How the starter contains tasks."""
        return self._isolation

    @property
    def folder(self) -> Path | None:
        """Where the starter has the folders of attempts."""
        return None if self._hello is None else Path(self._hello.attempts_root)

    @property
    def has_rebooted(self) -> bool:
        """Whether the starter's journal is from an earlier boot of the machine."""
        return self._has_rebooted

    async def start(self, on_event: OnEvent, on_lost: OnLost) -> None:
        """Connect to the starter of an earlier daemon, or start one."""
        self._on_event, self._on_lost = on_event, on_lost
        await self._attach()

    async def stop(self, *, end_tasks: bool) -> None:
        """Leave the starter running, or end it with all tasks and wait until they are gone."""
        self._on_event = self._on_lost = None
        self._changes.close()
        if self._renewal is not None:
            self._renewal.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewal
        for lost in self._lost_links:
            await lost.close(stop_starter=False)
        link, self._link = self._link, None
        if link is not None:
            link.send(self._waiting)
            await link.close(stop_starter=end_tasks)
        self._waiting.clear()
        self._fail_questions()
        identity = recorded_identity(self._settings.directory)
        if end_tasks and identity is not None and not (link and await wait_for_end(identity, _STOP_NS)):
            await end_starter(self._settings.directory)
        if end_tasks:
            # The first process of a sandbox lives as long as the starter, which therefore cannot remove its group.
            remove_groups(find_place(prepares=False), group_name(self._settings.directory))

    def perform(self, action: ExecutorAction) -> None:
        """Accept an action; actions of one iteration of the event loop are sent together."""
        match action:
            case StartAttempt() if text := why_not_started(action, self._hello, devices=self._settings.devices):
                self._report(AttemptEnded(attempt=action.attempt, cause=Cause.SPAWN_FAILED, text=text))
                return
            case StartAttempt():
                self._open.add(action.attempt)
                command: ToStarter = self._start_of(action)
            case EndAttempt():
                self._open.add(action.attempt)
                command = End(
                    attempt=action.attempt,
                    grace_ns=action.grace_ns,
                    cause=action.cause,
                    only_if_queued=action.only_if_queued,
                )
            case SuspendAttempt():
                command = Suspend(attempt=action.attempt)
            case ResumeAttempt():
                command = Resume(attempt=action.attempt)
            case MeasureAttempts():
                command = MeasureMemory(attempts=action.attempts)
            case ExtendLease():
                command = Extend(claim=action.claim, until=self._boottime(action.until))
            case DiscardAttempt():
                self._reported.discard(action.attempt)
                self._open.discard(action.attempt)
                command = Discard(attempt=action.attempt)
            case _:
                assert_never(action)
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(command)

    async def running(self) -> tuple[KnownAttempt, ...]:
        """Query the starter."""
        known = await self._ask()
        attempts = tuple(known_attempts(known))
        self._open.update(one.attempt for one in attempts if one.ended is None)
        self._reported.update(one.attempt for one in attempts if one.ended is not None)
        self._open -= self._reported
        return attempts

    async def feed(self, attempt: AttemptId, content: bytes, *, offset_bytes: int, is_end: bool = False) -> TakenInput:
        """Send the piece to the starter, which answers when the task's pipe has taken it."""
        if self._link is None:
            raise ExecutorError("there is no starter at the moment", transient=True)
        _, earlier = self._feeding.pop(attempt, (0, None))
        if earlier is not None and not earlier.done():
            text = f"a later stream brings the standard input of {attempt}"
            earlier.set_exception(ExecutorError(text, transient=True))
        self._questions += 1
        number = self._questions
        taken: asyncio.Future[TakenInput] = asyncio.get_running_loop().create_future()
        self._feeding[attempt] = number, taken
        self._waiting.append(
            Feed(attempt=attempt, number=number, offset_bytes=offset_bytes, content=content, is_end=is_end)
        )
        # After the start of the attempt, which may still wait here.
        self._flush()
        try:
            return await taken
        finally:
            if self._feeding.get(attempt) == (number, taken):
                del self._feeding[attempt]

    def note_read(self, attempt: AttemptId, offset_bytes: int) -> None:
        """Tell the starter, which asks the task to wait."""
        if self._link is not None and self._hello is not None and self._hello.has_terminals:
            self._link.send([Read(attempt=attempt, offset_bytes=offset_bytes)])

    def read_output(self, attempt: AttemptId, name: str, *, offset: int, limit: int) -> bytes:
        """Read a file in the attempt's folder."""
        content = bytearray(limit)
        return bytes(content[: self.read_output_into(attempt, name, memoryview(content), offset=offset)])

    def read_output_into(self, attempt: AttemptId, name: str, buffer: memoryview, /, *, offset: int) -> int:
        """Read a file in the attempt's folder."""
        if self._outputs is None:
            raise ExecutorError("no starter was found yet", transient=True)
        return self._outputs.read_into(attempt, name, buffer, offset=offset, has_ended=attempt not in self._open)

    def watch_output(self, attempt: AttemptId, name: str) -> Watch | None:
        """Watch a file in the attempt's folder."""
        return None if self._outputs is None else self._outputs.watch(attempt, name, changes=self._changes)

    async def _attach(self) -> None:
        """Connect to a starter that speaks this protocol."""
        streams = await connect(self._settings.directory)
        link = None if streams is None else await StarterLink.greeted(*streams)
        if link is None or link.hello.protocol != PROTOCOL:
            if link is not None:
                await link.close(stop_starter=False)
            link = await StarterLink.greeted(*await launch(self._settings))
        if link is None:
            raise ExecutorError("the starter ended at once", transient=True)
        accounts = link.hello.accounts or ((link.hello.uid, link.hello.uid),)
        has_boxes = link.hello.isolation == BUBBLEWRAP
        self._outputs = Outputs(root=Path(link.hello.attempts_root), accounts=accounts, has_boxes=has_boxes)
        self._isolation, self._hello = link.hello.isolation, link.hello
        self._degraded, self._has_rebooted = link.hello.degraded, link.hello.has_rebooted
        if not self._is_as_chosen():
            self._degraded = "; ".join(filter(None, (self._degraded, _OTHER_ISOLATION.format(self._isolation))))
        self._link = link
        link.open(self._take, self._lose, silence_ns=lambda: self.silence_ns)

    def _is_as_chosen(self) -> bool:
        """Whether the starter contains tasks as the settings say; without a choice it says why it has no sandboxes."""
        if not self._settings.isolation:
            return self._isolation != PROCESS or bool(self._degraded)
        return self._isolation == self._settings.isolation

    def _flush(self) -> None:
        if self._link is not None and self._waiting:
            self._link.send(self._waiting)
            self._waiting.clear()

    async def _ask(self) -> Known:
        if self._link is None:
            raise ExecutorError("there is no starter at the moment", transient=True)
        self._flush()
        self._questions += 1
        answer: asyncio.Future[Known] = asyncio.get_running_loop().create_future()
        self._asked[self._questions] = answer
        self._link.send([Ask(number=self._questions)])
        return await answer

    def _take_fed(self, fed: Fed) -> None:
        number, taken = self._feeding.get(fed.attempt, (None, None))
        if taken is not None and number == fed.number:
            del self._feeding[fed.attempt]
            if not taken.done():
                taken.set_result(TakenInput(fed.offset_bytes, fed.is_closed, fed.has_terminal))

    def _take(self, message: News | Known | Fed) -> None:
        match message:
            case Started():
                self._report(AttemptStarted(attempt=message.attempt))
            case Ended():
                self._report(event_of(message))
            case MemoryMeasured():
                self._report(AttemptsMeasured(memory=message.memory))
            case Known():
                answer = self._asked.pop(message.number, None)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case Fed():
                self._take_fed(message)
            case _:
                assert_never(message)

    def _report(self, event: ExecutorEvent) -> None:
        if isinstance(event, AttemptEnded):
            self._open.discard(event.attempt)
            self._reported.add(event.attempt)
        if not self._unreported:
            # Delivered after the answer to `running`, for those that wait for it.
            asyncio.get_running_loop().call_soon(self._deliver)
        self._unreported.append(event)

    def _deliver(self) -> None:
        events, self._unreported = self._unreported, []
        for event in events:
            if self._on_event is not None:
                self._on_event(event)

    def _lose(self, text: str) -> None:
        """Give up the starter: its remains are ended, and a new one reports what became of its attempts."""
        if self._on_lost is None:
            # The executor is being stopped, and `stop` closes the link.
            return
        link, self._link = self._link, None
        assert link is not None
        unsent = {command.attempt for command in self._waiting if isinstance(command, Start)}
        self._lost |= self._open - unsent
        self._lost_links.append(link)
        self._fail_questions()
        if self._renewal is not None and not self._renewal.done():
            # The new starter is lost already: the renewal finds its question failed, and tries again.
            return
        self._on_lost(text)
        self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        """Start a new starter, and report the attempts that were lost with the last ones."""
        while True:
            await self._end_lost()
            try:
                await self._attach()
                known = await self._ask()
                if self._link is not None:
                    break
            except (ExecutorError, OSError) as error:
                if self._on_lost is not None:
                    self._on_lost(str(error))
                await asyncio.sleep(_RETRY_SECONDS)
        lost, self._lost = self._lost, set()
        ended = {end.attempt: end for end in known.ended}
        # The starter was to discard these, and died before that.
        self._waiting += [Discard(attempt=one) for one in ended if one not in lost and one not in self._reported]
        self._flush()
        for attempt in sorted(lost):
            gone = AttemptEnded(attempt=attempt, cause=Cause.LOST, text=STARTER_ENDED)
            self._report(event_of(ended[attempt]) if attempt in ended else gone)

    async def _end_lost(self) -> None:
        """End what is left of a starter that was lost."""
        # Before its links are closed: one that reads nothing keeps a link open for as long as it lives.
        await end_starter(self._settings.directory)
        while self._lost_links:
            await self._lost_links[0].close(stop_starter=False)
            del self._lost_links[0]

    def _fail_questions(self) -> None:
        lost = ExecutorError("the starter was lost", transient=True)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(lost)
        for _, taken in self._feeding.values():
            if not taken.done():
                taken.set_exception(lost)
        self._asked.clear()
        self._feeding.clear()

    def _boottime(self, instant: Instant) -> int:
        return instant - self._offset_ns

    def _start_of(self, action: StartAttempt) -> Start:
        archive = archive_of(action, self._settings.files)
        devices = devices_for(action.assigned, self._settings.devices)
        sees_others = not devices or self._isolation == PROCESS
        return Start(
            attempt=action.attempt,
            claim=action.claim,
            argv=with_modules(action.command.argv, action.command.env),
            # Last, so that no task takes what is not its own by a variable of that name.
            env=(*action.command.env, *variables_for(action.assigned, self._settings.counted, sees_others=sees_others)),
            places=action.places,
            limit_ns=action.limit_ns,
            lease_until=self._boottime(action.lease_until),
            inputs=inputs_of(action, archive, self._settings.files),
            outputs=action.command.outputs,
            takes_stdin=action.command.takes_stdin,
            limits=action.limits,
            archive=archive,
            account=action.account,
            network=action.network,
            cwd=action.command.cwd,
            terminal=None if (size := action.command.terminal) is None else (size.rows, size.columns),
            devices=devices,
        )
