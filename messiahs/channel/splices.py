"""Connections through modules of third sites, which pass them on and cannot read them (MESSIAHS 5.3.3).

The dialing side opens a pipe to such a hop, and names a claim that passes it. The hop connects to the next system on
the path of the claim, and passes bytes on in both directions, without storing any. Through the pipe runs an ordinary
connection with mutual TLS between its two ends. On the dialing side the pipe begins at an address of the machine.
"""

from collections.abc import Callable
from typing import Final

from messiahs.channel.certificates.pinning import Connected
from messiahs.channel.contract import OutgoingStream, Splicing, Stream
from messiahs.channel.local_sockets import LocalServers, SocketFolder
from messiahs.channel.pipes import confirmed, join
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Splice
from messiahs.errors import MessiahsError
from messiahs.wire.codec import SpliceQuery, pipe_begin_to_bytes

_Way = tuple[SystemId, str]
"""A system, and the hop through which connections lead to it."""

SPLICE_LIMIT: Final = 256
"""Addresses of this machine that lead through modules of third sites; the least recently used one is given up."""


class Splices:
    """Opens connections through modules of third sites (mutable)."""

    def __init__(self, folder: SocketFolder, open_pipe: Callable[[SystemId, str], OutgoingStream]) -> None:
        self._open_pipe = open_pipe
        self._latest: dict[_Way, Splice] = {}
        self._problems: dict[_Way, str] = {}
        self._servers = LocalServers(folder, self._serve)

    def use(self, peer: SystemId, splice: Splice) -> None:
        """Open the next connection to a system in this claim: earlier ones may have ended."""
        way = _way(peer, splice)
        self._latest.pop(way, None)
        self._latest[way] = splice
        if len(self._latest) > SPLICE_LIMIT:
            oldest = next(iter(self._latest))
            del self._latest[oldest]
            self._problems.pop(oldest, None)
            self._servers.close(oldest)

    async def address_of(self, peer: SystemId, splice: Splice) -> str:
        """Return the address of this machine that leads to a system through a hop."""
        self.use(peer, splice)
        return await self._servers.address_of(_way(peer, splice))

    def problem(self, peer: SystemId, splice: Splice) -> str:
        """Return why the last connection failed, in the words of the hop; empty if that is unknown."""
        return self._problems.get(_way(peer, splice), "")

    async def stop(self) -> None:
        """End every connection."""
        await self._servers.stop()

    async def _serve(self, way: _Way, connection: Connected) -> None:
        latest = self._latest.get(way)
        if latest is None:
            return
        stream = self._open_pipe(latest.hop, latest.address)
        self._problems.pop(way, None)
        try:
            await stream.write(pipe_begin_to_bytes(SpliceQuery(claim=latest.claim, ticket=latest.ticket)))
            await confirmed(stream)
            await join(stream, connection, raises=True)
        except (MessiahsError, OSError) as error:
            if way in self._latest:
                self._problems[way] = str(error)
        finally:
            stream.close()


class MeteredStream:
    """A stream whose bytes count against what a peer may move through this module."""

    def __init__(self, stream: Stream, splicing: Splicing) -> None:
        self._stream, self._splicing = stream, splicing

    async def read(self) -> bytes | None:
        """Return the next piece."""
        content = await self._stream.read()
        if content is not None:
            await self._splicing.wait_for(len(content), 0)
        return content

    async def write(self, content: bytes) -> None:
        """Send a piece."""
        await self._splicing.wait_for(0, len(content))
        await self._stream.write(content)


def _way(peer: SystemId, splice: Splice) -> _Way:
    return peer, splice.way
