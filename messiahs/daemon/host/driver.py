"""Drives the core in real time: events in, one transaction for the rows, then the other actions.

While a transaction is being written, further events are processed and form the next batch. Events of the module itself
come first, then the requests of its users, who take turns, then what neighbors send, who take turns with what remains
(`turns`), then timeouts that are due. Each step lasts some milliseconds.
"""

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Effect, Forget, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.batches import Batch, Batches
from messiahs.core.interface.events import (
    ControlReceived,
    Event,
    LinkDown,
    LinkRefused,
    LinkUp,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MICROSECOND, MILLISECOND, SECOND, Instant
from messiahs.core.recovery import Remains
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.audit.journal import Journal, Written
from messiahs.daemon.audit.noting import Noter
from messiahs.daemon.host.failed_starts import FailedStarts
from messiahs.daemon.host.turns import S, Turns, Users, Work
from messiahs.daemon.host.user_turns import UserTurns
from messiahs.daemon.host.watching import Watcher
from messiahs.daemon.process.decision_limit import DecisionLimit
from messiahs.daemon.storage.clock import Clock
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput
from messiahs.errors import StoreError, UnusableStateError, lacks_files
from messiahs.trace.record.recorder import RecordedModule

_LOG = logging.getLogger(__name__)
_SMALL_BATCH = 16
_BATCH_SECONDS = 0.005
"""Larger batches than the small one are committed at most this often."""
_RETRY_SECONDS = 1.0
_BUG_EXIT = 70
_USERS_NS = 5 * MILLISECOND
"""What users may take in one step."""
_NEIGHBORS_NS = 2 * MILLISECOND
"""What those of all neighbors together may take; at least one is handled."""
_TIMEOUTS_NS = 2 * MILLISECOND
"""What timeouts that are due may take, such as rounds of hundreds of shapes; at least one is fired."""
_BACKLOG = 512
"""While more actions wait for a transaction, neighbors wait."""
_ROW_NS, _EFFECT_NS = 60 * MICROSECOND, 30 * MICROSECOND
"""What storing a row and performing another action cost outside of the core."""

P = ParamSpec("P")


def _or_die(method: Callable[Concatenate["Driver", P], None]) -> Callable[Concatenate["Driver", P], None]:
    """End the process if a method fails, because the core's state may then differ from its rows.

    The restarted daemon resumes from the rows.
    """

    @wraps(method)
    def guarded(self: "Driver", /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except BaseException:  # noqa: BLE001 - after any error the process must not continue
            _LOG.critical(
                "this is a bug; the daemon ends, and resumes from its rows when it starts again", exc_info=True
            )
            logging.shutdown()
            os._exit(_BUG_EXIT)

    return guarded


class Driver:
    """Owns the core. Everything runs in one event loop, except commits, which have a thread of their own."""

    def __init__(
        self,
        module: RecordedModule,
        store: RowStore,
        *,
        clock: Clock,
        journal: Journal,
        perform: Callable[[Effect], None],
    ) -> None:
        self.module = module
        self._store, self._clock, self._perform = store, clock, perform
        self._noter, self._journal = Noter(module), journal
        self._limit = DecisionLimit(queries.system_of(module.state))
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._own: deque[Event | KeepOutput] = deque()
        self._turns = Turns[SystemId](self._on_throttled)
        self.users = UserTurns(on_waiting=self._schedule_step, on_active=self._note_users)
        self._batches = Batches[KeepOutput]()
        self._is_turn_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._next_turn: asyncio.TimerHandle | None = None
        self._commit: asyncio.Future[None] | None = None
        self._committed_at = 0.0
        self.watchers: list[Watcher] = [FailedStarts()]
        self._is_stopping = False
        self.lacks_files = False
        """Whether commits fail since no more files can be opened; until all that was answered meanwhile is sent."""

    def start(self, remains: Remains) -> None:
        """Resume the core, and process events from now on."""
        now = self._clock.now()
        self._add(None, self.module.resume(remains, now), now)
        self._schedule_step()

    async def stop(self) -> None:
        """Commit what is pending and perform it; later events are ignored."""
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        while not self._batches.is_idle and not self._batches.has_failed:
            self._flush()
            if self._commit is not None:
                await asyncio.wait([self._commit])
                # The callback of the commit runs after its waiters are woken.
                await asyncio.sleep(0)
        if not self._batches.has_failed:
            with suppress(StoreError):
                await asyncio.get_running_loop().run_in_executor(
                    self._writer, self._store_all, (), self._journal.take(is_last=True), self._clock.now()
                )
        self._writer.shutdown(wait=True)
        self._journal.close()

    @property
    def has_failed(self) -> bool:
        """Whether commits fail at the moment."""
        return self._batches.has_failed

    @property
    def why_nothing_is_stored(self) -> str:
        """What is the reason while there is one, for the administrator."""
        return "this module has too many files open" if self.lacks_files else "the disk is full"

    def post(self, event: Event) -> None:
        """Accept an event, in order among those of the same neighbor, or of the module; its actions follow soon."""
        if isinstance(event, LinkUp | LinkDown | LinkRefused):
            self.in_turn(event.neighbor, iter((event,)), 0)
        else:
            self._own.append(event)
            self._schedule_step()

    def ask(self, event: Event, by: Caller | None = None) -> None:
        """Accept an event that a local user causes, in order among theirs; the audit log says who it was.

        One of the module itself is done before those of users.
        """
        if by is None:
            self.post(event)
        else:
            self.users.ask(event, by)

    def keep(self, outputs: tuple[KeepOutput, ...]) -> None:
        """Store outputs; an event that is posted later is stored with them or after them."""
        self._own.extend(outputs)

    def in_turn(self, peer: SystemId, events: Iterator[Event | None], size_bytes: int, /) -> "asyncio.Future[None]":
        """Handle events of another system in its turn, decoded then; the result is done when the last one is handled.

        An error in decoding becomes that of the result.
        """
        done = asyncio.get_running_loop().create_future()
        work = Work(source=peer, events=events, done=done)
        self._turns.add_message(work, time.monotonic_ns(), size_bytes=size_bytes)
        self._schedule_step()
        return done

    def is_throttled(self, neighbor: SystemId) -> bool:
        """Return whether a neighbor has been made to wait since it last was within its share."""
        return self._turns.throttled_at(neighbor, time.monotonic_ns()) is not None

    def _on_throttled(self, neighbor: SystemId) -> None:
        text = "%s: it sends more than its share and is throttled: others who need this module come first"
        _LOG.warning(text, neighbor)
        for watcher in self.watchers:
            watcher.on_throttled(neighbor)

    def _note_users(self) -> None:
        """Let neighbors that are throttled wait: a local user is active."""
        self._turns.note_active(Users.LOCAL, time.monotonic_ns())

    def _schedule_step(self) -> None:
        if not self._is_turn_due and not self._is_stopping:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._step)

    @_or_die
    def _step(self) -> None:
        self._is_turn_due = False
        now = self._clock.now()
        for _ in range(len(self._own)):
            self._handle(self._own.popleft(), now)
        self.users.begin_step()
        self._take_turns(self.users.queue, now, limit_ns=_USERS_NS, waits_for_commits=False)
        self._take_turns(self._turns, now, limit_ns=_NEIGHBORS_NS, waits_for_commits=True)
        self._fire_timeouts(now)
        self._set_timer()
        self._flush()
        self._schedule_next()

    def _fire_timeouts(self, now: Instant) -> None:
        begun_at = at = time.monotonic_ns()
        while (deadline := self.module.next_deadline()) is not None and deadline <= now:
            user = queries.user_of_next(self.module.state, now)
            actions = self.module.expire(now)
            self._add(None, actions, now)
            before, at = at, time.monotonic_ns()
            if user is not None:
                self.users.charge_name(user, at - before + _counted_ns(actions))
            if at - begun_at >= _TIMEOUTS_NS:
                return

    def _handle(self, event: Event | KeepOutput, now: Instant) -> None:
        if isinstance(event, KeepOutput):
            self._batches.add_write(event)
            return
        neighbor = None
        if isinstance(event, AttemptStarted | AttemptEnded):
            # Asked before the event is handled: afterwards, the attempt may be forgotten.
            neighbor = queries.neighbor_of_attempt(self.module.state, event.attempt)
        begun_at = time.monotonic_ns()
        actions = self.module.handle(event, now)
        self._add(event, actions, now)
        if neighbor is not None:
            at = time.monotonic_ns()
            self._turns.charge(neighbor, at - begun_at + _counted_ns(actions), at)

    def _add(
        self, event: Event | None, actions: tuple[Action, ...], now: Instant, /, *, by: Caller | None = None
    ) -> None:
        """Add the actions of a step to the next batch, and its decisions to the audit log that is written with it."""
        sender = event.sender if isinstance(event, ControlReceived | TransferReceived | VectorReceived) else None
        self._batches.add(actions if sender is None else self._limit.within(sender, actions, now))
        for noted in self._noter.of_step(event, actions, now, by=by):
            self._journal.note(noted, now)
        for watcher in self.watchers:
            watcher.on_step(event, actions, now)

    def _take_turns(self, turns: Turns[S], now: Instant, /, *, limit_ns: int, waits_for_commits: bool) -> None:
        at, spent_ns = time.monotonic_ns(), 0
        while spent_ns < limit_ns and not (waits_for_commits and self._is_backed_up):
            work = turns.next(at)
            if work is None:
                return
            counted_ns = begun_ns = 0
            try:
                event = next(work.events)
            except StopIteration:
                begun_ns = 0 if work.done.done() else work.begun_ns
                turns.finish(work)
            except Exception as error:  # noqa: BLE001 - what a neighbor sends must not end this process
                turns.finish(work, error)
            else:
                if event is not None:
                    actions = self.module.handle(event, now)
                    self._add(event, actions, now, by=work.by)
                    counted_ns = _counted_ns(actions)
            # Not processor time: on a busy machine, others wait for as long as this lasts.
            before, at = at, time.monotonic_ns()
            spent_ns += at - before + begun_ns
            turns.charge(work.source, at - before + counted_ns + begun_ns, at)

    @property
    def _is_backed_up(self) -> bool:
        # While nothing can be stored, leases of others are renewed nevertheless.
        return self._batches.waiting > _BACKLOG and not self._batches.has_failed

    def _schedule_next(self) -> None:
        """Continue with what did not fit into this step, or had to wait."""
        if self._own:
            self._schedule_step()
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        now = time.monotonic_ns()
        waits_ns = (self.users.queue.ready_in(now), None if self._is_backed_up else self._turns.ready_in(now))
        wait_ns = min((each for each in waits_ns if each is not None), default=None)
        if wait_ns == 0:
            self._schedule_step()
        elif wait_ns is not None and not self._is_stopping:
            self._next_turn = asyncio.get_running_loop().call_later(wait_ns / SECOND, self._schedule_step)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.module.next_deadline()
        if deadline is not None and not self._is_stopping:
            delay = max(0, deadline - self._clock.now()) / SECOND
            self._timer = asyncio.get_running_loop().call_later(delay, self._step)

    def _flush(self) -> None:
        if self._batches.storing is not None:
            return
        loop = asyncio.get_running_loop()
        since = loop.time() - self._committed_at
        if self._batches.waiting_writes > _SMALL_BATCH and since < _BATCH_SECONDS and not self._is_stopping:
            loop.call_later(_BATCH_SECONDS - since, self._flush)
            return
        batch = self._batches.begin()
        if batch is not None and batch.writes:
            self._begin_commit(batch, self._journal.take(self._clock.now()))
        elif batch is not None:
            self._on_stored(batch)

    async def write_audit(self) -> None:
        """Write the decisions that belong to no batch with rows, and tell the log what it omits.

        What cannot be written waits.
        """
        for decision in self._limit.omitted(self._clock.now()):
            self._perform(decision)
        taken = self._journal.take(self._clock.now())
        if not taken or self._is_stopping:
            self._journal.put_back(taken)
            return
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._writer, self._store_all, (), taken, self._clock.now()
            )
        except StoreError:
            self._journal.put_back(taken)
            raise

    def _store_all(self, writes: tuple[Store | Forget | KeepOutput, ...], taken: Written, now: Instant) -> None:
        """Write the audit log first, so that nothing is done without its line; runs in the thread of commits."""
        with self._journal.written(taken):
            if writes:
                self._store.commit(writes, now)

    def _begin_commit(self, batch: Batch[KeepOutput], taken: Written) -> None:
        loop = asyncio.get_running_loop()
        self._committed_at = loop.time()
        self._commit = loop.run_in_executor(self._writer, self._store_all, batch.writes, taken, self._clock.now())
        self._commit.add_done_callback(lambda done: self._on_commit(done, batch, taken))

    @_or_die
    def _on_commit(self, done: "asyncio.Future[None]", batch: Batch[KeepOutput], taken: Written) -> None:
        self._commit = None
        error = done.exception()
        if isinstance(error, UnusableStateError):
            _LOG.critical("%s", error)
            logging.shutdown()
            os._exit(error.EXIT_CODE)
        if isinstance(error, StoreError):
            self.lacks_files = lacks_files(error)
            change = self._batches.on_failed()
            if change is not None:
                _LOG.error("%s; trying again every second", error)
                self.post(change)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._begin_commit, batch, taken)
            return
        if error is not None:
            raise error
        duration = asyncio.get_running_loop().time() - self._committed_at
        for watcher in self.watchers:
            watcher.on_commit(len(batch.writes), round(duration * SECOND))
        self._on_stored(batch)
        self._flush()
        self._schedule_next()

    def _on_stored(self, batch: Batch[KeepOutput]) -> None:
        change = self._batches.on_stored()
        if change is not None:
            _LOG.warning("the state can be written again")
            self.post(change)
        for effect in batch.effects:
            self._perform(effect)
        # The core learns of it after this batch, so the next one may have answers from before.
        self.lacks_files = self.lacks_files and change is not None


def _counted_ns(actions: Collection[Action]) -> int:
    rows = sum(isinstance(action, Store | Forget) for action in actions)
    return rows * _ROW_NS + (len(actions) - rows) * _EFFECT_NS
