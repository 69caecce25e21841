"""Who may bring standard input to an attempt, and which of several streams does."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from messiahs.channel.contract import Channels, Feed, Peer
from messiahs.channel.memory import MemoryNetwork
from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.events import AttemptEnded, AttemptStarted, TransferReceived
from messiahs.core.interface.messages import Command, SchedAccept
from messiahs.core.model.ids import SearchId, SystemId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.daemon.transfer.stdin_feeds import Feeds
from messiahs.errors import ChannelError
from messiahs.executor.contract import TakenInput
from messiahs.executor.stub import StubExecutor
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import FeedAnswer, FeedPiece, FeedRequest
from tests.contract.channel_modules import World, make_memory
from tests.unit.core.conftest import module, policy, rig
from tests.unit.core.rig import ORIGIN, PARENT, STRANGER, TICKET, Rig, remote, request, told, transfer

__all__ = ["module", "policy", "rig"]

FIRST, SECOND = remote(member=1), remote(member=2)
LEASE_UNTIL = Instant(1 << 62)
Scene = Callable[[Feeds, FeedRequest, StubExecutor], Awaitable[None]]


def play(rig: Rig, scene: Scene, *, counted: list[tuple[SystemId, int]] | None = None) -> None:
    """Play a scene at an executor that runs the first attempt of a claim."""
    rig.measure()
    accept = told(rig.hear(PARENT, request(1, search=SearchId(bytes(16)))), SchedAccept)
    command = Command(argv=("cat",), takes_stdin=True)
    message = transfer(accept.claim, accept.ticket, FIRST)
    tasks = tuple(replace(task, command=command) for task in message.tasks)
    rig.handle(TransferReceived(sender=ORIGIN, message=replace(message, tasks=tasks)))
    rig.handle(AttemptStarted(attempt=FIRST))

    def count(system: SystemId, size_bytes: int) -> float:
        if counted is not None:
            counted.append((system, size_bytes))
        return 0.0

    async def run() -> None:
        executor, world = StubExecutor(delay_ns=1 << 60), World(make_memory(MemoryNetwork()))
        await executor.start(lambda _: None, lambda _: None)
        executor.perform(
            StartAttempt(
                attempt=FIRST, claim=accept.claim, command=command, places=1, limit_ns=None, lease_until=LEASE_UNTIL
            )
        )
        channels: Channels = (await world.start(SystemId("cs"))).channels
        feeds = Feeds(RecordedModule(rig.module), channels, executor, count=count, on_event=lambda _: None)
        await scene(feeds, FeedRequest(claim=accept.claim, ticket=accept.ticket, attempt=FIRST), executor)
        await executor.stop(end_tasks=True)
        await world.stop_all()

    asyncio.run(run())


async def answers(feed: Feed, *pieces: FeedPiece) -> list[FeedAnswer | None]:
    """Send pieces, and return the answer before them and those to them."""
    for piece in pieces:
        await feed.send(piece)
    return [await feed.answer() for _ in range(1 + len(pieces))]


def test_the_origin_with_the_ticket_feeds_its_attempt_and_its_bytes_are_counted(rig: Rig) -> None:
    counted: list[tuple[SystemId, int]] = []

    async def scene(feeds: Feeds, asked: FeedRequest, _: StubExecutor, /) -> None:
        feed = await feeds.serve(asked, Peer(system=ORIGIN, key=b""))
        said = await answers(feed, FeedPiece(content=b"one"), FeedPiece(is_end=True))
        assert said == [FeedAnswer(), FeedAnswer(offset_bytes=3), FeedAnswer(offset_bytes=3, is_closed=True)]
        feed.close()

    play(rig, scene, counted=counted)
    assert counted == [(ORIGIN, 3), (ORIGIN, 0)]


@pytest.mark.parametrize(("peer", "ticket"), [(STRANGER, None), (ORIGIN, TICKET)])
def test_another_system_and_another_ticket_feed_nothing(rig: Rig, peer: SystemId, ticket: Ticket | None) -> None:
    async def scene(feeds: Feeds, asked: FeedRequest, executor: StubExecutor, /) -> None:
        with pytest.raises(PermissionError, match="has no ticket"):
            await feeds.serve(replace(asked, ticket=ticket or asked.ticket), Peer(system=peer, key=b""))
        assert await executor.feed(FIRST, b"", offset_bytes=0) == TakenInput(0, is_closed=False)

    play(rig, scene)


def test_a_ticket_feeds_no_attempt_of_another_claim(rig: Rig) -> None:
    async def scene(feeds: Feeds, asked: FeedRequest, _: StubExecutor, /) -> None:
        with pytest.raises(FileNotFoundError, match="is left here"):
            await feeds.serve(replace(asked, attempt=SECOND), Peer(system=ORIGIN, key=b""))

    play(rig, scene)


def test_a_later_stream_ends_the_earlier_one_and_begins_where_it_stopped(rig: Rig) -> None:
    async def scene(feeds: Feeds, asked: FeedRequest, _: StubExecutor, /) -> None:
        first = await feeds.serve(asked, Peer(system=ORIGIN, key=b""))
        assert await answers(first, FeedPiece(content=b"one")) == [FeedAnswer(), FeedAnswer(offset_bytes=3)]
        second = await feeds.serve(asked, Peer(system=ORIGIN, key=b""))
        assert await first.answer() is None
        with pytest.raises(ChannelError, match="later stream"):
            await first.send(FeedPiece(content=b"two"))
        said = await answers(second, FeedPiece(content=b"two"))
        assert said == [FeedAnswer(offset_bytes=3), FeedAnswer(offset_bytes=6)]
        first.close()
        second.close()

    play(rig, scene)


def test_a_peer_that_reads_no_answers_fills_no_memory(rig: Rig) -> None:
    async def scene(feeds: Feeds, asked: FeedRequest, _: StubExecutor, /) -> None:
        feed = await feeds.serve(asked, Peer(system=ORIGIN, key=b""))
        for _number in range(1_000):
            await feed.send(FeedPiece())
        await feed.send(FeedPiece(content=b"one"))
        unread = 1
        while await feed.answer() != FeedAnswer(offset_bytes=3):
            unread += 1
        assert unread <= 64
        feed.close()

    play(rig, scene)


def test_a_stream_that_never_ends_is_closed_after_the_attempt_has_ended(rig: Rig) -> None:
    async def scene(feeds: Feeds, asked: FeedRequest, _: StubExecutor, /) -> None:
        feed = await feeds.serve(asked, Peer(system=ORIGIN, key=b""))
        assert await feed.answer() == FeedAnswer()
        rig.end(AttemptEnded(attempt=FIRST, exit_code=0, ran_ns=1))
        assert await feed.answer() == FeedAnswer(is_closed=True)
        feed.close()

    play(rig, scene)
