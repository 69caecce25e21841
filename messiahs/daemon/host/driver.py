"""Drives the core in real time: events in, one transaction for the rows, then the other actions.

While a transaction is being written, further events are processed and form the next batch.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Concatenate, ParamSpec

from messiahs.core.interface.actions import Effect
from messiahs.core.interface.batches import Batch, Batches
from messiahs.core.interface.events import Event
from messiahs.core.model.instants import SECOND
from messiahs.core.recovery import Remains
from messiahs.daemon.storage.clock import Clock
from messiahs.daemon.storage.store import KeepOutput, RowStore
from messiahs.errors import StoreError, UnusableStateError
from messiahs.trace.record.recorder import RecordedModule

_LOG = logging.getLogger(__name__)
_SMALL_BATCH = 16
_BATCH_SECONDS = 0.005
"""Larger batches than the small one are committed at most this often."""
_RETRY_SECONDS = 1.0
_BUG_EXIT = 70

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
        self, module: RecordedModule, store: RowStore, *, clock: Clock, perform: Callable[[Effect], None]
    ) -> None:
        self.module = module
        self._store, self._clock, self._perform = store, clock, perform
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._events: deque[Event | KeepOutput] = deque()
        self._batches = Batches[KeepOutput]()
        self._is_turn_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._commit: asyncio.Future[None] | None = None
        self._committed_at = 0.0
        self._is_stopping = False

    def start(self, remains: Remains) -> None:
        """Resume the core, and process events from now on."""
        self._batches.add(self.module.resume(remains, self._clock.now()))
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
        self._writer.shutdown(wait=True)

    @property
    def has_failed(self) -> bool:
        """Whether commits fail at the moment."""
        return self._batches.has_failed

    def post(self, event: Event) -> None:
        """Accept an event, in order; its actions follow soon."""
        self._events.append(event)
        self._schedule_step()

    def keep(self, outputs: tuple[KeepOutput, ...]) -> None:
        """Store outputs; an event that is posted later is stored with them or after them."""
        self._events.extend(outputs)

    def _schedule_step(self) -> None:
        if not self._is_turn_due and not self._is_stopping:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._step)

    @_or_die
    def _step(self) -> None:
        self._is_turn_due = False
        now = self._clock.now()
        while self._events:
            event = self._events.popleft()
            if isinstance(event, KeepOutput):
                self._batches.add_write(event)
            else:
                self._batches.add(self.module.handle(event, now))
        self._batches.add(self.module.expire(now))
        self._set_timer()
        self._flush()

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
            self._begin_commit(batch)
        elif batch is not None:
            self._on_stored(batch)

    def _begin_commit(self, batch: Batch[KeepOutput]) -> None:
        loop = asyncio.get_running_loop()
        self._committed_at = loop.time()
        self._commit = loop.run_in_executor(self._writer, self._store.commit, batch.writes, self._clock.now())
        self._commit.add_done_callback(lambda done: self._on_commit(done, batch))

    @_or_die
    def _on_commit(self, done: "asyncio.Future[None]", batch: Batch[KeepOutput]) -> None:
        self._commit = None
        error = done.exception()
        if isinstance(error, UnusableStateError):
            _LOG.critical("%s", error)
            logging.shutdown()
            os._exit(error.EXIT_CODE)
        if isinstance(error, StoreError):
            change = self._batches.on_failed()
            if change is not None:
                _LOG.error("%s; trying again every second", error)
                self.post(change)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._begin_commit, batch)
            return
        if error is not None:
            raise error
        self._on_stored(batch)
        self._flush()

    def _on_stored(self, batch: Batch[KeepOutput]) -> None:
        change = self._batches.on_stored()
        if change is not None:
            _LOG.warning("the state can be written again")
            self.post(change)
        for effect in batch.effects:
            self._perform(effect)
