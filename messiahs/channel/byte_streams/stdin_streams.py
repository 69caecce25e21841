"""Standard input on its way to an attempt, on separate streams (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import Coroutine
from typing import Final

from messiahs.channel.contract import Callbacks, Feed, OutgoingStream, Peer, Stream
from messiahs.errors import ChannelError, CodecError, MessiahsError, ProtocolError, RefusedError, public_of
from messiahs.wire.codec import (
    FeedAnswer,
    FeedPiece,
    FeedRequest,
    feed_answer_from_bytes,
    feed_answer_to_bytes,
    feed_piece_from_bytes,
    feed_piece_to_bytes,
    feed_request_from_bytes,
    feed_request_to_bytes,
)

_REQUEST_SECONDS: Final = 60.0
"""A peer that has not sent its request after this long is considered gone."""


class OutgoingFeed:
    """A `Feed` over a stream that this side opened."""

    def __init__(self, stream: OutgoingStream) -> None:
        self._stream = stream

    @classmethod
    async def opened(cls, stream: OutgoingStream, request: FeedRequest) -> "OutgoingFeed":
        """Send the request."""
        try:
            await stream.write(feed_request_to_bytes(request))
        except BaseException:
            stream.close()
            raise
        return cls(stream)

    async def send(self, piece: FeedPiece) -> None:
        """Send a piece; waits while the other side does not keep up."""
        await self._stream.write(feed_piece_to_bytes(piece))

    async def answer(self) -> FeedAnswer | None:
        """Wait for the next answer."""
        content = await self._stream.read()
        if content is None:
            return None
        try:
            answer = feed_answer_from_bytes(content)
        except CodecError as error:
            raise ProtocolError(f"the answer to standard input is malformed: {error}") from error
        if answer.problem:
            raise RefusedError(answer.problem)
        return answer

    def close(self) -> None:
        """End the stream at once."""
        self._stream.close()


async def receive_feed(peer: Peer, stream: Stream, callbacks: Callbacks, /) -> None:
    """Pass standard input of a peer on, and the answers back, until either side ends; one piece at a time is here."""
    try:
        feed = await callbacks.open_feed(await _request(stream), peer)
        try:
            await until_first(_forward(stream, feed), _back(feed, stream))
        finally:
            feed.close()
    except (PermissionError, FileNotFoundError, RefusedError, CodecError) as error:
        if not isinstance(error, FileNotFoundError):
            callbacks.on_dropped(peer.system, str(error))
        await stream.write(feed_answer_to_bytes(FeedAnswer(problem=public_of(error))))
    except ChannelError:
        # One of the sides is gone; the origin opens another stream.
        return
    except MessiahsError as error:
        await stream.write(feed_answer_to_bytes(FeedAnswer(problem=public_of(error))))


async def until_first(*works: Coroutine[object, object, object]) -> None:
    """Run coroutines until the first one ends or raises; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.cancelled():
                # gRPC cancels those that wait for a call that is closed.
                raise ChannelError("the stream was closed")
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(stream: Stream) -> FeedRequest:
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            content = await stream.read()
    except TimeoutError as error:
        raise ChannelError("the peer sent no request") from error
    if content is None:
        raise ChannelError("the peer ended the stream")
    return feed_request_from_bytes(content)


async def _forward(stream: Stream, feed: Feed) -> None:
    while (content := await stream.read()) is not None:
        await feed.send(feed_piece_from_bytes(content))


async def _back(feed: Feed, stream: Stream) -> None:
    while (answer := await feed.answer()) is not None:
        await stream.write(feed_answer_to_bytes(answer))
        if answer.is_closed:
            return
