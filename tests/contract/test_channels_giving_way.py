"""Streams of running tasks that give way, over gRPC: their peers learn it, also those that took nothing for long."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings, Feed, Peer
from messiahs.config.settings import ByteSettings
from messiahs.daemon.transfer import budgets
from messiahs.daemon.transfer.budgets import Budgets
from messiahs.daemon.transfer.stream_shares import Kind, Share
from messiahs.errors import BeyondError, ChannelError
from messiahs.wire.codec import FeedAnswer, FeedRequest, ReadRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    FEDERATION,
    NYNEVE,
    TICKET,
    MakeChannels,
    World,
    attempt,
    make_grpc,
    play,
)
from tests.contract.test_channels_feeds import Taking
from tests.waiting import let_pass_in_loop, until

FOLLOWED = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", follow=True)
FED = FeedRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1))
FOLLOWER = Share(origin=NYNEVE, user="ann", kind=Kind.FOLLOWER)
INPUT = Share(origin=NYNEVE, user="ann", kind=Kind.INPUT)
OTHER = Share(origin=NYNEVE, user="eve", kind=Kind.INPUT)
WHY = "cs: a stream of nyneve ended, because streams of running tasks are short and another user holds fewer"
CONTENT = bytes(32 << 20)
"""More than may be on its way to a reader that takes nothing."""


@pytest.fixture
def budgets_of_cs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Budgets:
    monkeypatch.setattr(budgets, "STALLED_SECONDS", 0.01)
    return Budgets(ByteSettings(streams=2), own=CS, file=tmp_path / "moved.json")


def with_budgets(folder: Path, counted: Budgets) -> MakeChannels:
    """Make channels over gRPC; at cs each stream of a running task may have to give way."""
    make = make_grpc(folder, make_root(FEDERATION))

    def made(settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        async def read(request: ReadRequest, peer: Peer) -> AsyncGenerator[bytes, None]:
            stream = counted.open_running(peer.system, FOLLOWER)
            try:
                async with aclosing(callbacks.read_output(request, peer)) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                stream.close()

        async def feed(request: FeedRequest, peer: Peer) -> Feed:
            counted.open_running(peer.system, INPUT)
            return await callbacks.open_feed(request, peer)

        counting = replace(callbacks, read_output=read, open_feed=feed)
        return make(settings, counting if settings.name == CS else callbacks)

    return made


def test_a_reader_that_paused_learns_that_its_stream_gave_way_and_begins_again_where_it_was(
    tmp_path: Path, budgets_of_cs: Budgets
) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        cs.content = CONTENT
        fetch = partial(nyneve.channels.fetch, CS, cs.channels.address)
        pieces = fetch(FOLLOWED)
        read_bytes = len(await anext(pieces))
        budgets_of_cs.open_running(NYNEVE, FOLLOWER)
        # The next pieces fill the window of the stream.
        await let_pass_in_loop(0.5)
        assert not cs.closed_reads
        other = budgets_of_cs.open_running(NYNEVE, OTHER)
        await until(lambda: cs.closed_reads, "that what nobody takes is read no more")

        async def read_on() -> None:
            nonlocal read_bytes
            async for piece in pieces:
                read_bytes += len(piece)

        with pytest.raises(BeyondError, match=WHY):
            await read_on()
        assert read_bytes < len(CONTENT)
        other.close()
        anew = fetch(replace(FOLLOWED, offset_bytes=read_bytes))
        while read_bytes < len(CONTENT):
            read_bytes += len(await anext(anew))
        await anew.aclose()

    play(with_budgets(tmp_path, budgets_of_cs), scene)


def test_who_brings_standard_input_learns_that_its_stream_gave_way(tmp_path: Path, budgets_of_cs: Budgets) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        cs.feed = Taking()
        feed = await nyneve.channels.feed(CS, cs.channels.address, FED)
        assert await feed.answer() == FeedAnswer()
        budgets_of_cs.open_running(NYNEVE, INPUT)
        budgets_of_cs.open_running(NYNEVE, OTHER)
        with pytest.raises(ChannelError, match=WHY):
            await feed.answer()
        feed.close()

    play(with_budgets(tmp_path, budgets_of_cs), scene)
