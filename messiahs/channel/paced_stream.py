"""Streams of which the next message is read in its sender's turn."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from messiahs.channel.contract import InTurn, OutgoingStream, Stream
from messiahs.core.model.ids import SystemId


class PacedStream:
    """`Stream` of a peer: what it sends counts as its use of this module, and one that sends too much is not read."""

    def __init__(self, stream: Stream, peer: SystemId, in_turn: InTurn) -> None:
        self._stream, self._peer, self._in_turn = stream, peer, in_turn

    async def read(self) -> bytes | None:
        """Wait for the next message, and for the turn of the peer."""
        content = await self._stream.read()
        if content is not None:
            await self._in_turn(self._peer, iter(()), len(content))
        return content

    async def write(self, content: bytes) -> None:
        """Send a message."""
        await self._stream.write(content)


class PacedOutgoingStream(PacedStream):
    """`OutgoingStream` to a peer, paced in the same way."""

    def __init__(self, stream: OutgoingStream, peer: SystemId, in_turn: InTurn) -> None:
        super().__init__(stream, peer, in_turn)
        self._outgoing = stream

    async def finish(self) -> None:
        """End this direction."""
        await self._outgoing.finish()

    def close(self) -> None:
        """End the stream."""
        self._outgoing.close()


async def paced(
    contents: AsyncGenerator[bytes, None], peer: SystemId, in_turn: InTurn, /
) -> AsyncGenerator[bytes, None]:
    """Yield the answers of a peer, each in its turn."""
    async with aclosing(contents):
        async for content in contents:
            await in_turn(peer, iter(()), len(content))
            yield content
