"""Guarantees of both implementations of the task channel about standard input (MESSIAHS 5.3.3)."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.contract import Feed
from messiahs.core.model.ids import Ticket
from messiahs.errors import ChannelError, RefusedError
from messiahs.wire.codec import FEED_PIECE_BYTES, FeedAnswer, FeedPiece, FeedRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    IMPLEMENTATIONS,
    NYNEVE,
    TICKET,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_implementation,
    play,
)
from tests.waiting import let_pass_in_loop, until

REQUEST = FeedRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1))


class Taking:
    """A feed that takes so many bytes, and then waits until it may take more (mutable)."""

    def __init__(self, *, begin: int = 0, most: int = 1 << 30) -> None:
        self.taken = bytearray(begin)
        self.may_take = most
        self.is_closed = False
        self._answers: asyncio.Queue[FeedAnswer | None] = asyncio.Queue()
        self._answers.put_nowait(FeedAnswer(offset_bytes=begin))

    async def send(self, piece: FeedPiece) -> None:
        """Take a piece."""
        await until(lambda: len(self.taken) + len(piece.content) <= self.may_take)
        self.taken += piece.content
        self._answers.put_nowait(FeedAnswer(offset_bytes=len(self.taken), is_closed=piece.is_end))

    async def answer(self) -> FeedAnswer | None:
        """Return the next answer."""
        return await self._answers.get()

    def close(self) -> None:
        """Note the end."""
        self.is_closed = True

    def end(self) -> None:
        """End without a reason."""
        self._answers.put_nowait(None)


@pytest.fixture(params=IMPLEMENTATIONS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_implementation(request.param, tmp_path)


async def opened(world: World, taking: Taking | None) -> tuple[Recorded, Feed]:
    """Open a feed from nyneve to cs, which passes it on to `taking`."""
    cs, nyneve = await world.start(CS), await world.start(NYNEVE)
    cs.feed = taking
    return cs, await nyneve.channels.feed(CS, cs.channels.address, REQUEST)


def test_pieces_arrive_in_order_and_each_is_answered(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        taking = Taking(begin=2)
        _, feed = await opened(world, taking)
        assert await feed.answer() == FeedAnswer(offset_bytes=2)
        await feed.send(FeedPiece(content=b"one "))
        await feed.send(FeedPiece(content=b"two"))
        assert [await feed.answer(), await feed.answer()] == [FeedAnswer(offset_bytes=6), FeedAnswer(offset_bytes=9)]
        await feed.send(FeedPiece(is_end=True))
        assert await feed.answer() == FeedAnswer(offset_bytes=9, is_closed=True)
        assert await feed.answer() is None
        assert taking.taken == b"\0\0one two"
        await until(lambda: taking.is_closed)
        feed.close()

    play(make, scene)


def test_the_sender_waits_for_a_receiver_that_takes_nothing(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        taking = Taking(most=0)
        _, feed = await opened(world, taking)
        sent = 0

        async def send() -> None:
            nonlocal sent
            while sent < 32 << 20:
                await feed.send(FeedPiece(content=bytes(FEED_PIECE_BYTES)))
                sent += FEED_PIECE_BYTES

        sending = asyncio.ensure_future(send())
        assert await feed.answer() == FeedAnswer()
        await let_pass_in_loop(0.5)
        # The window, a piece that is being taken, and what gRPC has taken from its sender.
        assert sent < 3 << 20
        taking.may_take = 1 << 30
        await sending
        await until(lambda: len(taking.taken) == 32 << 20)
        feed.close()

    play(make, scene)


@pytest.mark.parametrize(
    ("request_", "text"),
    [(replace(REQUEST, ticket=Ticket(bytes(16))), "has no ticket"), (REQUEST, "nothing of .* is left here")],
)
def test_a_feed_without_right_or_attempt_is_refused(make: MakeChannels, request_: FeedRequest, text: str) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        feed = await nyneve.channels.feed(CS, cs.channels.address, request_)
        with pytest.raises(RefusedError, match=text):
            await feed.answer()
        assert [peer for peer, _ in cs.dropped] == ([NYNEVE] if request_ is not REQUEST else [])
        feed.close()

    play(make, scene)


def test_the_sender_learns_that_the_receiver_has_ended_the_feed(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        taking = Taking()
        _, feed = await opened(world, taking)
        assert await feed.answer() == FeedAnswer()
        taking.end()
        assert await feed.answer() is None
        feed.close()

    play(make, scene)


def test_the_receiver_learns_that_the_sender_is_gone(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        taking = Taking()
        _, feed = await opened(world, taking)
        assert await feed.answer() == FeedAnswer()
        feed.close()
        await until(lambda: taking.is_closed)

    play(make, scene)


def test_a_module_that_cannot_be_reached_is_a_channel_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        nyneve = await world.start(NYNEVE)

        async def first_answer() -> None:
            feed = await nyneve.channels.feed(CS, "127.0.0.1:1", REQUEST)
            await feed.answer()

        with pytest.raises(ChannelError):
            await first_answer()

    play(make, scene)
