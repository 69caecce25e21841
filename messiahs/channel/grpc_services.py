"""The services of gRPC that others call: every caller is identified before its messages are read (MESSIAHS 5.3)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Final, NoReturn

import grpc
import grpc.aio

from messiahs.channel.accepted_connections import CONNECTION_LIMIT, AcceptedConnections
from messiahs.channel.admission import SHUT_OFF
from messiahs.channel.byte_streams.stdin_streams import until_first
from messiahs.channel.certificates.trusted_roots import Presented, TrustedRoots
from messiahs.channel.contract import Callbacks, Peer, Stream
from messiahs.channel.grpc_connections import AcceptedConnection, Context, link_name, told
from messiahs.channel.grpc_errors import BEYOND, REFUSED
from messiahs.channel.grpc_streams import (
    CONTROL,
    LINK_KEY,
    REFUSAL_KEY,
    TASK,
    UPDATE,
    Dialing,
    GrpcStream,
)
from messiahs.channel.opening_rate import OpeningRate
from messiahs.channel.paced_stream import PacedStream
from messiahs.channel.pipes import PipeRequests, begin_of, confirm, join
from messiahs.channel.splices import MeteredStream
from messiahs.channel.transport import Beside, Incoming
from messiahs.core.model.ids import SystemId
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

STREAM_LIMIT: Final = 256
"""Streams for tasks and bytes of one system, at least as many as an honest one opens at one address."""

_STREAM_BYTES: Final = 400 << 10
"""Opening a stream costs as much as receiving a message of this size."""


class Services:
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
        self._openings = OpeningRate()

    def handlers(self, beside: Sequence[Beside]) -> "tuple[grpc.GenericRpcHandler[bytes, bytes], ...]":
        """Return the services without (de)serialisers: messages stay bytes here."""
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
        exchanges = {each.service: {"Exchange": streams(partial(self.exchange, each))} for each in beside}
        return (
            *(grpc.method_handlers_generic_handler(service, methods) for service, methods in exchanges.items()),
            grpc.method_handlers_generic_handler(CONTROL, control),
            grpc.method_handlers_generic_handler(UPDATE, {"Exchange": streams(self.update)}),
            grpc.method_handlers_generic_handler(TASK, task),
        )

    async def control(self, _: object, context: Context) -> None:
        """Serve a link that a neighbor opens."""
        async with self._connection_of(context) as caller:
            peer, name = caller.system, link_name(context)
            refusal = self._incoming.refusal(peer)
            if not refusal and (not name or (peer, name) in self._accepted):
                refusal = f"the metadata {LINK_KEY} does not name a new connection"
            if told(context, REFUSAL_KEY) == SHUT_OFF:
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
        accepted = self._accepted.get((peer, link_name(context)))
        if accepted is None or not await accepted.serve_updates(GrpcStream(context)):
            await self._refuse(context, peer=peer, text="an update channel without its control channel")

    async def wanted(self, _: object, context: Context) -> None:
        """Ask a neighbor that nobody can dial for pipes, until its link ends."""
        await self._serve_beside(context, self._pipes.ask)

    async def exchange(self, beside: Beside, _: object, /, context: Context) -> None:
        """Exchange messages with a neighbor beside its link, until that ends."""
        await self._serve_beside(context, lambda peer, stream: beside.run(peer.system, stream))

    async def _serve_beside(
        self, context: Context, serve: Callable[[Peer, Stream], Coroutine[object, object, None]]
    ) -> None:
        peer = await self._caller(context)
        accepted = self._accepted.get((peer.system, link_name(context)))
        if accepted is None:
            await self._refuse(context, peer=peer.system, text="a stream of a link without its control channel")
        else:
            with suppress(ChannelError):
                await until_first(serve(peer, self._paced(peer, context)), accepted.has_closed())

    async def pipe(self, _: object, context: Context) -> None:
        """Use a pipe that a neighbor opens, or pass on the connection in it."""
        async with self._stream_of(context) as peer:
            stream = self._paced(peer, context)
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

    async def _pass_on(self, query: SpliceQuery, peer: Peer, stream: Stream, context: Context) -> None:
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
                    await self._callbacks.in_turn(peer.system, iter(()), len(content))
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
            except (grpc.aio.AbortError, grpc.aio.InternalError):
                # The latter: the peer was gone before it was told the status, which gRPC does not count as an error.
                raise
            except asyncio.CancelledError as error:
                await _end_with_status(context, error)
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

    def _paced(self, peer: Peer, context: Context) -> PacedStream:
        return PacedStream(GrpcStream(context), peer.system, self._callbacks.in_turn)

    async def _caller(self, context: Context) -> Peer:
        """Return who has opened a stream, in its turn; one that opens too many waits for an answer."""
        presented = Presented.to_grpc(context.auth_context())
        try:
            peer = self._trusted.check(presented)
        except UntrustedError as error:
            if error.claimed is not None:
                self._incoming.on_impostor(SystemId(error.claimed), str(error))
            # The peer has not proved its name, so it is reported by its address.
            await self._refuse(context, peer=context.peer(), text=str(error))
        await asyncio.sleep(self._openings.delay(peer.system, asyncio.get_running_loop().time()))
        await self._callbacks.in_turn(peer.system, iter(()), _STREAM_BYTES)
        return peer

    async def _refuse(self, context: Context, *, peer: str, text: str) -> NoReturn:
        self._callbacks.on_refused(peer, text)
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        raise AssertionError("abort does not return")


async def _end_with_status(context: Context, cancelled: asyncio.CancelledError) -> None:
    """End a call that this module has cancelled, with the reason in the cancellation; gRPC cancels without a text.

    Otherwise a call whose peer is there stays open without a handler, and its peer waits for ever. The status follows
    what was sent before, so this lasts until the peer has read that or is gone.
    """
    task = asyncio.current_task()
    if cancelled.args and task is not None:
        task.uncancel()
        await context.abort(BEYOND, str(cancelled))
