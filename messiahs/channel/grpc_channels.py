"""The channels over gRPC and mutual TLS (MESSIAHS 5.3)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

import grpc
import grpc.aio

from messiahs.channel.accepted_connections import AcceptedConnections, allowed_connections
from messiahs.channel.byte_streams.bulk_port import BulkPort
from messiahs.channel.certificates.in_force import TlsInForce, in_force
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import TrustedRoots
from messiahs.channel.contract import Callbacks, ChannelSettings, NeighborAddress, OutgoingStream, Peer, Stream
from messiahs.channel.grpc_connections import DialedConnection, opened
from messiahs.channel.grpc_credentials import server_credentials
from messiahs.channel.grpc_options import server_options
from messiahs.channel.grpc_services import Services
from messiahs.channel.grpc_streams import (
    Dialing,
    GrpcTransfers,
    TaskConnections,
)
from messiahs.channel.linked_channels import LinkedChannels
from messiahs.channel.local_sockets import SocketFolder
from messiahs.channel.membership.service import ClosedDoor, Door, MembershipService
from messiahs.channel.paced_stream import PacedOutgoingStream, PacedStream
from messiahs.channel.pipes import PipeAnswers, PipeRequests
from messiahs.channel.splices import Splices
from messiahs.channel.transport import Beside, Incoming
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address
from messiahs.errors import (
    ChannelError,
)


def grpc_channels(
    settings: ChannelSettings,
    callbacks: Callbacks,
    tls: TlsMaterial | TlsInForce,
    door: Door | None = None,
    beside: Sequence[Beside] = (),
    /,
) -> LinkedChannels:
    """Make channels over gRPC; what is in force may change later.

    Without a door nobody can join this module. `beside` are exchanges beside the links with neighbors.
    """
    tls = in_force(tls)
    bulk = BulkPort(settings, tls, callbacks.on_refused) if settings.bulk_port is not None else None
    return LinkedChannels(settings, callbacks, GrpcTransport(settings, callbacks, tls, door, beside), bulk)


class GrpcTransport:
    """One server, and one client for each connection that this side opens."""

    def __init__(
        self,
        settings: ChannelSettings,
        callbacks: Callbacks,
        tls: TlsMaterial | TlsInForce,
        door: Door | None = None,
        beside: Sequence[Beside] = (),
        /,
    ) -> None:
        self._settings, self._callbacks, self._tls = settings, callbacks, in_force(tls)
        self._door: Door = door or ClosedDoor()
        self._beside = beside
        self._trusted = TrustedRoots(self._tls, settings.federation, mark=self._door.mark)
        self._sockets = SocketFolder(settings.sockets)
        self._pipes = PipeRequests(self._sockets, callbacks.on_refused)
        self._splices = Splices(self._sockets, self._open_pipe)
        self._dialing = Dialing(settings, self._tls, self._trusted, pipes=self._pipes, splices=self._splices)
        self._connections = TaskConnections(settings, self._dialing, self._splices)
        self._accepted = AcceptedConnections(allowed_connections())
        self._local = "" if settings.listen else self._sockets.address()
        self._answers = PipeAnswers(self._local, self._open_pipe, callbacks.on_refused)
        self._server: grpc.aio.Server | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, incoming: Incoming) -> str:
        """Listen at the configured address; without one, at an address of this machine, for the ends of pipes."""
        server = grpc.aio.server(options=server_options(self._settings.silence_seconds))
        services = Services(
            incoming, self._callbacks, self._trusted, self._accepted, pipes=self._pipes, dialing=self._dialing
        )
        membership = MembershipService(
            self._door,
            federation=self._settings.federation,
            name=self._settings.name,
            on_refused=self._callbacks.on_refused,
        )
        server.add_generic_rpc_handlers((*services.handlers(self._beside), membership.handler()))
        credentials = server_credentials(self._tls, self._door.roots)
        self._tls.on_changed(partial(self._follow, incoming))
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

    def _follow(self, incoming: Incoming) -> None:
        """Show the certificate that is in force, and end the connections of systems that are not trusted any more."""
        self._connections.retire()
        for system in self._trusted.follow():
            incoming.on_distrusted(system)
            self._accepted.cut(system)

    async def stop(self) -> None:
        """Close the port and all connections."""
        for each in self._beside:
            await each.stop()
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
            connection = await opened(channel, address, is_shut_off=is_shut_off)
        except BaseException:
            await channel.close(None)
            raise
        if self._local:
            self._answers.answer(peer, address, requests=self._paced(peer, connection.requests()))
        for each in self._beside:
            each.begin(peer, self._paced(peer, connection.beside(f"{each.service}/Exchange")))
        return connection

    def link(self, neighbor: NeighborAddress) -> None:
        """Let a proxy be asked for the address of a neighbor."""
        self._dialing.addresses[neighbor.system] = neighbor.address

    def unlink(self, system: SystemId) -> None:
        """Ask no proxy for a former neighbor."""
        self._dialing.addresses.pop(system, None)

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

    def _open_pipe(self, peer: SystemId, address: str) -> OutgoingStream:
        return PacedOutgoingStream(self._connections.open_pipe(peer, address), peer, self._callbacks.in_turn)

    def _paced(self, peer: SystemId, stream: Stream) -> PacedStream:
        return PacedStream(stream, peer, self._callbacks.in_turn)
