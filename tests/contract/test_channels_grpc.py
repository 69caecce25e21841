"""Guarantees of the gRPC channels about strangers and hostile neighbors (MESSIAHS 5.3), which memory has not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message

from messiahs.channel import grpc_services
from messiahs.channel.byte_streams import file_streams
from messiahs.channel.certificates import tls
from messiahs.channel.grpc_options import STREAMS_OF_CONNECTION
from messiahs.channel.grpc_streams import open_stream
from messiahs.core.interface.events import (
    ControlReceived,
    LinkDown,
    LinkRefused,
    LinkUp,
    TransferFailed,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.vectors.vectors import EMPTY
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadRequest, encode_control, encode_status_vector, encode_transfer, transfer_to_bytes
from messiahs.wire.v1 import control_pb2_grpc, task_pb2_grpc, update_pb2_grpc
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    TICKET,
    XINU,
    Recorded,
    World,
    attempt,
    make_grpc,
    tls_files,
    transfer,
)
from tests.waiting import until

LINK = (("messiahs-link", "1"),)
VECTOR = StatusVector(kind=VectorKind.FOR_PARENTS, vector=EMPTY, period_ns=1, age_ns=2)

Scene = Callable[[World], Awaitable[None]]


@pytest.fixture
def root() -> tls.KeyAndCertificate:
    return tls.make_root("campus")


def play(tmp_path: Path, root: tls.KeyAndCertificate, *, scene: Scene) -> None:
    async def run() -> None:
        world = World(make_grpc(tmp_path, root))
        try:
            async with asyncio.timeout(60):
                await scene(world)
        finally:
            await world.stop_all()

    asyncio.run(run())


@asynccontextmanager
async def client(files: tls.TlsFiles, address: str, *, name: str = "cs") -> AsyncIterator[grpc.aio.Channel]:
    """Connect as any other program with these files could."""
    material = tls.load(files)
    credentials = grpc.ssl_channel_credentials(material.trust, material.key, material.certificate)
    options = (("grpc.ssl_target_name_override", name),)
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        yield channel


Exchange = grpc.aio.StreamStreamCall[Message, Message]
Metadata = tuple[tuple[str, str], ...]


def control_exchange(channel: grpc.aio.Channel) -> Exchange:
    stub: Any = control_pb2_grpc.ControlStub(channel)  # type: ignore[no-untyped-call]  # generated without types
    return cast("Exchange", stub.Exchange(metadata=LINK))


def update_exchange(channel: grpc.aio.Channel, metadata: Metadata = LINK) -> Exchange:
    stub: Any = update_pb2_grpc.UpdateStub(channel)  # type: ignore[no-untyped-call]  # generated without types
    return cast("Exchange", stub.Exchange(metadata=metadata))


def task_transfer(channel: grpc.aio.Channel) -> Exchange:
    stub: Any = task_pb2_grpc.TaskStub(channel)  # type: ignore[no-untyped-call]  # generated without types
    return cast("Exchange", stub.Transfer())


async def read_bytes(stream: grpc.aio.StreamStreamCall[bytes, bytes]) -> bytes:
    content = await stream.read()
    assert isinstance(content, bytes)
    return content


async def cs_with_child(world: World) -> Recorded:
    return await world.start(CS, neighbors=((XINU, None),))


def test_a_client_made_from_the_proto_files_alone_can_be_a_neighbor(
    tmp_path: Path, root: tls.KeyAndCertificate
) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        async with client(tls_files(tmp_path, root, name="xinu"), cs.channels.address) as channel:
            control = control_exchange(channel)
            assert tuple(await control.initial_metadata()) == LINK
            updates = update_exchange(channel)
            await control.write(encode_control((SystemStatusQuery(),)))
            await updates.write(encode_status_vector(VECTOR))
            tasks = task_transfer(channel)
            await tasks.write(encode_transfer(transfer(1)))
            await until(lambda: len(cs.events) == 4, "everything that was sent")
            cs.channels.send_control(XINU, SystemStatusQuery())
            cs.channels.send_vector(XINU, VECTOR)
            assert await control.read() == encode_control((SystemStatusQuery(),))
            assert await updates.read() == encode_status_vector(VECTOR)
        await until(lambda: cs.of_kind(LinkDown), "the end of the link")
        assert cs.events[0] == LinkUp(neighbor=XINU)
        assert ControlReceived(sender=XINU, message=SystemStatusQuery()) in cs.events
        assert VectorReceived(sender=XINU, message=VECTOR) in cs.events
        assert [(one.sender, one.message) for one in cs.of_kind(TransferReceived)] == [(XINU, transfer(1))]

    play(tmp_path, root, scene=scene)


def test_malformed_messages_are_dropped_and_counted_and_the_link_stays(
    tmp_path: Path, root: tls.KeyAndCertificate
) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        async with client(tls_files(tmp_path, root, name="xinu"), cs.channels.address) as channel:
            control = open_stream(channel, "/messiahs.wire.v1.Control/Exchange", metadata=LINK)
            await control.initial_metadata()
            updates = open_stream(channel, "/messiahs.wire.v1.Update/Exchange", metadata=LINK)
            tasks = open_stream(channel, "/messiahs.wire.v1.Task/Transfer")
            for content in (b"\xff" * 100, b"\x0a\x00", encode_control((SystemStatusQuery(),)).SerializeToString()):
                await control.write(content)
            for content in (b"garbage", encode_status_vector(VECTOR).SerializeToString()):
                await updates.write(content)
            await tasks.write(b"garbage")
            assert b"a transfer was dropped" in await read_bytes(tasks)
            await tasks.write(transfer_to_bytes(transfer(1)))
            await until(lambda: len(cs.events) == 4, "what was well-formed")
            assert len(cs.dropped) == cs.channels.counters[XINU].dropped == 4
            assert (XINU, "a control message of an unknown kind") in cs.dropped
            assert not cs.of_kind(LinkDown)

    play(tmp_path, root, scene=scene)


def test_a_large_message_is_dropped_and_a_huge_one_costs_its_sender_the_connection(
    tmp_path: Path, root: tls.KeyAndCertificate
) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        async with client(tls_files(tmp_path, root, name="xinu"), cs.channels.address) as channel:
            control = open_stream(channel, "/messiahs.wire.v1.Control/Exchange", metadata=LINK)
            await control.initial_metadata()
            await control.write(b"\x0a\x00" * (1 << 20))
            await control.write(encode_control((SystemStatusQuery(),)).SerializeToString())
            await until(lambda: cs.of_kind(ControlReceived), "the message after a large one")
            assert cs.dropped == [(XINU, "2097152 bytes of message, at most 1048576 are allowed")]
            await control.write(b"\x0a\x00" * (4 << 20))
            await until(lambda: cs.of_kind(LinkDown), "the end of the link")
        await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: len(cs.of_kind(LinkUp)) == 2, "a proper link")

    play(tmp_path, root, scene=scene)


@pytest.mark.parametrize("metadata", [(), (("messiahs-link", "2"),)])
def test_an_update_channel_without_its_control_channel_is_refused(
    tmp_path: Path, root: tls.KeyAndCertificate, metadata: tuple[tuple[str, str], ...]
) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        async with client(tls_files(tmp_path, root, name="xinu"), cs.channels.address) as channel:
            control = control_exchange(channel)
            await control.initial_metadata()
            updates = update_exchange(channel, metadata)
            assert await updates.code() is grpc.StatusCode.PERMISSION_DENIED
        assert cs.refused == [(XINU, "an update channel without its control channel")]

    play(tmp_path, root, scene=scene)


def test_a_certificate_of_another_federation_is_refused_on_every_channel(
    tmp_path: Path, root: tls.KeyAndCertificate
) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        files = tls_files(tmp_path, root, name="xinu", federation="elsewhere")
        async with client(files, cs.channels.address) as channel:
            calls = [
                open_stream(channel, f"/messiahs.wire.v1.{method}", metadata=LINK)
                for method in ("Control/Exchange", "Update/Exchange", "Task/Transfer")
            ]
            reading = channel.unary_stream("/messiahs.wire.v1.Task/Read", None, None)(b"")
            assert [await call.code() for call in calls] == [grpc.StatusCode.PERMISSION_DENIED] * 3
            assert await reading.code() is grpc.StatusCode.PERMISSION_DENIED
        assert {text for _, text in cs.refused} == {"its certificate names no system of campus"}
        assert cs.events == []

    play(tmp_path, root, scene=scene)


def test_a_certificate_of_a_foreign_root_does_not_even_connect(tmp_path: Path, root: tls.KeyAndCertificate) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        files = tls_files(tmp_path / "foreign", tls.make_root("campus"), name="xinu")
        files.trust_file.write_bytes(root.certificate)
        async with client(files, cs.channels.address) as channel:
            control = control_exchange(channel)
            assert await control.code() is grpc.StatusCode.UNAVAILABLE
        assert cs.events == []

    play(tmp_path, root, scene=scene)


def test_another_system_at_a_neighbor_s_address_gets_no_link(tmp_path: Path, root: tls.KeyAndCertificate) -> None:
    async def scene(world: World) -> None:
        impostor = await world.start(XINU)
        module = await world.start(CS, neighbors=((XINU, None),))
        dialing = await world.start(XINU, neighbors=((CS, impostor.channels.address),))
        await until(lambda: dialing.refused, "the refusal")
        assert dialing.refused[0][1] == "its certificate names xinu instead of cs"
        assert impostor.events == module.events == []
        assert dialing.events == [LinkRefused(neighbor=CS, text=dialing.refused[0][1])]

    play(tmp_path, root, scene=scene)


def test_a_system_may_open_only_so_many_streams_and_one_that_brings_nothing_ends(
    tmp_path: Path, root: tls.KeyAndCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        async with client(tls_files(tmp_path, root, name="xinu"), cs.channels.address) as channel:
            streams = [open_stream(channel, "/messiahs.wire.v1.Task/Transfer") for _ in range(2)]
            for stream in streams:
                await stream.write(b"garbage")
                assert b"a transfer was dropped" in await read_bytes(stream)
            third = open_stream(channel, "/messiahs.wire.v1.Task/Put")
            assert await third.details() == "xinu has 2 streams open, as many as it may"
            assert cs.refused == [("xinu", "xinu has 2 streams open, as many as it may")]
            await streams[0].done_writing()
            assert await streams[0].code() is grpc.StatusCode.OK
            # It announces no file, ends by itself, and leaves room.
            assert await open_stream(channel, "/messiahs.wire.v1.Task/Put").details() == ""
            task = task_transfer(channel)
            await task.write(encode_transfer(transfer(1)))
            await until(lambda: cs.of_kind(TransferReceived), "a task")

    monkeypatch.setattr(grpc_services, "STREAM_LIMIT", 2)
    monkeypatch.setattr(file_streams, "SILENCE_SECONDS", 0.1)
    play(tmp_path, root, scene=scene)


def test_streams_that_do_not_fit_on_one_connection_take_another(tmp_path: Path, root: tls.KeyAndCertificate) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await world.start(CS), await world.start(XINU)
        cs.content, cs.stops_at = b"so far", 1
        request = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", follow=True)
        followed = [xinu.channels.fetch(CS, cs.channels.address, request) for _ in range(2 * STREAMS_OF_CONNECTION + 1)]
        assert set(await asyncio.gather(*map(anext, followed))) == {b"so far"}
        for each in followed:
            await each.aclose()

    play(tmp_path, root, scene=scene)


def test_further_streams_on_a_connection_wait_unseen_until_others_have_ended(
    tmp_path: Path, root: tls.KeyAndCertificate
) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        async with client(tls_files(tmp_path, root, name="xinu"), cs.channels.address) as channel:
            streams = [open_stream(channel, "/messiahs.wire.v1.Task/Transfer") for _ in range(STREAMS_OF_CONNECTION)]
            for stream in streams:
                await stream.write(b"garbage")
                assert b"a transfer was dropped" in await read_bytes(stream)
            further = open_stream(channel, "/messiahs.wire.v1.Task/Transfer")
            writing = asyncio.create_task(further.write(b"garbage"))
            await streams[0].write(b"garbage")
            assert b"a transfer was dropped" in await read_bytes(streams[0])
            assert len(cs.dropped) == STREAMS_OF_CONNECTION + 1
            await streams[0].done_writing()
            assert b"a transfer was dropped" in await read_bytes(further)
            await writing
            assert cs.refused == []

    play(tmp_path, root, scene=scene)


@pytest.mark.parametrize(
    ("peer", "address"),
    [("cs", "nowhere"), ("cs", "127.0.0.1:"), ("cs", "127.0.0.1:99999999"), (".cs", "{}"), ("a..b", "{}")],
)
def test_an_address_or_name_that_nobody_can_have_is_an_error_of_the_channel(
    tmp_path: Path, root: tls.KeyAndCertificate, peer: SystemId, address: str
) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await world.start(CS), await world.start(XINU)
        there = address.format(cs.channels.address)
        xinu.channels.send_tasks(peer, there, transfer(1))
        await until(lambda: xinu.of_kind(TransferFailed), "a failure")
        assert "cannot be dialed" in xinu.of_kind(TransferFailed)[0].text
        request = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout")
        with pytest.raises(ChannelError, match="cannot be dialed"):
            await anext(xinu.channels.fetch(peer, there, request))

    play(tmp_path, root, scene=scene)


def test_garbage_on_the_port_is_harmless(tmp_path: Path, root: tls.KeyAndCertificate) -> None:
    async def scene(world: World) -> None:
        cs = await cs_with_child(world)
        host, _, port = cs.channels.address.rpartition(":")
        for garbage in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(1_000), b"\xff" * 100_000):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(garbage)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
        await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: cs.of_kind(LinkUp), "a proper link")
        assert cs.dropped == cs.refused == []

    play(tmp_path, root, scene=scene)


def test_a_dead_line_is_noticed_by_both_sides(tmp_path: Path, root: tls.KeyAndCertificate) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),), silence_seconds=0.6)
        is_alive = asyncio.Event()
        is_alive.set()
        async with line(cs.channels.address, is_alive) as address:
            xinu = await world.start(XINU, neighbors=((CS, address),), silence_seconds=0.6)
            await until(lambda: cs.of_kind(LinkUp) and xinu.of_kind(LinkUp), "a link")
            is_alive.clear()
            await until(lambda: cs.of_kind(LinkDown) and xinu.of_kind(LinkDown), "the end of the link")
            is_alive.set()
            await until(lambda: min(len(cs.of_kind(LinkUp)), len(xinu.of_kind(LinkUp))) >= 2, "a new link")

    play(tmp_path, root, scene=scene)


@asynccontextmanager
async def line(address: str, is_alive: asyncio.Event) -> AsyncIterator[str]:
    """Forward connections to an address, and hold everything back while the line is interrupted."""
    host, _, port = address.rpartition(":")
    tasks: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while content := await reader.read(65_536):
                await is_alive.wait()
                writer.write(content)
        except ConnectionError:
            return
        finally:
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        tasks.add(asyncio.create_task(forward(reader, there_writer)))
        tasks.add(asyncio.create_task(forward(there_reader, writer)))

    server = await asyncio.start_server(accept, host, 0)
    try:
        yield f"{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_a_missing_tls_file_is_a_channel_error_that_names_it(tmp_path: Path, root: tls.KeyAndCertificate) -> None:
    files = tls_files(tmp_path, root, name="cs")
    files.key_file.unlink()
    with pytest.raises(ChannelError, match=r"cs\.key: No such file"):
        tls.load(files)
