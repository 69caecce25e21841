"""Ways of standard input to attempts, on this machine or on the next leg of a claim (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from messiahs.channel.contract import Channels, Feed
from messiahs.core import queries
from messiahs.core.interface.events import Event
from messiahs.core.interface.transfer_answers import StraightFailed
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.core.model.routes import Leg
from messiahs.errors import ChannelError, ExecutorError, ProtocolError, RefusedError
from messiahs.executor.contract import Executor
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import FeedAnswer, FeedPiece, FeedRequest

_CHECK_SECONDS: Final = 1.0
_UNREAD_ANSWERS: Final = 64


class Feeds:
    """Opens feeds, for peers and for this module's own tasks. Each attempt has one: a later one ends an earlier one."""

    def __init__(
        self,
        module: RecordedModule,
        channels: Callable[[], Channels],
        executor: Executor | None,
        *,
        on_event: Callable[[Event], None],
    ) -> None:
        self._module, self._channels, self._executor = module, channels, executor
        self._on_event = on_event
        self._newest: dict[tuple[ClaimId, AttemptId], _Entered] = {}

    async def open(self, claim: ClaimId, attempt: AttemptId) -> Feed:
        """Open the way to an attempt of a task of this module, wherever it runs; raises what `Feed` raises."""
        leg = queries.present_leg(self._module.state, claim)
        if leg is None:
            raise ChannelError(f"{claim} has ended")
        is_here = leg.system == queries.system_of(self._module.state)
        return await self.open_on(None if is_here else leg, claim, attempt)

    async def open_on(self, leg: Leg | None, claim: ClaimId, attempt: AttemptId, /) -> Feed:
        """Open the way to an attempt on the next leg of its claim, or on this machine (None)."""
        return await (self._local(claim, attempt) if leg is None else self._remote(leg, claim, attempt))

    async def _local(self, claim: ClaimId, attempt: AttemptId) -> Feed:
        assert self._executor is not None, "an attempt of this machine has an executor"

        def is_executing() -> bool:
            return queries.is_executing(self._module.state, attempt, claim=claim)

        here = queries.local_id(self._module.state, claim, attempt)
        feed = LocalFeed(self._executor, here, is_executing=is_executing)
        await feed.begin()
        return self._entered(claim, attempt, feed)

    async def _remote(self, leg: Leg, claim: ClaimId, attempt: AttemptId) -> Feed:
        try:
            request = FeedRequest(claim=claim, ticket=leg.ticket, attempt=attempt)
            feed = await self._channels().feed(leg.system, leg.address, request)
        except ChannelError as error:
            self._on_failed(claim, error)
            raise
        return self._entered(claim, attempt, feed)

    def _entered(self, claim: ClaimId, attempt: AttemptId, feed: Feed) -> Feed:
        earlier = self._newest.get((claim, attempt))
        if earlier is not None:
            earlier.close()
        on_closed = partial(self._newest.pop, (claim, attempt))
        entered = self._newest[claim, attempt] = _Entered(feed, on_closed, partial(self._on_failed, claim))
        return entered

    def _on_failed(self, claim: ClaimId, error: ChannelError) -> None:
        """Let the core choose another way, if the claim has one."""
        if not isinstance(error, RefusedError | ProtocolError):
            self._on_event(StraightFailed(claim=claim, text=str(error)))


class LocalFeed:
    """A `Feed` to an attempt of this machine; `is_executing` says whether it has not ended."""

    def __init__(self, executor: Executor, attempt: AttemptId, *, is_executing: Callable[[], bool]) -> None:
        self._executor, self._attempt, self._is_executing = executor, attempt, is_executing
        self._answers: asyncio.Queue[FeedAnswer | None] = asyncio.Queue()
        self._offset_bytes = 0
        self._is_closed = False

    async def begin(self) -> None:
        """Find out how much the attempt has taken."""
        await self.send(FeedPiece())

    async def send(self, piece: FeedPiece) -> None:
        """Return when the attempt has taken the piece."""
        if self._is_closed:
            raise ChannelError(f"a later stream brings the standard input of {self._attempt}")
        begin = self._offset_bytes
        try:
            taken = await self._executor.feed(self._attempt, piece.content, offset_bytes=begin, is_end=piece.is_end)
        except ExecutorError as error:
            raise ChannelError(str(error)) from error
        self._offset_bytes = taken.offset_bytes
        if piece.content and taken.offset_bytes != begin + len(piece.content) and not taken.is_closed:
            raise ChannelError(f"another stream brings the standard input of {self._attempt}")
        if self._answers.qsize() >= _UNREAD_ANSWERS:
            # A peer that reads none must not fill the memory. The later answer contains the earlier one.
            self._answers.get_nowait()
        has_ended = taken.is_closed and not self._is_executing()
        answer = FeedAnswer(
            offset_bytes=taken.offset_bytes,
            is_closed=taken.is_closed,
            has_ended=has_ended,
            has_terminal=taken.has_terminal,
        )
        self._answers.put_nowait(answer)

    async def answer(self) -> FeedAnswer | None:
        """Wait for an answer; the last one follows soon after the attempt has ended."""
        while not self._is_closed:
            try:
                async with asyncio.timeout(_CHECK_SECONDS):
                    return await self._answers.get()
            except TimeoutError:
                if not self._is_executing():
                    return FeedAnswer(offset_bytes=self._offset_bytes, is_closed=True, has_ended=True)
        return None

    def close(self) -> None:
        """End it; a piece that waits is not lost, because the next stream begins at what was taken."""
        self._is_closed = True
        self._answers.put_nowait(None)


class _Entered:
    """A feed that reports that it is closed, and that not even its first answer came (mutable)."""

    def __init__(self, feed: Feed, on_closed: Callable[[], object], on_failed: Callable[[ChannelError], None]) -> None:
        self._feed, self._on_closed, self._on_failed = feed, on_closed, on_failed
        self._is_answered = self._is_closed = False

    async def send(self, piece: FeedPiece) -> None:
        """Send a piece."""
        await self._feed.send(piece)

    async def answer(self) -> FeedAnswer | None:
        """Wait for the next answer."""
        try:
            answer = await self._feed.answer()
        except ChannelError as error:
            if not self._is_answered:
                self._on_failed(error)
            raise
        self._is_answered = True
        return answer

    def close(self) -> None:
        """End it; repeated calls do nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._on_closed()
            self._feed.close()
