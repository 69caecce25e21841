"""Streams of gRPC as `Stream`: raw bytes in both directions, and every error as a `ChannelError`.

The generated stubs are unused: they parse inside gRPC, where one malformed message ends the stream. Here `wire` parses
the bytes, and only the malformed message is lost.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

import grpc
import grpc.aio

from messiahs.channel.accepted_connections import allowed_connections
from messiahs.channel.certificates.pinning import Lookup
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import TrustedRoots
from messiahs.channel.contract import ChannelSettings
from messiahs.channel.pipes import PipeRequests, connected
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.errors import BeyondError, ChannelError, ProtocolError, RefusedError, UntrustedError
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES

CONTROL: Final = "messiahs.wire.v1.Control"
UPDATE: Final = "messiahs.wire.v1.Update"
TASK: Final = "messiahs.wire.v1.Task"
LINK_KEY: Final = "messiahs-link"
BEYOND: Final = grpc.StatusCode.ABORTED
"""A read could not be served now, by the peer or by a system beyond it."""
REFUSED: Final = grpc.StatusCode.FAILED_PRECONDITION
"""The peer, or a system beyond it, lets no bytes of the reader pass."""

Options = tuple[tuple[str, int | str], ...]
_Call = grpc.aio.StreamStreamCall[bytes, bytes]
_Result = TypeVar("_Result")

_OTHER_CERTIFICATE: Final = "CERTIFICATE_VERIFY_FAILED"
_TOO_LARGE: Final = "message larger than max"
_PLAIN: Final = (
    ("failed to connect to all addresses", "it cannot be connected to"),
    ("Internal error from Core", "the connection was lost"),
    ("Socket closed", "the connection was lost"),
    ("Connection reset", "the connection was lost"),
    ("Stream removed", "the connection was lost"),
    ("ping timeout", "it did not answer for too long"),
    ("keepalive watchdog timeout", "it did not answer for too long"),
)
"""Words of gRPC, and what they mean to people."""
_ERRNO: Final = re.compile(r": ([A-Z][A-Za-z ]{1,60})( \(\d{1,4}\))?$")
_TROUBLE: Final = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)

_WINDOW_BYTES: Final = 4 << 20
"""What a system that was dialed may have on its way in one stream: 40 MB/s over a link of 100 ms."""
_SERVER_WINDOW_BYTES: Final = 1 << 20
"""What a system that dialed may have on its way in one stream; it may open many of them, and leave each unread."""

_IDLE_MS: Final = 120_000
"""A connection that others opened is closed after so long without a stream; modules close theirs sooner."""

_BOTH_SIDES: Final[Options] = (
    # Larger than the codec's limit: exceeding that one costs the sender a message, exceeding this one the stream.
    ("grpc.max_receive_message_length", 4 * MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Otherwise a window grows with the measured bandwidth, on a fast link beyond 16 MiB, which the receiver holds.
    ("grpc.http2.bdp_probe", 0),
)
_SERVER_SIDE: Final[Options] = (
    # Otherwise two modules at one port would share its connections.
    ("grpc.so_reuseport", 0),
    # Time for TLS and HTTP/2 to be agreed; then the connection is closed.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 256),
    ("grpc.http2.lookahead_bytes", _SERVER_WINDOW_BYTES),
)
_CLIENT_SIDE: Final[Options] = (
    # One connection per link: channels to the same address must not share one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.http2.lookahead_bytes", _WINDOW_BYTES),
    # A name that leads elsewhere now is followed as soon as a connection fails.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
)


def _pings(silence_seconds: float) -> Options:
    """Ping after two thirds of the time without traffic, and wait one third for the answer."""
    third = int(silence_seconds * 1000 / 3)
    return (
        ("grpc.keepalive_time_ms", 2 * third),
        ("grpc.keepalive_timeout_ms", third),
        # Newer releases of gRPC read this option instead; its default is a minute.
        ("grpc.http2.ping_timeout_ms", third),
    )


def server_options(silence_seconds: float) -> Options:
    """Return the options of the listening side; neighbors may ping as often as this module does."""
    allowed = ("grpc.http2.min_ping_interval_without_data_ms", int(silence_seconds * 1000 / 3))
    connections = ("grpc.max_allowed_incoming_connections", allowed_connections())
    idle = ("grpc.max_connection_idle_ms", _IDLE_MS)
    return (*_BOTH_SIDES, *_SERVER_SIDE, *_pings(silence_seconds), allowed, connections, idle)


class _Ends(Protocol):
    """The methods that a client call and a server context have in common."""

    async def read(self) -> object:
        """Return the next message, or `grpc.aio.EOF`."""

    async def write(self, message: bytes) -> None:
        """Send a message."""


class Dialing:
    """Opens channels to systems whose certificates were checked; `pipes` lead to neighbors that nobody can dial."""

    def __init__(self, settings: ChannelSettings, tls: TlsMaterial, trusted: TrustedRoots, pipes: PipeRequests) -> None:
        self._silence_seconds, self._tls, self._pipes = settings.silence_seconds, tls, pipes
        self._lookup = Lookup(settings.name, tls, trusted)

    async def open(self, peer: SystemId, address: str) -> grpc.aio.Channel:
        """Open a channel to a system, without an address to a neighbor; raises what `certificate_of` raises."""
        if address:
            pinned = await self._lookup.certificate_of(peer, address)
        else:
            address = await self._pipes.address_of(peer)
            pinned = await self._lookup.certificate_through(
                peer, f"through a connection of {peer}", connect=partial(connected, address)
            )
        credentials = grpc.ssl_channel_credentials(pinned, self._tls.key, self._tls.certificate)
        name = ("grpc.ssl_target_name_override", str(peer))
        options = (*_BOTH_SIDES, *_CLIENT_SIDE, *_pings(self._silence_seconds), name)
        return grpc.aio.secure_channel(address, credentials, options=options)


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
        except _TROUBLE as error:
            raise _channel_error(error) from error
        return content if isinstance(content, bytes) else None

    async def write(self, content: bytes) -> None:
        """Send a message, waiting while the window is full."""
        try:
            await self._end.write(content)
        except _TROUBLE as error:
            raise _channel_error(error) from error


def text_of(error: Exception) -> str:
    """Return the error of gRPC in one plain sentence; unknown words, such as those of a peer, follow its code."""
    if isinstance(error, grpc.aio.AioRpcError):
        details = error.details() or "no details"
        return _plain(details) or f"{error.code().name.lower()}: {printable(details)}"
    return printable(str(error)) or type(error).__name__


def _told_of(error: grpc.aio.AioRpcError) -> str:
    """Return the error without words that may contain an address."""
    return _plain(error.details() or "") or f"the stream ended ({error.code().name.lower()})"


def _plain(details: str) -> str:
    for words, plain in _PLAIN:
        if words in details:
            why = _ERRNO.search(details)
            return plain if why is None else f"{plain}: {why[1]}"
    return ""


class _OtherCertificateError(ChannelError):
    """The system at an address has another certificate than the one that was checked."""


class _Pooled:
    """A channel and the number of its users (mutable)."""

    def __init__(self, key: tuple[SystemId, str], opening: asyncio.Task[grpc.aio.Channel]) -> None:
        self.key, self.opening = key, opening
        self.users, self.is_closed = 0, False
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the channel is open or being opened."""
        return not self.opening.done() or (not self.opening.cancelled() and self.opening.exception() is None)


class TaskConnections:
    """Connections for task channels: one for each executor and address, closed when unused for long."""

    def __init__(self, settings: ChannelSettings, dialing: Dialing) -> None:
        self._settings, self._dialing = settings, dialing
        self._pooled: dict[tuple[SystemId, str], _Pooled] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open_transfers(self, peer: SystemId, address: str) -> "GrpcTransfers":
        """Open a stream for tasks."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Transfer")

    def open_pipe(self, peer: SystemId, address: str) -> "GrpcTransfers":
        """Open a pipe."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Pipe")

    def open_put(self, peer: SystemId, address: str) -> "GrpcTransfers":
        """Open a stream for files."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Put")

    def open_feed(self, peer: SystemId, address: str) -> "GrpcTransfers":
        """Open a stream for standard input."""
        return GrpcTransfers(self, self.acquire(peer, address), f"/{TASK}/Feed")

    async def read(self, peer: SystemId, address: str, request: bytes, /) -> AsyncGenerator[bytes, None]:
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
                except _TROUBLE as error:
                    problem = _read_error(error)
                    if is_anew or not isinstance(problem, _OtherCertificateError):
                        raise problem from error
                    pooled, is_anew = self.renewed(pooled), True
                else:
                    return
        finally:
            if call is not None:
                call.cancel()
            self.release(pooled)

    def acquire(self, peer: SystemId, address: str) -> _Pooled:
        """Return a connection, and note a user of it; `release` it afterwards."""
        key = (peer, address)
        pooled = self._pooled.get(key)
        if pooled is None or not pooled.is_usable:
            pooled = self._pooled[key] = _Pooled(key, asyncio.create_task(self._dialing.open(peer, address)))
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
        if self._pooled.get(pooled.key) is pooled and pooled.is_usable:
            pooled.timer = asyncio.get_running_loop().call_later(self._settings.idle_seconds, self._close, pooled)
        else:
            self._close(pooled)

    def renewed(self, pooled: _Pooled) -> _Pooled:
        """Replace a connection to a system that has a new certificate, which is checked now, and release the old one.

        Nothing has been sent on it to the system with the new certificate.
        """
        if self._pooled.get(pooled.key) is pooled:
            del self._pooled[pooled.key]
        anew = self.acquire(*pooled.key)
        self.release(pooled)
        return anew

    async def stop(self) -> None:
        """Close every connection."""
        for pooled in list(self._pooled.values()):
            self._close(pooled)
        await asyncio.gather(*self._closing)

    def _close(self, pooled: _Pooled) -> None:
        if self._pooled.get(pooled.key) is pooled:
            del self._pooled[pooled.key]
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
        except _TROUBLE as error:
            raise ChannelError(text_of(error)) from error

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
        except _OtherCertificateError:
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
            self._call = open_stream(channel, self._method)
        return self._call


def _read_error(error: Exception) -> Exception:
    code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return PermissionError(text_of(error))
    if code is grpc.StatusCode.NOT_FOUND:
        return FileNotFoundError(text_of(error))
    if isinstance(error, grpc.aio.AioRpcError) and code in (BEYOND, REFUSED):
        return (BeyondError if code is BEYOND else RefusedError)(printable(error.details() or ""))
    return _channel_error(error)


def _channel_error(error: Exception) -> ChannelError:
    """Distinguish permanent errors, a message that is too large and a lack of trust, from temporary ones."""
    if isinstance(error, grpc.aio.AioRpcError):
        # Quotas and a peer that wants fewer pings have the same code, and are temporary.
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (error.details() or ""):
            return ProtocolError(text_of(error))
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return ProtocolError("its release is too old for this")
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            told = "it refuses this module"
            return UntrustedError(f"{told}: {printable(error.details() or '')}", told=told)
        if _OTHER_CERTIFICATE in (error.details() or ""):
            return _OtherCertificateError("its certificate has changed; the new one is checked next")
        return ChannelError(text_of(error), told=_told_of(error))
    return ChannelError(text_of(error))
