"""Guarantees of all implementations of the task channel about large outputs, read by a thread (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.byte_streams.bulk_port import HANDSHAKE_LIMIT
from messiahs.channel.byte_streams.byte_threads import in_own_thread
from messiahs.channel.certificates.tls import load, make_root
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings, OutputSource
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.core.model.ids import Ticket
from messiahs.errors import ChannelError
from messiahs.wire.codec import PutFile, PutRequest, ReadRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    FEDERATION,
    IMPLEMENTATIONS,
    NYNEVE,
    TICKET,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_implementation,
    play,
    tls_files,
)
from tests.ports import free_port
from tests.waiting import until

CONTENT = bytes(range(256)) * 20_000
REQUEST = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout")


@pytest.fixture(params=IMPLEMENTATIONS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_implementation(request.param, tmp_path)


async def pair(world: World) -> tuple[Recorded, Recorded]:
    cs, nyneve = await world.start(CS), await world.start(NYNEVE)
    cs.content = CONTENT
    return cs, nyneve


async def opened(cs: Recorded, reader: Recorded, request: ReadRequest = REQUEST, /) -> OutputSource:
    return await reader.channels.open_read(CS, cs.channels.address, request, size_bytes=len(CONTENT))


async def read_to_end(source: OutputSource, into: bytearray | None = None) -> bytes:
    content = bytearray() if into is None else into

    def read() -> None:
        buffer = memoryview(bytearray(300_000))
        while size := source.read_into(buffer):
            content.extend(buffer[:size])

    await in_own_thread(read, stop=source.close)
    return bytes(content)


@pytest.mark.parametrize("offset", [0, 1_000_003, len(CONTENT), 2**40])
def test_an_output_is_read_to_its_end_with_the_hash_of_the_whole(make: MakeChannels, offset: int) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        source = await opened(cs, nyneve, replace(REQUEST, offset_bytes=offset))
        assert await read_to_end(source) == CONTENT[offset:]
        assert source.sha256 == hashlib.sha256(CONTENT).digest()
        source.close()

    play(make, scene)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (replace(REQUEST, ticket=Ticket(b"?" * 16)), PermissionError),
        (replace(REQUEST, name="stderr"), FileNotFoundError),
    ],
)
def test_a_refusal_has_its_reason(make: MakeChannels, request_: ReadRequest, error: type[OSError]) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)

        async def read() -> None:
            # In frames the first one tells, which a read receives.
            source = await opened(cs, nyneve, request_)
            try:
                await read_to_end(source)
            finally:
                source.close()

        with pytest.raises(error):
            await read()

    play(make, scene)


def test_a_reader_that_leaves_ends_the_read_at_the_executor(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        cs.stops_at = 1_000_000
        source = await opened(cs, nyneve)
        reading = asyncio.create_task(read_to_end(source, arrived := bytearray()))
        await until(lambda: arrived, "the first bytes")
        source.close()
        with pytest.raises(ChannelError):
            await reading
        await until(lambda: cs.closed_reads or any(each.is_closed for each in cs.opened), "the end at the executor")

    play(make, scene)


def with_port_of_cs(port: int, folder: Path) -> MakeChannels:
    root = make_root(FEDERATION)

    def make(settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        settings = replace(settings, bulk_port=port if settings.name == CS else 0, bulk_least_bytes=1)
        return grpc_channels(settings, callbacks, load(tls_files(folder, root, name=settings.name)))

    return make


@asynccontextmanager
async def crowded(port: int) -> AsyncIterator[None]:
    """Let as many strangers wait for a handshake at a port as it admits, which keeps everybody else out."""
    with ExitStack() as strangers:
        for _ in range(HANDSHAKE_LIMIT):
            strangers.enter_context(await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port)))
        yield


@pytest.mark.parametrize("kind", ["grpc", "bulk"])
def test_an_executor_that_stops_in_the_middle_is_a_channel_error(kind: str, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        cs.stops_at = 1_000_000
        source = await opened(cs, nyneve)
        reading = asyncio.create_task(read_to_end(source, arrived := bytearray()))
        await until(lambda: len(arrived) == cs.stops_at, "everything before it stops")
        await world.stop(cs)
        with pytest.raises(ChannelError):
            await reading
        source.close()
        assert CONTENT.startswith(bytes(arrived))

    play(make_implementation(kind, tmp_path), scene)


def test_an_output_comes_in_frames_where_the_port_for_raw_bytes_is_out_of_reach(tmp_path: Path) -> None:
    port = free_port()

    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        async with crowded(port):
            for _ in range(2):
                source = await opened(cs, nyneve)
                assert await read_to_end(source) == CONTENT
                assert source.sha256 == hashlib.sha256(CONTENT).digest()
                source.close()
        # Only the first read tried the port.
        assert (len(cs.opened), cs.closed_reads) == (1, 2)

    play(with_port_of_cs(port, tmp_path), scene)


def test_files_go_in_frames_where_the_port_for_raw_bytes_is_out_of_reach(tmp_path: Path) -> None:
    port = free_port()
    file = PutFile(hashlib.sha256(CONTENT).digest(), len(CONTENT))

    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        request = PutRequest(claim=CLAIM, ticket=TICKET, files=(file,))
        async with crowded(port):
            await nyneve.channels.put(CS, cs.channels.address, request, lambda _, at: ContentSource(CONTENT, offset=at))
        assert cs.files.path(file.sha256).read_bytes() == CONTENT

    play(with_port_of_cs(port, tmp_path), scene)
