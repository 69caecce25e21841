"""Standard input of this module's tasks, from their users to the attempts (MESSIAHS 5.3.3).

A user's `run` sends pieces; each is kept here until the attempt has taken it, and sent again if the way breaks. Nothing
is stored: after a restart, `run` continues at the byte that the attempt reports.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from messiahs.channel.byte_streams.stdin_streams import until_first
from messiahs.channel.contract import Feed
from messiahs.channel.jobs import Jobs
from messiahs.core import queries
from messiahs.core.interface.events import CancelRequested
from messiahs.core.interface.messages import Substate
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import AttemptId, TaskId
from messiahs.daemon.host.host import Host
from messiahs.daemon.transfer.stdin_feeds import Feeds
from messiahs.errors import ChannelError, ProtocolError, RefusedError
from messiahs.wire.codec import FEED_PIECE_BYTES, FeedAnswer, FeedPiece

_LOG = logging.getLogger(__name__)
WINDOW_BYTES: Final = 1 << 20
"""Maximum of standard input of a task that waits here to be taken."""
_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 1.0
_REFUSED_SECONDS: Final = 1.0
"""How long a call waits while a module on the way refuses."""
_ABANDONED_SECONDS: Final = 600.0
"""A task that waits for its standard input is cancelled after its `run` gave no sign for so long."""
_HUNG_UP_SECONDS: Final = 30.0
"""The same for one with a terminal."""
_NO_TERMINALS: Final = (
    "its machine, or a module on the way to it, is of an earlier release, which has no terminals for tasks"
)


class InputState(NamedTuple):
    """Where the standard input of a task stands; byte numbers are None until its attempt has reported the first one."""

    attempt: int = 0
    """Attempt that takes the input; 0 before the first one."""
    taken_bytes: int | None = None
    """What the attempt has taken; `run` need not keep it for this attempt."""
    received_bytes: int | None = None
    """Offset of the byte that is expected next."""
    is_closed: bool = False
    """The attempt takes no more."""
    has_ended: bool = False
    """It takes no more because it has ended, so that another one may need what it has not taken."""
    problem: str = ""
    """Why the task cannot get its standard input."""
    refusal: str = ""
    """Why a module on the way takes nothing now; it is asked again."""


class Source:
    """The standard input of one task (mutable): what arrived from its user and is not taken yet, at most a window."""

    def __init__(self, task: TaskId, *, has_terminal: bool = False) -> None:
        self.task, self._has_terminal = task, has_terminal
        self.state = InputState()
        self._kept = bytearray()
        """From the byte on that the attempt takes next."""
        self._sent_bytes = self._most_sent_bytes = 0
        self._has_end = self._has_sent_end = False
        self._changed = asyncio.Event()
        self._heard_at = asyncio.get_running_loop().time()

    async def accept(
        self, content: bytes, *, attempt: int, offset_bytes: int, is_end: bool, seconds: float
    ) -> InputState:
        """Take a piece when there is room for it, and return the state; with the end, wait until all of it is taken.

        Nothing is taken of a piece for another attempt (0: none), for another offset than the state's, or after
        `seconds`, of which there are few while a module on the way refuses. A call without content returns as soon as
        the state is known.
        """
        self._heard_at = asyncio.get_running_loop().time()
        # Another `run` may have brought the end.
        is_after_end = self._has_end and bool(content) and offset_bytes == self.state.received_bytes
        try:
            async with asyncio.timeout(seconds) as limit:
                while not self._accepts(content, attempt=attempt, offset_bytes=offset_bytes, is_end=is_end):
                    await self._await_change(limit)
                while is_end and self._has_end and self._concerns(attempt):
                    await self._await_change(limit)
        except TimeoutError:
            pass
        return self.state._replace(is_closed=True) if is_after_end else self.state

    def begin(self, attempt: int) -> None:
        """Begin with the first byte if this is another attempt than before."""
        if attempt != self.state.attempt:
            self._kept.clear()
            self._has_end = False
            self._sent_bytes = self._most_sent_bytes = 0
            self._change(InputState(attempt=attempt))

    def end(self) -> None:
        """Note that the task has ended."""
        self._change(self.state._replace(is_closed=True, has_ended=True))

    def is_abandoned(self) -> bool:
        """Whether the task waits for input, and nobody has brought any for long; true once for each such time."""
        now = asyncio.get_running_loop().time()
        patience = _HUNG_UP_SECONDS if self._has_terminal else _ABANDONED_SECONDS
        if self._has_end or self.state.is_closed or now - self._heard_at < patience:
            return False
        self._heard_at = now
        return True

    async def feed(self, open_feed: Callable[[], Awaitable[Feed]]) -> None:
        """Send what is here and what follows, until the attempt takes no more or the way breaks."""
        try:
            feed = await open_feed()
            try:
                first = await feed.answer()
                if first is not None and self._has_terminal and not (first.has_terminal or first.is_closed):
                    # Its task would read frames.
                    raise ProtocolError(_NO_TERMINALS)
                if first is not None:
                    self._note(first)
                    self._sent_bytes, self._has_sent_end = self.state.taken_bytes or 0, False
                    await until_first(self._send(feed), self._listen(feed))
            finally:
                feed.close()
        except ProtocolError as error:
            self._change(self.state._replace(problem=str(error)))
        except ChannelError as error:
            if isinstance(error, RefusedError):
                self._change(self.state._replace(refusal=str(error)))
            _LOG.debug("%s: standard input: %s", self.task, error)

    async def _send(self, feed: Feed) -> None:
        while not self.state.is_closed:
            begin = self._sent_bytes - (self.state.taken_bytes or 0)
            content = bytes(self._kept[begin : begin + FEED_PIECE_BYTES])
            is_end = self._has_end and begin + len(content) == len(self._kept)
            if content or (is_end and not self._has_sent_end):
                self._sent_bytes += len(content)
                # What was sent on an earlier stream may be taken late.
                self._most_sent_bytes = max(self._most_sent_bytes, self._sent_bytes)
                self._has_sent_end = is_end
                await feed.send(FeedPiece(content=content, is_end=is_end))
            else:
                await self._changed.wait()

    async def _listen(self, feed: Feed) -> None:
        while not self.state.is_closed and (answer := await feed.answer()) is not None:
            self._note(answer)

    def _note(self, answer: FeedAnswer) -> None:
        """Forget what the attempt has taken. Raises `ProtocolError` if it takes what was not sent, or takes it back."""
        offset = answer.offset_bytes
        if self.state.taken_bytes is None:
            self._most_sent_bytes = offset
            self._change(self.state._replace(taken_bytes=offset, received_bytes=offset))
        taken, sent = self.state.taken_bytes or 0, self._most_sent_bytes
        if answer.is_closed and offset < taken:
            # An attempt that has ended is forgotten where it ran.
            offset = taken
        if not taken <= offset <= sent:
            raise ProtocolError(
                f"its executor says that it took {offset} bytes, after {taken} of {sent} that were sent"
            )
        del self._kept[: offset - taken]
        refusal = "" if offset > taken else self.state.refusal
        state = self.state._replace(taken_bytes=offset, refusal=refusal)
        self._change(state._replace(is_closed=True, has_ended=answer.has_ended) if answer.is_closed else state)

    def _accepts(self, content: bytes, *, attempt: int, offset_bytes: int, is_end: bool) -> bool:
        """Take a piece if there is room; false if the caller must wait for a change."""
        if not self._concerns(attempt):
            return True
        if self.state.taken_bytes is None or self.state.received_bytes is None:
            return False
        if not attempt or offset_bytes != self.state.received_bytes or self._has_end:
            return True
        if len(self._kept) + len(content) > WINDOW_BYTES:
            return False
        self._kept += content
        self._has_end = is_end
        self._change(self.state._replace(received_bytes=offset_bytes + len(content)))
        return True

    async def _await_change(self, limit: asyncio.Timeout) -> None:
        ends_at = limit.when()
        if self.state.refusal and ends_at is not None:
            # The caller is to learn of it soon, and how long it lasts.
            limit.reschedule(min(ends_at, asyncio.get_running_loop().time() + _REFUSED_SECONDS))
        await self._changed.wait()

    def _concerns(self, attempt: int) -> bool:
        """Whether something for an attempt (0: the present one) can be taken, now or later."""
        state = self.state
        return not state.is_closed and not state.problem and attempt in (0, state.attempt)

    def _change(self, state: InputState) -> None:
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()


class Sources:
    """The standard input of all tasks of this module that take any and have not ended (mutable)."""

    def __init__(self, host: Host, feeds: Feeds) -> None:
        self._host, self._feeds = host, feeds
        self._sources: dict[TaskId, Source] = {}
        self._jobs = Jobs()

    def start(self) -> None:
        """Take care of the tasks from before a restart, whose `run` may be gone."""
        for task in queries.tasks_with_stdin(self._host.module.state):
            self.of_task(task)

    async def stop(self) -> None:
        """Stop feeding; attempts wait for more."""
        await self._jobs.stop()

    def of_task(self, task: TaskId) -> Source:
        """Return the standard input of a task that has not ended."""
        source = self._sources.get(task)
        if source is None:
            submission = queries.live_submission(self._host.module.state, task)
            has_terminal = submission is not None and submission.command.terminal is not None
            source = self._sources[task] = Source(task, has_terminal=has_terminal)
            self._jobs.begin(self._feed(source))
        return source

    async def _feed(self, source: Source) -> None:
        """Feed each attempt of a task in turn, until the task ends."""
        pause = _FIRST_PAUSE_SECONDS
        try:
            while queries.live_submission(self._host.module.state, source.task) is not None:
                row = queries.live_task(self._host.module.state, source.task)
                if row is not None and row.attempt:
                    source.begin(row.attempt)
                    if row.substate is Substate.RUNNING and not (source.state.is_closed or source.state.problem):
                        before = source.state.taken_bytes
                        await self._feed_attempt(source, row)
                        if source.state.taken_bytes != before:
                            pause = _FIRST_PAUSE_SECONDS
                if source.is_abandoned():
                    await self._cancel(source.task)
                await self._host.task_ended(source.task, pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        finally:
            del self._sources[source.task]
            source.end()

    async def _feed_attempt(self, source: Source, row: TaskRow) -> None:
        """Feed an attempt while its task is bound to it, whatever its executor says."""
        if row.claim is None:
            return
        open_feed = partial(self._feeds.open, row.claim, AttemptId(row.id, row.attempt))
        job = asyncio.ensure_future(source.feed(open_feed))
        try:
            while not job.done() and self._is_bound(row):
                await asyncio.wait({job}, timeout=_CHECK_SECONDS)
                if source.is_abandoned():
                    await self._cancel(row.id)
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)

    def _is_bound(self, row: TaskRow) -> bool:
        now = queries.live_task(self._host.module.state, row.id)
        return now is not None and now.attempt == row.attempt

    async def _cancel(self, task: TaskId) -> None:
        _LOG.warning("%s is cancelled: it waits for standard input, and its `messiahs run` is gone", task)
        await self._host.ask(lambda answer_to: CancelRequested(answer_to=answer_to, task=task))
