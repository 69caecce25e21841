"""An output that was damaged in transit is not mistaken for what its task wrote (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest

from messiahs.channel.contract import (
    ChannelSettings,
    Connection,
    NeighborAddress,
    OutgoingStream,
    Peer,
)
from messiahs.channel.linked_channels import LinkedChannels
from messiahs.channel.memory import MemoryNetwork, MemoryTransport
from messiahs.channel.transport import Incoming
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadChunk, ReadRequest, chunk_from_bytes, chunk_to_bytes
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, NYNEVE, TICKET, Recorded, World, attempt, make_memory

Damage = Callable[[int, bytes], bytes | None]


class DamagingTransport:
    """A transport between whose ends messages are changed or lost."""

    def __init__(self, inner: MemoryTransport, damage: Damage) -> None:
        self._inner, self._damage = inner, damage

    async def start(self, incoming: Incoming) -> str:
        """Listen."""
        return await self._inner.start(incoming)

    async def stop(self) -> None:
        """Stop."""
        await self._inner.stop()

    async def dial(self, peer: SystemId, address: str, *, is_shut_off: bool = False) -> Connection:
        """Open a link."""
        return await self._inner.dial(peer, address, is_shut_off=is_shut_off)

    def link(self, neighbor: NeighborAddress) -> None:
        """Learn of a neighbor."""
        self._inner.link(neighbor)

    def unlink(self, system: SystemId) -> None:
        """Forget a neighbor."""
        self._inner.unlink(system)

    def cut(self, peer: SystemId) -> None:
        """End streams."""
        self._inner.cut(peer)

    def undialable(self, neighbor: SystemId) -> Peer | None:
        """Return a neighbor that nobody can dial."""
        return self._inner.undialable(neighbor)

    def open_transfers(self, peer: SystemId, address: Address) -> OutgoingStream:
        """Open a task channel."""
        return self._inner.open_transfers(peer, address)

    def open_put(self, peer: SystemId, address: Address) -> OutgoingStream:
        """Open a stream for files."""
        return self._inner.open_put(peer, address)

    def open_feed(self, peer: SystemId, address: Address) -> OutgoingStream:
        """Open a stream for standard input."""
        return self._inner.open_feed(peer, address)

    async def read(self, peer: SystemId, address: Address, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Read an output, with damage."""
        number = 0
        async with aclosing(self._inner.read(peer, address, request)) as contents:
            async for content in contents:
                damaged = self._damage(number, content)
                number += 1
                if damaged is not None:
                    yield damaged


def flipped(number: int, content: bytes) -> bytes:
    chunk = chunk_from_bytes(content)
    return content if number != 1 else chunk_to_bytes(ReadChunk(content=chunk.content[:-1] + b"?"))


def whole(_: int, content: bytes) -> bytes:
    return content


def lost(number: int, content: bytes) -> bytes | None:
    return None if number == 1 else content


def without_end(_: int, content: bytes) -> bytes | None:
    return None if chunk_from_bytes(content).sha256 else content


async def read_with(damage: Damage, *, offset: int = 0) -> bytes:
    network = MemoryNetwork()
    world = World(make_memory(network))
    cs = await world.start(CS)
    cs.content = bytes(300_000)
    reader = Recorded(name=NYNEVE)
    settings = ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0")
    transport = DamagingTransport(MemoryTransport(settings, reader.callbacks(), network), damage)
    channels = LinkedChannels(settings, reader.callbacks(), transport)
    await channels.start()
    request = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", offset_bytes=offset)
    try:
        return b"".join([piece async for piece in channels.fetch(CS, cs.channels.address, request)])
    finally:
        await channels.stop()
        await world.stop_all()


def test_a_complete_output_is_accepted() -> None:
    assert asyncio.run(read_with(whole)) == bytes(300_000)
    assert asyncio.run(read_with(whole, offset=299_999)) == bytes(1)


@pytest.mark.parametrize("damage", [flipped, lost, without_end])
def test_a_truncated_or_changed_output_is_a_channel_error(damage: Damage) -> None:
    with pytest.raises(ChannelError, match="incomplete or damaged"):
        asyncio.run(read_with(damage))
