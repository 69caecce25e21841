"""Peers with a valid certificate that do not do their part: what they can hold up, and for how long (MESSIAHS 5.3)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from messiahs.channel.byte_streams import file_streams
from messiahs.channel.certificates import tls
from messiahs.channel.contract import ChannelSettings, Connection, Peer, Stream
from messiahs.channel.grpc_channels import GrpcTransport
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError
from messiahs.wire.codec import PutAnswer, PutFile, PutRequest, put_answer_to_bytes
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, NYNEVE, TICKET, Recorded, World, make_grpc, tls_files


class Hostile:
    """A module that accepts streams, and answers files only as often as the test says (mutable)."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def on_impostor(self, name: SystemId, text: str) -> None:
        """Let anybody pass for anybody."""

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
                monkeypatch.setattr(file_streams, "_SILENCE_SECONDS", 0.2)
                with pytest.raises(ChannelError, match="the executor does not answer"):
                    await put.send(lambda _, offset: ContentSource(b"0123456789", offset=offset))
            with pytest.raises(ChannelError, match="the executor does not answer"):
                await origin.channels.begin_put(CS, address, request)
        finally:
            await world.stop_all()
            await transport.stop()

    asyncio.run(scene())
