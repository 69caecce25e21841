"""Streams of gRPC as `Stream`: raw bytes in both directions, and every error as a `ChannelError`.

The generated stubs are unused: they parse inside gRPC, where one malformed message ends the stream. Here `wire` parses
the bytes, and only the malformed message is lost.
"""

import asyncio
import resource
from collections.abc import AsyncGenerator
from typing import Final, Protocol

import grpc
import grpc.aio

from messiahs.channel.contract import ChannelSettings
from messiahs.channel.tls import TlsMaterial
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.errors import ChannelError, ProtocolError, UntrustedError
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES

CONTROL: Final = "messiahs.wire.v1.Control"
UPDATE: Final = "messiahs.wire.v1.Update"
TASK: Final = "messiahs.wire.v1.Task"
LINK_KEY: Final = "messiahs-link"

Options = tuple[tuple[str, int | str], ...]

_NO_ROOT: Final = "CERTIFICATE_VERIFY_FAILED"
_TOO_LARGE: Final = "message larger than max"
_TROUBLE: Final = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)

_BOTH_SIDES: Final[Options] = (
    # Larger than the codec's limit: exceeding that one costs the sender a message, exceeding this one the stream.
    ("grpc.max_receive_message_length", 4 * MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
_SERVER_SIDE: Final[Options] = (
    # Otherwise two modules at one port would share its connections.
    ("grpc.so_reuseport", 0),
    # Time for TLS and HTTP/2 to be agreed; then the connection is closed.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 256),
)
_CLIENT_SIDE: Final[Options] = (
    # One connection per link: channels to the same address must not share one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
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
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Unknown peers may take connections from neighbors, but not the file descriptors of the rest of the daemon.
    connections = ("grpc.max_allowed_incoming_connections", files // 2)
    return (*_BOTH_SIDES, *_SERVER_SIDE, *_pings(silence_seconds), allowed, connections)


class _Ends(Protocol):
    """The methods that a client call and a server context have in common."""

    async def read(self) -> object:
        """Return the next message, or `grpc.aio.EOF`."""

    async def write(self, message: bytes) -> None:
        """Send a message."""


def open_channel(tls: TlsMaterial, peer: SystemId, *, address: str, silence_seconds: float) -> grpc.aio.Channel:
    """Open a channel to a system, which must present a certificate with exactly its name by one of its roots."""
    credentials = grpc.ssl_channel_credentials(tls.roots_for(peer), tls.key, tls.certificate)
    options = (*_BOTH_SIDES, *_CLIENT_SIDE, *_pings(silence_seconds), ("grpc.ssl_target_name_override", str(peer)))
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
    """Return gRPC's error in short."""
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name.lower()}: {printable(error.details() or 'no details')}"
    return printable(str(error)) or type(error).__name__


class _Pooled:
    """A channel and the number of its users (mutable)."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel, self.users = channel, 0
        self.timer: asyncio.TimerHandle | None = None


class TaskConnections:
    """Connections for task channels: one for each executor and address, closed when unused for long."""

    def __init__(self, settings: ChannelSettings, tls: TlsMaterial) -> None:
        self._settings, self._tls = settings, tls
        self._pooled: dict[tuple[SystemId, str], _Pooled] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open_transfers(self, peer: SystemId, address: str) -> "GrpcTransfers":
        """Open a stream for tasks."""
        channel = self._acquire(peer, address)
        return GrpcTransfers(self, peer, address, open_stream(channel, f"/{TASK}/Transfer"))

    def open_put(self, peer: SystemId, address: str) -> "GrpcTransfers":
        """Open a stream for files."""
        channel = self._acquire(peer, address)
        return GrpcTransfers(self, peer, address, open_stream(channel, f"/{TASK}/Put"))

    async def read(self, peer: SystemId, address: str, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Request an output and yield the pieces of the answer."""
        call = self._acquire(peer, address).unary_stream(f"/{TASK}/Read", None, None)(request)
        try:
            async for content in call:
                yield content
        except _TROUBLE as error:
            raise _read_error(error) from error
        finally:
            call.cancel()
            self.release(peer, address)

    def release(self, peer: SystemId, address: str) -> None:
        """Note that a connection has one user less."""
        pooled = self._pooled.get((peer, address))
        if pooled is None:
            return
        pooled.users -= 1
        if not pooled.users:
            pooled.timer = asyncio.get_running_loop().call_later(
                self._settings.idle_seconds, self._close, (peer, address)
            )

    async def stop(self) -> None:
        """Close every connection."""
        for key in list(self._pooled):
            self._close(key)
        await asyncio.gather(*self._closing)

    def _acquire(self, peer: SystemId, address: str) -> grpc.aio.Channel:
        pooled = self._pooled.get((peer, address))
        if pooled is None:
            channel = open_channel(self._tls, peer, address=address, silence_seconds=self._settings.silence_seconds)
            pooled = self._pooled[peer, address] = _Pooled(channel)
        if pooled.timer is not None:
            pooled.timer.cancel()
            pooled.timer = None
        pooled.users += 1
        return pooled.channel

    def _close(self, key: tuple[SystemId, str]) -> None:
        pooled = self._pooled.pop(key)
        if pooled.timer is not None:
            pooled.timer.cancel()
        task = asyncio.create_task(pooled.channel.close(None))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class GrpcTransfers:
    """A stream for tasks or files that this side opened."""

    def __init__(
        self, connections: TaskConnections, peer: SystemId, address: str, call: grpc.aio.StreamStreamCall[bytes, bytes]
    ) -> None:
        self._connections, self._peer, self._address, self._call = connections, peer, address, call
        self._stream = GrpcStream(call)

    async def read(self) -> bytes | None:
        """Wait for the next answer."""
        return await self._stream.read()

    async def write(self, content: bytes) -> None:
        """Send a message."""
        await self._stream.write(content)

    async def finish(self) -> None:
        """End this direction of the stream."""
        try:
            await self._call.done_writing()
        except _TROUBLE as error:
            raise ChannelError(text_of(error)) from error

    def close(self) -> None:
        """End the stream; called once."""
        self._call.cancel()
        self._connections.release(self._peer, self._address)


def _read_error(error: Exception) -> Exception:
    code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return PermissionError(text_of(error))
    if code is grpc.StatusCode.NOT_FOUND:
        return FileNotFoundError(text_of(error))
    return _channel_error(error)


def _channel_error(error: Exception) -> ChannelError:
    """Distinguish permanent errors, a message that is too large and a lack of trust, from temporary ones."""
    if isinstance(error, grpc.aio.AioRpcError):
        # Quotas and a peer that wants fewer pings have the same code, and are temporary.
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (error.details() or ""):
            return ProtocolError(text_of(error))
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            return UntrustedError(f"it refuses this module: {printable(error.details() or '')}")
        if _NO_ROOT in (error.details() or ""):
            return UntrustedError("its certificate is signed by no root that this module trusts")
    return ChannelError(text_of(error))
