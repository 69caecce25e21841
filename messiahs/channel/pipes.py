"""Connections for bytes from a neighbor that nobody can dial: on request it opens a pipe to this side (MESSIAHS 5.3.3).

A pipe is a stream on a connection that the neighbor dials, apart from that of the link. Through it runs a connection as
if this side had dialed: with mutual TLS of its own, and all services of the task channel. Here and there the pipe ends
in a socket of the machine, since gRPC opens and accepts connections only by an address.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from messiahs.channel.byte_streams.stdin_streams import until_first
from messiahs.channel.certificates.pinning import Connected
from messiahs.channel.contract import OutgoingStream, Peer, Stream
from messiahs.channel.jobs import Jobs
from messiahs.channel.local_sockets import LocalServers, SocketFolder, connected
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError, MessiahsError
from messiahs.wire.codec import (
    PIPE_PIECE_BYTES,
    SpliceQuery,
    bytes_wanted_from_bytes,
    bytes_wanted_to_bytes,
    pipe_begin_from_bytes,
    pipe_begin_to_bytes,
    pipe_content_from_bytes,
    pipe_content_to_bytes,
)

PIPE_LIMIT: Final = 16
"""Pipes that a system which nobody can dial keeps open for one neighbor, and unanswered requests for them."""
_TOKEN_BYTES: Final = 16
_OPENING_SECONDS: Final = 10.0
_LINKING_SECONDS: Final = 10.0
"""A link that has just come up has a stream of requests after this long."""
_OnRefused = Callable[[str, str], None]


class _Asked(NamedTuple):
    """A neighbor that opens pipes, and the tokens that are on their way to it."""

    peer: Peer
    tokens: asyncio.Queue[bytes]


class _Wanted(NamedTuple):
    """A pipe that a neighbor was asked for; it ends when `ended` is set."""

    peer: Peer
    stream: asyncio.Future[Stream]
    ended: asyncio.Event


class PipeRequests:
    """Gets pipes from neighbors that nobody can dial (mutable).

    For each of them this process listens at an address of this machine, and accepts connections of its own only. Each
    becomes a pipe to the neighbor.
    """

    def __init__(self, folder: SocketFolder, on_refused: _OnRefused) -> None:
        self._on_refused = on_refused
        self._asked: dict[SystemId, _Asked] = {}
        self._linked = asyncio.Condition()
        self._wanted: dict[bytes, _Wanted] = {}
        self._servers = LocalServers(folder, self._serve)

    async def address_of(self, neighbor: SystemId) -> str:
        """Return the address of this machine that leads to a neighbor.

        A `ChannelError` if it has no link with this module, or opens no pipes.
        """
        try:
            async with asyncio.timeout(_LINKING_SECONDS), self._linked:
                await self._linked.wait_for(lambda: neighbor in self._asked)
        except TimeoutError as error:
            text = f"nobody can dial {neighbor}, and it has not dialed this module"
            raise ChannelError(text) from error
        return await self._servers.address_of(neighbor)

    def peer(self, neighbor: SystemId) -> Peer | None:
        """Return a neighbor that opens pipes, with the key of its link."""
        asked = self._asked.get(neighbor)
        return None if asked is None else asked.peer

    async def ask(self, peer: Peer, requests: Stream) -> None:
        """Send requests on a stream that a neighbor has opened, until it breaks."""
        asked = self._asked[peer.system] = _Asked(peer, asyncio.Queue(PIPE_LIMIT))
        async with self._linked:
            self._linked.notify_all()
        try:
            while True:
                await requests.write(bytes_wanted_to_bytes(await asked.tokens.get()))
        finally:
            if self._asked.get(peer.system) is asked:
                del self._asked[peer.system]

    async def accept(self, peer: Peer, stream: Stream, *, token: bytes) -> None:
        """Use a pipe that a peer opens until it ends; raises `PermissionError` if it was not asked for it."""
        wanted = self._wanted.get(token)
        if wanted is None or wanted.peer != peer or wanted.stream.done():
            raise PermissionError(f"{peer.system} was not asked for this pipe")
        del self._wanted[token]
        wanted.stream.set_result(stream)
        await wanted.ended.wait()

    async def stop(self) -> None:
        """End every pipe."""
        await self._servers.stop()

    async def _serve(self, neighbor: SystemId, connection: Connected) -> None:
        """Pass a connection of this process on to a neighbor."""
        try:
            async with self._pipe(neighbor) as stream:
                await join(stream, connection)
        except MessiahsError as error:
            self._on_refused(neighbor, f"it opens no connection for bytes: {error}")

    @asynccontextmanager
    async def _pipe(self, neighbor: SystemId) -> AsyncIterator[Stream]:
        asked = self._asked.get(neighbor)
        if asked is None or asked.tokens.full():
            raise ChannelError("it has no link with this module, or does not read its requests")
        token = secrets.token_bytes(_TOKEN_BYTES)
        wanted = _Wanted(asked.peer, asyncio.get_running_loop().create_future(), asyncio.Event())
        self._wanted[token] = wanted
        asked.tokens.put_nowait(token)
        try:
            async with asyncio.timeout(_OPENING_SECONDS):
                stream = await wanted.stream
            yield stream
        except TimeoutError as error:
            raise ChannelError(f"no answer within {_OPENING_SECONDS:.0f} s") from error
        finally:
            self._wanted.pop(token, None)
            wanted.ended.set()


class PipeAnswers:
    """Opens pipes from a module that nobody can dial to its own server, on request of its neighbors (mutable).

    `own` is the address of this machine at which the server listens.
    """

    def __init__(self, own: str, open_pipe: Callable[[SystemId, str], OutgoingStream], on_refused: _OnRefused) -> None:
        self._own, self._open_pipe, self._on_refused = own, open_pipe, on_refused
        self._open: Counter[SystemId] = Counter()
        self._jobs = Jobs()

    def answer(self, neighbor: SystemId, address: str, *, requests: Stream) -> None:
        """Open a pipe for each request of a neighbor, until the stream ends. Open pipes outlive it."""
        self._jobs.begin(self._answer(neighbor, address, requests=requests))

    async def stop(self) -> None:
        """End every pipe."""
        await self._jobs.stop()

    async def _answer(self, neighbor: SystemId, address: str, *, requests: Stream) -> None:
        try:
            while (content := await requests.read()) is not None:
                token = bytes_wanted_from_bytes(content)
                if self._open[neighbor] >= PIPE_LIMIT:
                    self._on_refused(neighbor, f"it asks for more than {PIPE_LIMIT} connections for bytes")
                    continue
                self._open[neighbor] += 1
                self._jobs.begin(self._pipe(neighbor, address, token=token))
        except MessiahsError as error:
            self._on_refused(neighbor, f"it cannot ask this module for connections: {error}")

    async def _pipe(self, neighbor: SystemId, address: str, *, token: bytes) -> None:
        stream = self._open_pipe(neighbor, address)
        try:
            await stream.write(pipe_begin_to_bytes(token))
            await join(stream, await connected(self._own))
        except (MessiahsError, OSError) as error:
            self._on_refused(neighbor, f"the connection for bytes that it asked for: {error}")
        finally:
            self._open[neighbor] -= 1
            stream.close()


async def begin_of(stream: Stream) -> bytes | SpliceQuery | None:
    """Return how a pipe of a peer begins; None if it ends before."""
    content = await _first(stream, why_not="the peer sent no token")
    return None if content is None else pipe_begin_from_bytes(content)


async def confirm(stream: Stream) -> None:
    """Let the side that opened a pipe to be passed on know that the next system is connected."""
    await stream.write(pipe_content_to_bytes(b""))


async def confirmed(stream: Stream) -> None:
    """Wait until the next system is connected.

    Nothing is sent before: if a call ends while something is on its way to the peer, its reason may not arrive. A
    `ChannelError` with the reason of the hop.
    """
    content = await _first(stream, why_not="the hop does not answer")
    if content is None or pipe_content_from_bytes(content):
        raise ChannelError("the hop passed nothing on")


async def join(stream: Stream, connection: Connected, *, raises: bool = False) -> None:
    """Pass bytes between a stream and a connection in both directions until one of them ends; close the connection.

    A `CodecError` if the peer sends something else. `raises` also the `ChannelError` of a stream that breaks.
    """
    reader, writer = connection
    try:
        await until_first(_to_connection(stream, writer), _to_stream(reader, stream))
    except (ChannelError, OSError):
        # One of the sides is gone; who uses the connection opens another one.
        if raises:
            raise
    finally:
        writer.transport.abort()


async def _first(stream: Stream, *, why_not: str) -> bytes | None:
    """Return the first message of a peer; a `ChannelError` if none comes for long."""
    try:
        async with asyncio.timeout(_OPENING_SECONDS):
            return await stream.read()
    except TimeoutError as error:
        raise ChannelError(why_not) from error


async def _to_connection(stream: Stream, writer: asyncio.StreamWriter) -> None:
    while (content := await stream.read()) is not None:
        writer.write(pipe_content_from_bytes(content))
        await writer.drain()


async def _to_stream(reader: asyncio.StreamReader, stream: Stream) -> None:
    while content := await reader.read(PIPE_PIECE_BYTES):
        await stream.write(pipe_content_to_bytes(content))
