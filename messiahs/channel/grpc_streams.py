"""Streams of gRPC as `Stream`: raw bytes in both directions, and every error as a `ChannelError`.

The generated stubs are unused: they parse inside gRPC, where one malformed message ends the stream. Here `wire` parses
the bytes, and only the malformed message is lost.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from ssl import SSLContext
from typing import Final, Protocol, TypeVar

import grpc
import grpc.aio

from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.pinning import ANSWER_SECONDS, Connect, Connected, Lookup
from messiahs.channel.certificates.trusted_roots import TrustedRoots
from messiahs.channel.contract import ChannelSettings
from messiahs.channel.grpc_errors import TROUBLE, OtherCertificateError, channel_error, read_error
from messiahs.channel.grpc_options import STREAMS_OF_CONNECTION, client_options
from messiahs.channel.http_proxies import HttpProxy, connected_through, way_to
from messiahs.channel.local_sockets import connected
from messiahs.channel.pipes import PipeRequests
from messiahs.channel.splices import Splices
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address, Splice, way_of
from messiahs.errors import ChannelError, UntrustedError

CONTROL: Final = "messiahs.wire.v1.Control"
UPDATE: Final = "messiahs.wire.v1.Update"
TASK: Final = "messiahs.wire.v1.Task"
LINK_KEY: Final = "messiahs-link"
REFUSAL_KEY: Final = "messiahs-refusal"
"""Why the dialing module opens no link: it only tells that the other one is shut off."""
_CONNECTIONS_OF_WAY: Final = 6
"""Connections for tasks and bytes to one system at one address: 240 streams, of the 256 that it takes of this one."""
_Call = grpc.aio.StreamStreamCall[bytes, bytes]
_Result = TypeVar("_Result")


class _Ends(Protocol):
    """The methods that a client call and a server context have in common."""

    async def read(self) -> object:
        """Return the next message, or `grpc.aio.EOF`."""

    async def write(self, message: bytes) -> None:
        """Send a message."""


class Dialing:
    """Opens channels to systems whose certificates were checked.

    `pipes` lead to neighbors that nobody can dial, and `splices` to systems behind modules of third sites.
    """

    def __init__(
        self,
        settings: ChannelSettings,
        tls: TlsInForce,
        trusted: TrustedRoots,
        *,
        pipes: PipeRequests,
        splices: Splices,
    ) -> None:
        self._settings, self._tls, self._pipes, self._splices = settings, tls, pipes, splices
        self._lookup = Lookup(settings.name, tls, trusted)
        self.addresses = {each.system: each.address for each in settings.neighbors}
        """Where neighbors are dialed; None for those that dial."""

    async def open(self, peer: SystemId, address: Address) -> grpc.aio.Channel:
        """Open a channel to a system, without an address to a neighbor; raises what `certificate_of` raises."""
        proxy, target, is_local = await self._target(peer, address)
        connect: Connect = partial(connected, target) if is_local else partial(connected_through, proxy, target)
        shown = str(address) or f"through a connection of {peer}" if is_local else target
        try:
            pinned = await self._lookup.certificate_of(peer, shown, connect=connect)
        except UntrustedError:
            raise
        except ChannelError as error:
            problem = self._splices.problem(peer, address) if isinstance(address, Splice) else ""
            if problem:
                raise ChannelError(f"{shown}: {problem}") from error
            raise
        tls = self._tls.now
        credentials = grpc.ssl_channel_credentials(pinned, tls.key, tls.certificate)
        name = ("grpc.ssl_target_name_override", str(peer))
        through = (("grpc.enable_http_proxy", 0),) if proxy is None else (("grpc.http_proxy", proxy.url),)
        options = (*client_options(self._settings.silence_seconds), name, *through)
        return grpc.aio.secure_channel(target, credentials, options=options)

    async def connected(self, peer: SystemId, address: Address) -> Connected:
        """Connect to a system for somebody else, after it has proved its name; raises `OSError` and `ChannelError`.

        A peer chose the address: nothing else that this host can reach may get the bytes of others.
        """
        async with asyncio.timeout(ANSWER_SECONDS):
            proxy, target, is_local = await self._target(peer, address)
            if is_local:
                return await connected(target)
            if proxy is None:
                target = await self._proved(peer, target)
            return await connected_through(proxy, target)

    async def _proved(self, peer: SystemId, address: str) -> str:
        """Return the numeric form of an address at which a system has shown its certificate."""
        found: list[str] = []

        async def connect(*, ssl: SSLContext, server_hostname: str) -> Connected:
            reader, writer = await connected_through(None, address, ssl=ssl, server_hostname=server_hostname)
            host, port = writer.get_extra_info("peername")[:2]
            found.append(f"[{host}]:{port}")
            return reader, writer

        await self._lookup.certificate_of(peer, address, connect=connect)
        return found[0]

    async def _target(self, peer: SystemId, address: Address) -> tuple[HttpProxy | None, str, bool]:
        """Return through which proxy to dial, what, and whether that is an address of this machine."""
        if isinstance(address, Splice):
            return None, await self._splices.address_of(peer, address), True
        if not address:
            return None, await self._pipes.address_of(peer), True
        return *way_to(peer, address, self._settings.http_proxy, self.addresses), False


def open_stream(
    channel: grpc.aio.Channel, method: str, *, metadata: tuple[tuple[str, str], ...] = ()
) -> grpc.aio.StreamStreamCall[bytes, bytes]:
    """Call a method whose messages are bytes in both directions."""
    return channel.stream_stream(method, None, None)(None, metadata=metadata)


class GrpcStream:
    """One end of a stream, opened by either side."""

    def __init__(self, end: _Ends) -> None:
        self._end = end

    async def read(self) -> bytes | None:
        """Wait for the next message; None at the end."""
        try:
            content = await self._end.read()
        except TROUBLE as error:
            raise channel_error(error) from error
        return content if isinstance(content, bytes) else None

    async def write(self, content: bytes) -> None:
        """Send a message, waiting while the window is full."""
        try:
            await self._end.write(content)
        except TROUBLE as error:
            raise channel_error(error) from error


class _Pooled:
    """A channel and the number of its users (mutable)."""

    def __init__(self, peer: SystemId, address: Address, opening: asyncio.Task[grpc.aio.Channel]) -> None:
        self.peer, self.address, self.opening = peer, address, opening
        self.users, self.is_closed = 0, False
        self.timer: asyncio.TimerHandle | None = None

    @property
    def key(self) -> tuple[SystemId, str]:
        """What it leads to."""
        return self.peer, way_of(self.address)

    @property
    def is_usable(self) -> bool:
        """Whether the channel is open or being opened."""
        return not self.opening.done() or (not self.opening.cancelled() and self.opening.exception() is None)


class TaskConnections:
    """Connections for task channels: for each executor and address one, or as many as its streams need.

    Those that are unused for long are closed.
    """

    def __init__(self, settings: ChannelSettings, dialing: Dialing, splices: Splices) -> None:
        self._settings, self._dialing, self._splices = settings, dialing, splices
        self._pooled: dict[tuple[SystemId, str], list[_Pooled]] = {}
        self._retired: set[_Pooled] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def open_transfers(self, peer: SystemId, address: Address) -> "GrpcTransfers":
        """Open a stream for tasks."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Transfer")

    def open_pipe(self, peer: SystemId, address: Address) -> "GrpcTransfers":
        """Open a pipe."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Pipe")

    def open_put(self, peer: SystemId, address: Address) -> "GrpcTransfers":
        """Open a stream for files."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Put")

    def open_feed(self, peer: SystemId, address: Address) -> "GrpcTransfers":
        """Open a stream for standard input."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Feed")

    async def read(self, peer: SystemId, address: Address, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Request an output and yield the pieces of the answer."""
        pooled = self.acquire(peer, address)
        call: grpc.aio.UnaryStreamCall[bytes, bytes] | None = None
        is_anew = False
        try:
            while True:
                try:
                    channel = await asyncio.shield(pooled.opening)
                    call = channel.unary_stream(f"/{TASK}/Read", None, None)(request)
                    async for content in call:
                        yield content
                except TROUBLE as error:
                    problem = read_error(error)
                    if is_anew or not isinstance(problem, OtherCertificateError):
                        raise problem from error
                    pooled, is_anew = self.renewed(pooled), True
                else:
                    return
        finally:
            if call is not None:
                call.cancel()
            self.release(pooled)

    def acquire(self, peer: SystemId, address: Address) -> _Pooled:
        """Return a connection with room for a stream, and note a user of it; `release` it afterwards.

        While all that may be open are full, streams wait in the one with the fewest.
        """
        if isinstance(address, Splice):
            self._splices.use(peer, address)
        usable = [each for each in self._pooled.get((peer, way_of(address)), ()) if each.is_usable]
        pooled = next((each for each in usable if each.users < STREAMS_OF_CONNECTION), None)
        if pooled is None and len(usable) == _CONNECTIONS_OF_WAY:
            pooled = min(usable, key=lambda each: each.users)
        elif pooled is None:
            pooled = _Pooled(peer, address, asyncio.create_task(self._dialing.open(peer, address)))
            usable.append(pooled)
        self._pooled[pooled.key] = usable
        if pooled.timer is not None:
            pooled.timer.cancel()
            pooled.timer = None
        pooled.users += 1
        return pooled

    def release(self, pooled: _Pooled) -> None:
        """Note that a connection has one user less."""
        pooled.users -= 1
        if pooled.users or pooled.is_closed:
            return
        if pooled in self._pooled.get(pooled.key, ()) and pooled.is_usable:
            pooled.timer = asyncio.get_running_loop().call_later(self._settings.idle_seconds, self._close, pooled)
        else:
            self._close(pooled)

    def renewed(self, pooled: _Pooled) -> _Pooled:
        """Replace a connection to a system that has a new certificate, which is checked now, and release the old one.

        Nothing has been sent on it to the system with the new certificate.
        """
        if pooled in self._pooled.get(pooled.key, ()):
            # The others were checked against the same certificate.
            for each in list(self._pooled[pooled.key]):
                self._retire(each)
        anew = self.acquire(pooled.peer, pooled.address)
        self.release(pooled)
        return anew

    def retire(self) -> None:
        """Use other connections for new streams: those that are open show the last certificate of this module."""
        for pooled in self._all_pooled():
            self._retire(pooled)

    def cut(self, peer: SystemId) -> None:
        """Close the connections to a peer, with all their streams."""
        for pooled in [each for each in (*self._all_pooled(), *self._retired) if each.peer == peer]:
            self._close(pooled)

    async def stop(self) -> None:
        """Close every connection."""
        for pooled in (*self._all_pooled(), *self._retired):
            self._close(pooled)
        await asyncio.gather(*self._closing)

    def _all_pooled(self) -> list[_Pooled]:
        return [pooled for those in self._pooled.values() for pooled in those]

    def _retire(self, pooled: _Pooled) -> None:
        """Close a connection when its last stream ends."""
        self._drop(pooled)
        self._retired.add(pooled)
        if not pooled.users:
            self._close(pooled)

    def _drop(self, pooled: _Pooled) -> None:
        """Give a connection to no further stream."""
        those = self._pooled.get(pooled.key, [])
        if pooled in those:
            those.remove(pooled)
        if not those:
            self._pooled.pop(pooled.key, None)

    def _close(self, pooled: _Pooled) -> None:
        self._drop(pooled)
        self._retired.discard(pooled)
        pooled.is_closed = True
        if pooled.timer is not None:
            pooled.timer.cancel()
        task = asyncio.create_task(_closed(pooled.opening))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _closed(opening: asyncio.Task[grpc.aio.Channel]) -> None:
    opening.cancel()
    with suppress(ChannelError, asyncio.CancelledError):
        await (await opening).close(None)


class GrpcTransfers:
    """A stream for tasks, files or standard input that this side opened; it waits for its connection.

    A system that has a new certificate since the connection was checked is checked again, once for each stream.
    """

    def __init__(self, connections: TaskConnections, pooled: _Pooled, method: str) -> None:
        self._connections, self._pooled, self._method = connections, pooled, method
        self._call: _Call | None = None
        self._is_closed, self._is_anew = False, False

    async def read(self) -> bytes | None:
        """Wait for the next answer."""
        return await self._on_call(lambda call: GrpcStream(call).read())

    async def write(self, content: bytes) -> None:
        """Send a message."""
        await self._on_call(lambda call: GrpcStream(call).write(content))

    async def finish(self) -> None:
        """End this direction of the stream."""
        try:
            await (await self._opened()).done_writing()
        except TROUBLE as error:
            raise channel_error(error) from error

    def close(self) -> None:
        """End the stream; called once."""
        self._is_closed = True
        if self._call is not None:
            self._call.cancel()
        self._connections.release(self._pooled)

    async def _on_call(self, use: Callable[[_Call], Awaitable[_Result]]) -> _Result:
        pooled = self._pooled
        try:
            return await use(await self._opened())
        except OtherCertificateError:
            # Reading and writing both fail; whichever comes first looks at the new certificate for both.
            if self._pooled is pooled:
                if self._is_closed or self._is_anew:
                    raise
                self._pooled, self._call, self._is_anew = self._connections.renewed(pooled), None, True
        return await use(await self._opened())

    async def _opened(self) -> _Call:
        channel = await asyncio.shield(self._pooled.opening)
        if self._is_closed:
            raise ChannelError("the stream is closed")
        if self._call is None:
            try:
                self._call = open_stream(channel, self._method)
            except TROUBLE as error:
                # The connection was closed meanwhile.
                raise channel_error(error) from error
        return self._call
