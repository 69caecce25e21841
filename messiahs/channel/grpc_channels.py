"""The channels over gRPC and mutual TLS (MESSIAHS 5.3)."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final, NoReturn

import grpc
import grpc.aio

from messiahs.channel.accepted_connections import CONNECTION_LIMIT, AcceptedConnections, allowed_connections
from messiahs.channel.admission import SHUT_OFF, WHY_SHUT_OFF
from messiahs.channel.byte_streams.bulk_port import BulkPort
from messiahs.channel.byte_streams.stdin_streams import until_first
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import Presented, TrustedRoots
from messiahs.channel.contract import Callbacks, ChannelSettings, Incoming, Peer
from messiahs.channel.grpc_connections import AcceptedConnection, DialedConnection
from messiahs.channel.grpc_errors import BEYOND, REFUSED, text_of
from messiahs.channel.grpc_options import server_options
from messiahs.channel.grpc_streams import (
    CONTROL,
    LINK_KEY,
    REFUSAL_KEY,
    TASK,
    UPDATE,
    Dialing,
    GrpcStream,
    GrpcTransfers,
    TaskConnections,
    open_stream,
)
from messiahs.channel.linked_channels import LinkedChannels
from messiahs.channel.local_sockets import SocketFolder
from messiahs.channel.pipes import PipeAnswers, PipeRequests, begin_of, confirm, join
from messiahs.channel.splices import MeteredStream, Splices
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address
from messiahs.core.model.texts import printable
from messiahs.errors import (
    BeyondError,
    ChannelError,
    CodecError,
    DeclinedError,
    RefusedError,
    StoreError,
    UntrustedError,
    public_of,
)
from messiahs.wire.codec import SpliceQuery

_ANSWER_SECONDS: Final = 10.0
_LINK_NAME_BYTES: Final = 16
STREAM_LIMIT: Final = 256
"""Streams for tasks and bytes of one system, as many as fit on the one connection that an honest one has for them."""

Context = grpc.aio.ServicerContext[bytes, bytes]


def grpc_channels(settings: ChannelSettings, callbacks: Callbacks, tls: TlsMaterial, /) -> LinkedChannels:
    """Make channels over gRPC."""
    bulk = BulkPort(settings, tls, callbacks.on_refused) if settings.bulk_port is not None else None
    return LinkedChannels(settings, callbacks, GrpcTransport(settings, callbacks, tls), bulk)


class GrpcTransport:
    """One server, and one client for each connection that this side opens."""

    def __init__(self, settings: ChannelSettings, callbacks: Callbacks, tls: TlsMaterial) -> None:
        self._settings, self._callbacks, self._tls = settings, callbacks, tls
        self._trusted = TrustedRoots(tls, settings.federation)
        self._sockets = SocketFolder(settings.sockets)
        self._pipes = PipeRequests(self._sockets, callbacks.on_refused)
        self._splices = Splices(self._sockets, self._open_pipe)
        self._dialing = Dialing(settings, tls, self._trusted, pipes=self._pipes, splices=self._splices)
        self._connections = TaskConnections(settings, self._dialing, self._splices)
        self._accepted = AcceptedConnections(allowed_connections())
        self._local = "" if settings.listen else self._sockets.address()
        self._answers = PipeAnswers(self._local, self._connections.open_pipe, callbacks.on_refused)
        self._server: grpc.aio.Server | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, incoming: Incoming) -> str:
        """Listen at the configured address; without one, at an address of this machine, for the ends of pipes."""
        server = grpc.aio.server(options=server_options(self._settings.silence_seconds))
        services = _Services(
            incoming, self._callbacks, self._trusted, self._accepted, pipes=self._pipes, dialing=self._dialing
        )
        server.add_generic_rpc_handlers(services.handlers())
        credentials = grpc.ssl_server_credentials(
            [(self._tls.key, self._tls.certificate)], root_certificates=self._tls.all_roots, require_client_auth=True
        )
        try:
            port = server.add_secure_port(self._settings.listen or self._local, credentials)
        except RuntimeError as error:
            raise ChannelError(f"cannot listen on {self._settings.listen}: {error}") from error
        await server.start()
        self._server = server
        if not self._settings.listen:
            return ""
        self._watching = asyncio.create_task(self._accepted.watch(port))
        return f"{self._settings.listen.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        """Close the port and all connections."""
        await self._answers.stop()
        await self._pipes.stop()
        await self._splices.stop()
        await self._connections.stop()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(grace=None)
        self._sockets.remove()

    async def dial(self, peer: SystemId, address: str, *, is_shut_off: bool = False) -> DialedConnection:
        """Open a connection and wait until the neighbor accepts it."""
        channel = await self._dialing.open(peer, address)
        try:
            connection = await _opened(channel, address, is_shut_off=is_shut_off)
        except BaseException:
            await channel.close(None)
            raise
        if self._local:
            self._answers.answer(peer, address, requests=connection.requests())
        return connection

    def cut(self, peer: SystemId) -> None:
        """End all streams for tasks and bytes that this side opened to a peer."""
        self._connections.cut(peer)

    def undialable(self, neighbor: SystemId) -> Peer | None:
        """Return a neighbor that nobody can dial."""
        return self._pipes.peer(neighbor)

    def open_transfers(self, peer: SystemId, address: Address) -> GrpcTransfers:
        """Open a task channel."""
        return self._connections.open_transfers(peer, address)

    def open_put(self, peer: SystemId, address: Address) -> GrpcTransfers:
        """Open a stream for files."""
        return self._connections.open_put(peer, address)

    def open_feed(self, peer: SystemId, address: Address) -> GrpcTransfers:
        """Open a stream for standard input."""
        return self._connections.open_feed(peer, address)

    def read(self, peer: SystemId, address: Address, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Request an output from an executor."""
        return self._connections.read(peer, address, request)

    def _open_pipe(self, hop: SystemId, address: str) -> GrpcTransfers:
        return self._connections.open_pipe(hop, address)


class _Services:
    """Handlers of incoming calls. Every caller is identified by its certificate before its messages are read."""

    def __init__(
        self,
        incoming: Incoming,
        callbacks: Callbacks,
        trusted: TrustedRoots,
        connections: AcceptedConnections,
        *,
        pipes: PipeRequests,
        dialing: Dialing,
    ) -> None:
        self._incoming, self._callbacks, self._trusted = incoming, callbacks, trusted
        self._connections, self._pipes, self._dialing = connections, pipes, dialing
        self._accepted: dict[tuple[SystemId, str], AcceptedConnection] = {}
        self._open: Counter[SystemId] = Counter()

    def handlers(self) -> "tuple[grpc.GenericRpcHandler[bytes, bytes], ...]":
        """Return the three services without (de)serialisers: messages stay bytes here."""
        streams = grpc.stream_stream_rpc_method_handler
        read = grpc.unary_stream_rpc_method_handler(self.read)
        task = {
            "Transfer": streams(self.transfer),
            "Put": streams(self.put),
            "Read": read,
            "Feed": streams(self.feed),
            "Pipe": streams(self.pipe),
        }
        control = {"Exchange": streams(self.control), "Wanted": streams(self.wanted)}
        return (
            grpc.method_handlers_generic_handler(CONTROL, control),
            grpc.method_handlers_generic_handler(UPDATE, {"Exchange": streams(self.update)}),
            grpc.method_handlers_generic_handler(TASK, task),
        )

    async def control(self, _: object, context: Context) -> None:
        """Serve a link that a neighbor opens."""
        async with self._connection_of(context) as caller:
            peer, name = caller.system, _link_name(context)
            refusal = self._incoming.refusal(peer)
            if not refusal and (not name or (peer, name) in self._accepted):
                refusal = f"the metadata {LINK_KEY} does not name a new connection"
            if _told(context, REFUSAL_KEY) == SHUT_OFF:
                self._incoming.on_shut_off(peer)
                refusal = SHUT_OFF
            if refusal:
                await self._refuse(context, peer=peer, text=refusal)
            accepted = AcceptedConnection(GrpcStream(context))
            self._accepted[peer, name] = accepted
            try:
                await context.send_initial_metadata(((LINK_KEY, name),))
                await self._incoming.serve_link(peer, accepted)
            finally:
                del self._accepted[peer, name]
                await accepted.close()

    async def update(self, _: object, context: Context) -> None:
        """Add the update channel to a link."""
        peer = (await self._caller(context)).system
        accepted = self._accepted.get((peer, _link_name(context)))
        if accepted is None or not await accepted.serve_updates(GrpcStream(context)):
            await self._refuse(context, peer=peer, text="an update channel without its control channel")

    async def wanted(self, _: object, context: Context) -> None:
        """Ask a neighbor that nobody can dial for pipes, until its link ends."""
        peer = await self._caller(context)
        accepted = self._accepted.get((peer.system, _link_name(context)))
        if accepted is None:
            await self._refuse(context, peer=peer.system, text="a stream of requests without its control channel")
        else:
            with suppress(ChannelError):
                await until_first(self._pipes.ask(peer, GrpcStream(context)), accepted.has_closed())

    async def pipe(self, _: object, context: Context) -> None:
        """Use a pipe that a neighbor opens, or pass on the connection in it."""
        async with self._stream_of(context) as peer:
            stream = GrpcStream(context)
            try:
                begin = await begin_of(stream)
                if isinstance(begin, SpliceQuery):
                    await self._pass_on(begin, peer, stream, context)
                elif begin is not None:
                    await self._pipes.accept(peer, stream, token=begin)
            except ChannelError:
                # The peer is gone.
                return
            except DeclinedError as error:
                await context.abort(BEYOND, public_of(error))
            except (PermissionError, CodecError) as error:
                await self._refuse(context, peer=peer.system, text=str(error))

    async def _pass_on(self, query: SpliceQuery, peer: Peer, stream: GrpcStream, context: Context) -> None:
        """Pass on the connection in a stream; the peer learns why that fails."""
        splicing = self._callbacks.open_splice(query, peer)
        leg, text = splicing.leg, ""
        try:
            async with self._incoming.admitted(leg.system):
                connection = await self._dialing.connected(leg.system, leg.address)
                await confirm(stream)
                await join(MeteredStream(stream, splicing), connection)
        except PermissionError:
            text = f"{leg.system} is shut off"
        except (OSError, ValueError, OverflowError, ChannelError) as error:
            # A peer chose the address.
            text = f"{leg.system} is not reached: {public_of(error) or 'no answer'}"
            self._callbacks.on_refused(leg.system, text)
        finally:
            splicing.close()
        if text:
            await context.abort(BEYOND, text)

    async def transfer(self, _: object, context: Context) -> None:
        """Receive tasks."""
        async with self._stream_of(context) as peer:
            # If the peer is gone, it repeats what matters after it reconnects.
            with suppress(ChannelError):
                await self._incoming.serve_transfers(peer, GrpcStream(context))

    async def put(self, _: object, context: Context) -> None:
        """Receive files."""
        async with self._stream_of(context) as peer:
            # If the peer is gone, it continues after it reconnects.
            with suppress(ChannelError):
                await self._incoming.serve_put(peer, GrpcStream(context))

    async def feed(self, _: object, context: Context) -> None:
        """Receive standard input."""
        async with self._stream_of(context) as peer:
            # As for files.
            with suppress(ChannelError):
                await self._incoming.serve_feed(peer, GrpcStream(context))

    async def read(self, request: bytes, context: Context) -> None:
        """Send an output."""
        async with self._stream_of(context) as peer:
            await self._read(request, context, peer)

    async def _read(self, request: bytes, context: Context, peer: Peer) -> None:
        try:
            async with aclosing(self._incoming.serve_read(peer, request)) as contents:
                async for content in contents:
                    await context.write(content)
        except (CodecError, PermissionError) as error:
            await self._refuse(context, peer=peer.system, text=public_of(error))
        except FileNotFoundError as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, public_of(error))
        except (DeclinedError, RefusedError, BeyondError) as error:
            is_brief = isinstance(error, BeyondError) or (isinstance(error, DeclinedError) and error.is_brief)
            await context.abort(BEYOND if is_brief else REFUSED, public_of(error))
        except (OSError, ChannelError, StoreError) as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, public_of(error))

    @asynccontextmanager
    async def _stream_of(self, context: Context) -> AsyncIterator[Peer]:
        """Return who has opened a stream for tasks or bytes, of which a system may have only so many."""
        async with self._connection_of(context) as peer:
            if self._open[peer.system] >= STREAM_LIMIT:
                await self._refuse_more(context, peer, f"{STREAM_LIMIT} streams")
            self._open[peer.system] += 1
            try:
                async with self._incoming.admitted(peer.system):
                    yield peer
            except grpc.aio.AbortError:
                raise
            except PermissionError as error:
                await self._refuse(context, peer=peer.system, text=str(error))
            except Exception as error:  # noqa: BLE001 - a bug goes to the loop's handler, and gRPC would send its text
                context_of_bug = {"message": f"a stream of {peer.system}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context_of_bug)
                await context.abort(grpc.StatusCode.INTERNAL, "an internal error")
            finally:
                self._open[peer.system] -= 1
                if not self._open[peer.system]:
                    del self._open[peer.system]

    @asynccontextmanager
    async def _connection_of(self, context: Context) -> AsyncIterator[Peer]:
        """Return who has opened a stream, on one of only so many connections."""
        peer, connection = await self._caller(context), context.peer()
        if not self._connections.may_carry(peer.system, connection):
            await self._refuse_more(context, peer, f"{CONNECTION_LIMIT} connections with streams")
        self._connections.begin(peer.system, connection)
        try:
            yield peer
        finally:
            self._connections.end(peer.system, connection)

    async def _refuse_more(self, context: Context, peer: Peer, what: str, /) -> None:
        text = f"{peer.system} has {what} open, as many as it may"
        self._callbacks.on_refused(peer.system, text)
        await context.abort(BEYOND, text)

    async def _caller(self, context: Context) -> Peer:
        presented = Presented.to_grpc(context.auth_context())
        try:
            return self._trusted.check(presented)
        except UntrustedError as error:
            if error.claimed is not None:
                self._incoming.on_impostor(SystemId(error.claimed), str(error))
            # The peer has not proved its name, so it is reported by its address.
            await self._refuse(context, peer=context.peer(), text=str(error))

    async def _refuse(self, context: Context, *, peer: str, text: str) -> NoReturn:
        self._callbacks.on_refused(peer, text)
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        raise AssertionError("abort does not return")


async def _opened(channel: grpc.aio.Channel, address: str, *, is_shut_off: bool) -> DialedConnection:
    name = secrets.token_hex(_LINK_NAME_BYTES)
    metadata = ((LINK_KEY, name), *(((REFUSAL_KEY, SHUT_OFF),) if is_shut_off else ()))
    control = open_stream(channel, f"/{CONTROL}/Exchange", metadata=metadata)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            accepted = await control.initial_metadata()
            if (LINK_KEY, name) not in tuple(accepted):
                code, details = await control.code(), await control.details()
                if details == SHUT_OFF:
                    raise ChannelError(WHY_SHUT_OFF)
                raise ChannelError(f"{address}: {code.name.lower()}: {printable(str(details))}")
    except TimeoutError as error:
        raise ChannelError(f"{address}: no answer within {_ANSWER_SECONDS:.0f} s") from error
    except grpc.RpcError as error:
        raise ChannelError(f"{address}: {text_of(error)}") from error
    updates = open_stream(channel, f"/{UPDATE}/Exchange", metadata=metadata)
    return DialedConnection(channel, GrpcStream(control), GrpcStream(updates), name)


def _link_name(context: Context) -> str:
    name = _told(context, LINK_KEY)
    return name if len(name) <= 2 * _LINK_NAME_BYTES else ""


def _told(context: Context, wanted: str) -> str:
    """Return a text of the metadata; empty without it."""
    texts = (value for key, value in context.invocation_metadata() or () if key == wanted and isinstance(value, str))
    return next(texts, "")
