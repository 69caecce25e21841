"""The in-process twin of the gRPC channels: no sockets, but the same bytes and the same behavior."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Final

from messiahs.channel.contract import Callbacks, ChannelSettings, Incoming
from messiahs.channel.linked import LinkedChannels
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError, CodecError

_WINDOW: Final = 64


class MemoryNetwork:
    """Everything that listens, by address. `:0` at the end of an address stands for a port of its own."""

    def __init__(self) -> None:
        self._listening: dict[str, MemoryTransport] = {}
        self._ports = 0

    def listen(self, address: str, transport: "MemoryTransport") -> str:
        """Take an address; a `ChannelError` if somebody has it."""
        host, _, port = address.rpartition(":")
        if port == "0":
            self._ports += 1
            address = f"{host}:memory-{self._ports}"
        if address in self._listening:
            raise ChannelError(f"cannot listen on {address}: it is in use")
        self._listening[address] = transport
        return address

    def forget(self, address: str) -> None:
        """Give an address back."""
        self._listening.pop(address, None)

    def find(self, peer: SystemId, address: str) -> "MemoryTransport":
        """Give whoever listens at an address, if it is who it should be."""
        transport = self._listening.get(address)
        if transport is None:
            raise ChannelError(f"{address}: nobody listens")
        if transport.name != peer:
            raise ChannelError(f"{address}: {transport.name} answers instead of {peer}")
        return transport


def memory_channels(settings: ChannelSettings, callbacks: Callbacks, network: MemoryNetwork, /) -> LinkedChannels:
    """Make channels to the other modules of the same network object."""
    return LinkedChannels(settings, callbacks, MemoryTransport(settings, callbacks, network))


class MemoryStream:
    """One end of a stream; what one end writes the other reads, at most a window ahead of it."""

    def __init__(self) -> None:
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue(_WINDOW)
        self._other: MemoryStream = self
        self._is_closed = False

    async def read(self) -> bytes | None:
        """Wait for the next message; None once the other end has finished."""
        if self._is_closed:
            raise ChannelError("the connection is closed")
        return await self._inbox.get()

    async def write(self, content: bytes) -> None:
        """Put a message into the window."""
        if self._is_closed:
            raise ChannelError("the connection is closed")
        await self._other._inbox.put(content)  # noqa: SLF001 - the two ends are one thing

    async def finish(self) -> None:
        """Let the other end read None after everything written before."""
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
        """Give the update channel."""
        return self._updates

    async def close(self) -> None:
        """End both channels on both sides."""
        self.control.close()
        self._updates.close()


class MemoryTransport:
    """One module's place in a network."""

    def __init__(self, settings: ChannelSettings, callbacks: Callbacks, network: MemoryNetwork) -> None:
        self.name = settings.name
        self._callbacks, self._network, self._address = callbacks, network, settings.listen
        self._incoming: Incoming | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, incoming: Incoming) -> str:
        """Take the address."""
        self._address = self._network.listen(self._address, self)
        self._incoming = incoming
        return self._address

    async def stop(self) -> None:
        """Give the address back and end what was served."""
        if self._incoming is not None:
            self._network.forget(self._address)
            self._incoming = None
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def dial(self, peer: SystemId, address: str) -> MemoryConnection:
        """Open a link."""
        return self._network.find(peer, address).accept_link(self.name)

    def open_transfers(self, peer: SystemId, address: str) -> MemoryStream:
        """Open a task channel."""
        here, there = _pair()
        try:
            self._network.find(peer, address).accept_transfers(self.name, there)
        except ChannelError:
            here.close()
        return here

    def open_put(self, peer: SystemId, address: str) -> MemoryStream:
        """Open a stream that brings files."""
        here, there = _pair()
        try:
            self._network.find(peer, address).accept_put(self.name, there)
        except ChannelError:
            here.close()
        return here

    async def read(self, peer: SystemId, address: str, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Ask an executor for an output."""
        try:
            async with aclosing(self._network.find(peer, address).serve_read(self.name, request)) as contents:
                async for content in contents:
                    yield content
        except CodecError as error:
            raise PermissionError(str(error)) from error
        except (PermissionError, FileNotFoundError):
            raise
        except OSError as error:
            raise ChannelError(str(error)) from error

    def accept_link(self, peer: SystemId) -> MemoryConnection:
        """Serve a new link and give its other side."""
        assert self._incoming is not None, "only who listens is found"
        refusal = self._incoming.refusal(peer)
        if refusal:
            self._callbacks.on_refused(peer, refusal)
            raise ChannelError(refusal)
        control, other_control = _pair()
        updates, other_updates = _pair()
        self._begin(self._incoming.serve_link(peer, MemoryConnection(other_control, other_updates)))
        return MemoryConnection(control, updates)

    def accept_transfers(self, peer: SystemId, stream: MemoryStream) -> None:
        """Serve a new task channel."""
        assert self._incoming is not None, "only who listens is found"
        self._begin(self._serve(self._incoming.serve_transfers(peer, stream), stream))

    def accept_put(self, peer: SystemId, stream: MemoryStream) -> None:
        """Serve a new stream that brings files."""
        assert self._incoming is not None, "only who listens is found"
        self._begin(self._serve(self._incoming.serve_put(peer, stream), stream))

    def serve_read(self, peer: SystemId, request: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output."""
        assert self._incoming is not None, "only who listens is found"
        return self._incoming.serve_read(peer, request)

    def _begin(self, serving: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(serving)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, serving: Coroutine[None, None, None], stream: MemoryStream) -> None:
        try:
            await serving
            await stream.finish()
        except ChannelError:
            # The peer is gone, and repeats what matters when it is back.
            return
        except BaseException:
            stream.close()
            raise
