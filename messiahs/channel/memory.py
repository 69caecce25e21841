"""Channels within one process, with the bytes and the behavior of the gRPC channels."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Final
from weakref import WeakSet

from messiahs.channel.admission import SHUT_OFF, WHY_SHUT_OFF
from messiahs.channel.certificates.fingerprints import FINGERPRINT_BYTES
from messiahs.channel.contract import (
    Callbacks,
    ChannelSettings,
    NeighborAddress,
    Peer,
)
from messiahs.channel.jobs import Jobs
from messiahs.channel.linked_channels import LinkedChannels
from messiahs.channel.transport import Incoming
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address, Splice
from messiahs.errors import BeyondError, ChannelError, CodecError, DeclinedError, RefusedError

_WINDOW: Final = 4


class MemoryNetwork:
    """All listening transports by address. An address that ends in `:0` gets a port of its own."""

    def __init__(self) -> None:
        self._listening: dict[str, MemoryTransport] = {}
        self._ports = 0

    def listen(self, address: str, transport: "MemoryTransport") -> str:
        """Register a transport; a `ChannelError` if the address is in use."""
        host, _, port = address.rpartition(":")
        if port == "0":
            self._ports += 1
            address = f"{host}:memory-{self._ports}"
        if address in self._listening:
            raise ChannelError(f"cannot listen on {address}: it is in use")
        self._listening[address] = transport
        return address

    def forget(self, address: str) -> None:
        """Release an address."""
        self._listening.pop(address, None)

    def find(self, peer: SystemId, address: Address) -> "MemoryTransport":
        """Return the transport that listens at an address; a `ChannelError` if it is not that of `peer`."""
        if isinstance(address, Splice):
            raise ChannelError("in memory no connections are passed on")
        transport = self._listening.get(address)
        if transport is None:
            raise ChannelError(f"{address}: connection refused")
        if transport.name != peer:
            raise ChannelError(f"{address}: {transport.name} answers instead of {peer}")
        return transport


def memory_channels(settings: ChannelSettings, callbacks: Callbacks, network: MemoryNetwork, /) -> LinkedChannels:
    """Make channels to other modules of the same network object."""
    return LinkedChannels(settings, callbacks, MemoryTransport(settings, callbacks, network))


def memory_key(name: SystemId) -> bytes:
    """Return the fingerprint that stands for the public key of a module, which has none in memory."""
    return hashlib.sha256(name.encode()).digest()[:FINGERPRINT_BYTES]


class MemoryStream:
    """One end of a stream. A writer may be at most a window ahead of the reader."""

    def __init__(self) -> None:
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue(_WINDOW)
        self._other: MemoryStream = self
        self._is_closed = False

    async def read(self) -> bytes | None:
        """Wait for the next message; None if the other end has finished."""
        if self._is_closed:
            raise ChannelError("the connection is closed")
        return await self._inbox.get()

    async def write(self, content: bytes) -> None:
        """Send a message; waits while the window is full."""
        if self._is_closed:
            raise ChannelError("the connection is closed")
        await self._other._inbox.put(content)  # noqa: SLF001 - the two ends are one thing

    async def finish(self) -> None:
        """End this direction after everything written before."""
        await self._other._inbox.put(None)  # noqa: SLF001 - the two ends are one thing

    def close(self) -> None:
        """End both directions at once."""
        for end in (self, self._other):
            end._is_closed = True  # noqa: SLF001 - the two ends are one thing
            while not end._inbox.empty():  # noqa: SLF001 - as above
                end._inbox.get_nowait()  # noqa: SLF001 - as above
            end._inbox.put_nowait(None)  # noqa: SLF001 - as above


def _pair() -> tuple[MemoryStream, MemoryStream]:
    one, other = MemoryStream(), MemoryStream()
    one._other, other._other = other, one  # noqa: SLF001 - the two ends are one thing
    return one, other


class MemoryConnection:
    """One side of a connection."""

    def __init__(self, control: MemoryStream, updates: MemoryStream) -> None:
        self.control, self._updates = control, updates

    async def updates(self) -> MemoryStream:
        """Return the update channel."""
        return self._updates

    async def close(self) -> None:
        """End both channels on both sides."""
        self.control.close()
        self._updates.close()


class MemoryTransport:
    """The transport of one module in a network."""

    def __init__(self, settings: ChannelSettings, callbacks: Callbacks, network: MemoryNetwork) -> None:
        self.name = settings.name
        self._callbacks, self._network, self._address = callbacks, network, settings.listen
        self._incoming: Incoming | None = None
        self._serving = Jobs()
        self._opened: dict[SystemId, WeakSet[MemoryStream]] = {}

    async def start(self, incoming: Incoming) -> str:
        """Register at the address."""
        self._address = self._network.listen(self._address, self)
        self._incoming = incoming
        return self._address

    async def stop(self) -> None:
        """Release the address and end everything that is served."""
        if self._incoming is not None:
            self._network.forget(self._address)
            self._incoming = None
        await self._serving.stop()

    async def dial(self, peer: SystemId, address: str, *, is_shut_off: bool = False) -> MemoryConnection:
        """Open a link."""
        return self._network.find(peer, address).accept_link(self.name, is_shut_off=is_shut_off)

    def link(self, neighbor: NeighborAddress) -> None:
        """Do nothing: every address that is dialed is passed in."""

    def unlink(self, system: SystemId) -> None:
        """Do nothing."""

    def cut(self, peer: SystemId) -> None:
        """End all streams that this side has opened to a peer."""
        for stream in self._opened.pop(peer, ()):
            stream.close()

    def undialable(self, neighbor: SystemId) -> Peer | None:  # noqa: ARG002 - in memory everybody is dialed
        """Return None."""
        return None

    def open_transfers(self, peer: SystemId, address: Address) -> MemoryStream:
        """Open a task channel."""
        here, there = self._pair_with(peer)
        try:
            self._network.find(peer, address).accept_transfers(self.name, there)
        except ChannelError:
            here.close()
        return here

    def open_put(self, peer: SystemId, address: Address) -> MemoryStream:
        """Open a stream for files."""
        here, there = self._pair_with(peer)
        try:
            self._network.find(peer, address).accept_put(self.name, there)
        except ChannelError:
            here.close()
        return here

    def open_feed(self, peer: SystemId, address: Address) -> MemoryStream:
        """Open a stream for standard input."""
        here, there = self._pair_with(peer)
        try:
            self._network.find(peer, address).accept_feed(self.name, there)
        except ChannelError:
            here.close()
        return here

    def _pair_with(self, peer: SystemId) -> tuple[MemoryStream, MemoryStream]:
        here, there = _pair()
        self._opened.setdefault(peer, WeakSet()).add(here)
        return here, there

    async def read(self, peer: SystemId, address: Address, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Request an output from an executor."""
        try:
            async with aclosing(self._network.find(peer, address).serve_read(self.name, request)) as contents:
                async for content in contents:
                    yield content
        except CodecError as error:
            raise PermissionError(str(error)) from error
        except DeclinedError as error:
            raise (BeyondError if error.is_brief else RefusedError)(str(error)) from error
        except (PermissionError, FileNotFoundError):
            raise
        except OSError as error:
            raise ChannelError(str(error)) from error

    def accept_link(self, peer: SystemId, *, is_shut_off: bool) -> MemoryConnection:
        """Serve a new link and return its other side."""
        assert self._incoming is not None, "find() returns listening transports only"
        refusal = self._incoming.refusal(peer)
        if is_shut_off:
            self._incoming.on_shut_off(peer)
            refusal = SHUT_OFF
        if refusal:
            self._callbacks.on_refused(peer, refusal)
            raise ChannelError(WHY_SHUT_OFF if refusal == SHUT_OFF else refusal)
        control, other_control = _pair()
        updates, other_updates = _pair()
        self._serving.begin(self._incoming.serve_link(peer, MemoryConnection(other_control, other_updates)))
        return MemoryConnection(control, updates)

    def accept_transfers(self, peer: SystemId, stream: MemoryStream) -> None:
        """Serve a new task channel."""
        assert self._incoming is not None, "find() returns listening transports only"
        self._serving.begin(self._serve(peer, self._incoming.serve_transfers(_peer(peer), stream), stream))

    def accept_put(self, peer: SystemId, stream: MemoryStream) -> None:
        """Serve a new stream for files."""
        assert self._incoming is not None, "find() returns listening transports only"
        self._serving.begin(self._serve(peer, self._incoming.serve_put(_peer(peer), stream), stream))

    def accept_feed(self, peer: SystemId, stream: MemoryStream) -> None:
        """Serve a new stream for standard input."""
        assert self._incoming is not None, "find() returns listening transports only"
        self._serving.begin(self._serve(peer, self._incoming.serve_feed(_peer(peer), stream), stream))

    def serve_read(self, peer: SystemId, request: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output."""
        assert self._incoming is not None, "find() returns listening transports only"
        if self._incoming.refusal(peer) == SHUT_OFF:
            raise PermissionError(SHUT_OFF)
        return self._incoming.serve_read(_peer(peer), request)

    async def _serve(self, peer: SystemId, serving: Coroutine[None, None, None], stream: MemoryStream) -> None:
        assert self._incoming is not None, "find() returns listening transports only"
        try:
            async with self._incoming.admitted(peer):
                await serving
            await stream.finish()
        except PermissionError:
            serving.close()
            stream.close()
        except ChannelError:
            # The peer is gone; it repeats what matters after it reconnects.
            return
        except BaseException:
            stream.close()
            raise


def _peer(name: SystemId) -> Peer:
    return Peer(system=name, key=memory_key(name))
