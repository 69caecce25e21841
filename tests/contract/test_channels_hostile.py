"""Peers with a valid certificate that do not do their part: what they can hold up, and for how long (MESSIAHS 5.3)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, nullcontext, suppress
from itertools import cycle
from pathlib import Path

import grpc
import grpc.aio
import pytest

from messiahs.channel import grpc_channels, grpc_options
from messiahs.channel.accepted_connections import CONNECTION_LIMIT
from messiahs.channel.byte_streams import file_streams
from messiahs.channel.certificates import tls
from messiahs.channel.contract import ChannelSettings, Connection, Peer, Stream
from messiahs.channel.grpc_channels import GrpcTransport
from messiahs.channel.grpc_streams import open_stream
from messiahs.core.interface.events import LinkDown, LinkUp
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError
from messiahs.wire.codec import PutAnswer, PutFile, PutRequest, put_answer_to_bytes
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    FEDERATION,
    NYNEVE,
    TICKET,
    XINU,
    Recorded,
    World,
    make_grpc,
    tls_files,
)
from tests.waiting import let_pass_in_loop, until

TRANSFER = "/messiahs.wire.v1.Task/Transfer"
PIPE = "/messiahs.wire.v1.Task/Pipe"
_REFUSED = 300
_PAUSES_SECONDS = tuple(number / 10_000 for number in range(50))
"""How long after its message somebody hangs up: before it is read, while it is refused, and later."""


class Hostile:
    """A module that accepts streams, and answers files only as often as the test says (mutable)."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def on_impostor(self, name: SystemId, text: str) -> None:
        """Let anybody pass for anybody."""

    def on_distrusted(self, peer: SystemId) -> None:
        """Go on with anybody."""

    def refusal(self, peer: SystemId) -> str:
        """Accept nobody's link."""
        return f"{peer} is no neighbor"

    async def serve_link(self, peer: SystemId, connection: Connection) -> None:
        """Accept no link."""

    async def serve_transfers(self, peer: Peer, stream: Stream) -> None:
        """Take no tasks."""

    async def serve_put(self, _: Peer, stream: Stream) -> None:
        """Take everything."""
        while await stream.read() is not None:
            if self._answers:
                self._answers -= 1
                await stream.write(put_answer_to_bytes(PutAnswer(offsets_bytes=(0,))))
        await asyncio.Event().wait()

    async def serve_feed(self, peer: Peer, stream: Stream) -> None:
        """Take nothing."""

    def on_shut_off(self, _: SystemId) -> None:
        """Never called here."""

    def admitted(self, _: SystemId) -> AbstractAsyncContextManager[None]:
        """Admit everybody."""
        return nullcontext()

    async def serve_read(self, _: Peer, __: bytes) -> AsyncGenerator[bytes, None]:
        """Send nothing."""
        yield b""


def test_an_executor_that_takes_files_and_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        root = tls.make_root(FEDERATION)
        settings = ChannelSettings(federation=FEDERATION, name=CS, listen="127.0.0.1:0")
        material = tls.load(tls_files(tmp_path, root, name=CS))
        transport = GrpcTransport(settings, Recorded(name=CS).callbacks(), material)
        address = await transport.start(Hostile(answers=1))
        world = World(make_grpc(tmp_path, root))
        try:
            origin = await world.start(NYNEVE)
            request = PutRequest(claim=CLAIM, ticket=TICKET, files=(PutFile(bytes(32), 10),))
            with closing(await origin.channels.begin_put(CS, address, request)) as put:
                monkeypatch.setattr(file_streams, "SILENCE_SECONDS", 0.2)
                with pytest.raises(ChannelError, match="the executor does not answer"):
                    await put.send(lambda _, offset: ContentSource(b"0123456789", offset=offset))
            with pytest.raises(ChannelError, match="the executor does not answer"):
                await origin.channels.begin_put(CS, address, request)
        finally:
            await world.stop_all()
            await transport.stop()

    asyncio.run(scene())


@asynccontextmanager
async def connected(folder: Path, root: tls.KeyAndCertificate, *, address: str) -> AsyncIterator[grpc.aio.Channel]:
    """Open a connection of xinu, which answers pings and has no stream."""
    material = tls.load(tls_files(folder, root, name=XINU))
    credentials = grpc.ssl_channel_credentials(material.trust, material.key, material.certificate)
    options = (("grpc.ssl_target_name_override", CS), ("grpc.use_local_subchannel_pool", 1))
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        await channel.channel_ready()
        yield channel


def is_open(channel: grpc.aio.Channel) -> bool:
    return channel.get_state() is grpc.ChannelConnectivity.READY


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_address_keeps_only_a_share_of_all_connections_without_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    root = tls.make_root(FEDERATION)

    async def scene(world: World) -> None:
        cs = await world.start(CS, listen=f"{host}:0", neighbors=((NYNEVE, None),))
        nyneve = await world.start(NYNEVE, neighbors=((CS, cs.channels.address),))
        await until(lambda: cs.of_kind(LinkUp), "a link")
        async with AsyncExitStack() as stack:
            with_stream = await stack.enter_async_context(connected(tmp_path, root, address=cs.channels.address))
            transfer = open_stream(with_stream, TRANSFER)
            await transfer.write(b"")
            await until(lambda: cs.dropped, "that its stream is known")
            idle = [
                await stack.enter_async_context(connected(tmp_path, root, address=cs.channels.address))
                for _ in range(12)
            ]
            await until(lambda: sum(map(is_open, idle)) <= 4, "the end of those beyond the share")
            # It looks again, and finds nothing more.
            await let_pass_in_loop(1.5)
            assert sum(map(is_open, idle)) == 4
            assert is_open(with_stream)
            assert not transfer.done()
        assert not nyneve.of_kind(LinkDown)

    async def run() -> None:
        world = World(make_grpc(tmp_path, root))
        try:
            await scene(world)
        finally:
            await world.stop_all()

    monkeypatch.setattr(grpc_channels, "allowed_connections", lambda: 16)
    asyncio.run(run())


def test_a_system_has_only_so_many_connections_with_streams(tmp_path: Path) -> None:
    root = tls.make_root(FEDERATION)

    async def run() -> None:
        world = World(make_grpc(tmp_path, root))
        try:
            cs = await world.start(CS)
            async with AsyncExitStack() as stack:
                channels = [
                    await stack.enter_async_context(connected(tmp_path, root, address=cs.channels.address))
                    for _ in range(CONNECTION_LIMIT + 1)
                ]
                for number, channel in enumerate(channels):
                    # One that is refused may be so before it has written.
                    with suppress(grpc.aio.AioRpcError):
                        await open_stream(channel, TRANSFER).write(b"")
                    await until(lambda: len(cs.dropped + cs.refused) > number, "what became of the stream")  # noqa: B023 - at once
                assert cs.refused == [(XINU, "xinu has 16 connections with streams open, as many as it may")]
                another = open_stream(channels[0], TRANSFER)
                await another.write(b"")
                await until(lambda: len(cs.dropped) == CONNECTION_LIMIT + 1, "a second stream on one of them")
                # Others choose how many systems there are.
                assert not cs.channels.counters
        finally:
            await world.stop_all()

    asyncio.run(run())


def test_a_connection_without_streams_is_closed_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tls.make_root(FEDERATION)

    async def run() -> None:
        world = World(make_grpc(tmp_path, root))
        try:
            cs = await world.start(CS)
            async with (
                connected(tmp_path, root, address=cs.channels.address) as with_stream,
                connected(tmp_path, root, address=cs.channels.address) as idle,
            ):
                transfer = open_stream(with_stream, TRANSFER)
                await transfer.write(b"")
                await until(lambda: cs.dropped, "the stream")
                await until(lambda: not is_open(idle), "the end of the other connection")
                assert is_open(with_stream)
                assert not transfer.done()
        finally:
            await world.stop_all()

    monkeypatch.setattr(grpc_options, "_IDLE_MS", 2_000)
    asyncio.run(run())


def test_who_hangs_up_while_it_is_refused_causes_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tls.make_root(FEDERATION)

    async def run() -> None:
        errors: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["message"]))
        world = World(make_grpc(tmp_path, root))
        try:
            cs = await world.start(CS)
            async with connected(tmp_path, root, address=cs.channels.address) as channel:
                for pause_seconds in cycle(_PAUSES_SECONDS):
                    call = open_stream(channel, PIPE)
                    await call.write(b"nonsense")
                    await let_pass_in_loop(pause_seconds)
                    call.cancel()
                    if len(cs.refused) >= _REFUSED:
                        break
        finally:
            await world.stop_all()
        assert errors == []

    asyncio.run(run())
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
