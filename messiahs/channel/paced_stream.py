"""A stream of which the next message is read in its sender's turn."""

from messiahs.channel.contract import InTurn, Stream
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
