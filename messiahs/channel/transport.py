"""What a transport of the channels does, and what it calls when others connect (MESSIAHS 5.3)."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from messiahs.channel.contract import Connection, NeighborAddress, OutgoingStream, Peer, Stream
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address


class Incoming(Protocol):
    """Functions that a transport calls when others connect."""

    def on_impostor(self, name: SystemId, text: str) -> None:
        """Report a caller whose certificate names a system, but was refused for the reason in `text`."""

    def on_distrusted(self, peer: SystemId) -> None:
        """End everything that is open with a peer whose certificate was revoked, or whose root is gone."""

    def refusal(self, peer: SystemId) -> str:
        """Return why a peer may not open a link with this module; "" if it may."""

    def on_shut_off(self, peer: SystemId) -> None:
        """Report a neighbor that has dialed to tell that it has shut this module off."""

    def admitted(self, peer: SystemId) -> AbstractAsyncContextManager[None]:
        """Serve a stream of a peer inside of this: a `PermissionError` ends it if the peer is shut off."""

    async def serve_link(self, peer: SystemId, connection: Connection) -> None:
        """Serve a link that a peer opened until it ends."""

    async def serve_transfers(self, peer: Peer, stream: Stream) -> None:
        """Receive tasks from a peer until it ends the stream."""

    async def serve_put(self, peer: Peer, stream: Stream) -> None:
        """Receive files from a peer."""

    async def serve_feed(self, peer: Peer, stream: Stream) -> None:
        """Pass on standard input from a peer."""

    def serve_read(self, peer: Peer, content: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output; raises what `ReadOutput` raises, and `CodecError`."""


class Beside(Protocol):
    """Exchanges messages with neighbors beside their links: a stream `Exchange` of its service for each connection."""

    @property
    def service(self) -> str:
        """Name of the service."""

    def begin(self, peer: SystemId, stream: Stream) -> None:
        """Exchange on a stream that this side has opened, until it ends."""

    async def run(self, peer: SystemId, stream: Stream) -> None:
        """Exchange on a stream that a neighbor has opened, until it ends."""

    async def stop(self) -> None:
        """End all work."""


class Transport(Protocol):
    """Opens and accepts connections."""

    async def start(self, incoming: Incoming) -> str:
        """Listen, and return the address; a `ChannelError` if that fails."""

    async def stop(self) -> None:
        """Close all connections and accept no more."""

    async def dial(self, peer: SystemId, address: str, *, is_shut_off: bool = False) -> Connection:
        """Open a link with a neighbor; a `ChannelError` gives the reason for a failure.

        With `is_shut_off` only tell the neighbor that it is shut off: no link is opened, and a `ChannelError` follows.
        """

    def link(self, neighbor: NeighborAddress) -> None:
        """Learn of a new neighbor, or of another address."""

    def unlink(self, system: SystemId) -> None:
        """Forget a neighbor."""

    def cut(self, peer: SystemId) -> None:
        """End all streams for tasks and bytes that this side has opened to a peer."""

    def undialable(self, neighbor: SystemId) -> Peer | None:
        """Return a neighbor that has a link and that nobody can dial, with its key; None for all others."""

    def open_transfers(self, peer: SystemId, address: Address) -> OutgoingStream:
        """Open a task channel; a failure to connect is raised by the first read or write."""

    def open_put(self, peer: SystemId, address: Address) -> OutgoingStream:
        """Open a stream for files; a failure to connect is raised by the first read or write."""

    def open_feed(self, peer: SystemId, address: Address) -> OutgoingStream:
        """Open a stream for standard input; a failure to connect is raised by the first read or write."""

    def read(self, peer: SystemId, address: Address, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Request an output and yield the pieces of the answer; raises what `Channels.fetch` raises."""
