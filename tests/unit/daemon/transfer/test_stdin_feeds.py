"""Who may bring standard input to an attempt, and which of several streams does."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.contract import Feed, Peer
from messiahs.channel.memory import MemoryNetwork
from messiahs.config.settings import ByteSettings
from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import Command, SchedAccept
from messiahs.core.model.ids import Epoch, SearchId, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.routes import Leg
from messiahs.daemon.transfer.budgets import BudgetError
from messiahs.daemon.transfer.byte_traffic import ByteTraffic
from messiahs.errors import ChannelError, RefusedError
from messiahs.executor.contract import TakenInput
from messiahs.executor.stub import StubExecutor
from messiahs.wire.codec import FeedAnswer, FeedPiece, FeedRequest, ReadRequest
from tests.contract.channel_modules import World, make_memory
from tests.unit.core.conftest import module, policy, rig
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    ORIGIN,
    PARENT,
    STRANGER,
    TICKET,
    Rig,
    message_in,
    remote,
    request,
    tdv,
    transfer,
)
from tests.unit.daemon.transfer.byte_traffic import let_pass, traffic_of

__all__ = ["module", "policy", "rig"]

FIRST, SECOND = remote(member=1), remote(member=2)
LEASE_UNTIL = Instant(1 << 62)
Scene = Callable[[ByteTraffic, FeedRequest, StubExecutor], Awaitable[None]]


def play(rig: Rig, folder: Path, scene: Scene, /, *, limits: ByteSettings | None = None) -> None:
    """Play a scene at an executor that runs the first attempt of a claim, and is a hop to another one."""
    rig.measure()
    accept = message_in(rig.hear(PARENT, request(1, search=SearchId(bytes(16)))), SchedAccept)
    command = Command(argv=("cat",), takes_stdin=True)
    message = transfer(accept.claim, accept.ticket, FIRST)
    tasks = tuple(replace(task, command=command) for task in message.tasks)
    rig.handle(TransferReceived(sender=ORIGIN, message=replace(message, tasks=tasks)))
    rig.handle(AttemptStarted(attempt=FIRST))

    async def run() -> None:
        executor, world = StubExecutor(delay_ns=1 << 60), World(make_memory(MemoryNetwork()))
        await executor.start(lambda _: None, lambda _: None)
        executor.perform(
            StartAttempt(
                attempt=FIRST, claim=accept.claim, command=command, places=1, limit_ns=None, lease_until=LEASE_UNTIL
            )
        )
        channels = (await world.start(SystemId("cs"))).channels
        leg = Leg(system=CHILD, address=(await world.start(CHILD)).channels.address, ticket=TICKET)
        let_pass(rig, CLAIM, leg)
        settings = limits or ByteSettings()
        traffic = traffic_of(rig, folder, channels=lambda: channels, executor=executor, limits=settings)
        await scene(traffic, FeedRequest(claim=accept.claim, ticket=accept.ticket, attempt=FIRST), executor)
        await executor.stop(end_tasks=True)
        await world.stop_all()

    asyncio.run(run())


async def answers(feed: Feed, *pieces: FeedPiece) -> list[FeedAnswer | None]:
    """Send pieces, and return the answer before them and those to them."""
    for piece in pieces:
        await feed.send(piece)
    return [await feed.answer() for _ in range(1 + len(pieces))]


def test_the_origin_with_the_ticket_feeds_its_attempt_and_its_bytes_are_counted(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        feed = await traffic.open_feed(asked, Peer(system=ORIGIN, key=b""))
        said = await answers(feed, FeedPiece(content=b"one"), FeedPiece(is_end=True))
        assert said == [FeedAnswer(), FeedAnswer(offset_bytes=3), FeedAnswer(offset_bytes=3, is_closed=True)]
        with pytest.raises(BudgetError, match="me: origin may move 5B in a day, and has moved 3B"):
            await feed.send(FeedPiece(content=b"two"))
        feed.close()

    play(rig, tmp_path, scene, limits=ByteSettings(daily_bytes=5))


@pytest.mark.parametrize("is_here", [True, False])
def test_feeds_beyond_the_bound_are_refused_until_one_is_closed(rig: Rig, tmp_path: Path, *, is_here: bool) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        passing = FeedRequest(claim=CLAIM, ticket=TICKET, attempt=FIRST)
        wanted = asked if is_here else passing
        first = await traffic.open_feed(wanted, Peer(system=PARENT, key=b""))
        with pytest.raises(BudgetError, match="me: parent has 1 streams of running tasks open") as error:
            await traffic.open_feed(wanted, Peer(system=PARENT, key=b""))
        assert error.value.is_brief
        if not is_here:
            with pytest.raises(RefusedError, match="has no ticket"):
                await first.answer()
        first.close()
        again = await traffic.open_feed(wanted, Peer(system=PARENT, key=b""))
        with suppress(RefusedError):
            await again.answer()
        again.close()

    play(rig, tmp_path, scene, limits=ByteSettings(streams=1))


def test_streams_of_who_has_most_give_way_to_others_of_the_same_neighbor(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        peer = Peer(system=PARENT, key=b"")
        read = ReadRequest(claim=asked.claim, ticket=asked.ticket, attempt=FIRST, name="stdout", follow=True)
        # Their claim passes here, and the other one is granted here.
        of_eve = FeedRequest(claim=CLAIM, ticket=TICKET, attempt=FIRST)
        rig.state.hop.passed[CLAIM] = replace(rig.state.hop.passed[CLAIM], tdv=tdv(user="eve"))

        followers = [traffic.read_output(read, peer) for _ in range(2)]
        # What the task writes is empty.
        waits = [asyncio.ensure_future(anext(one)) for one in followers]
        await asyncio.sleep(0)
        eves = await traffic.open_feed(of_eve, peer)
        with pytest.raises(BudgetError, match="a stream of parent ended, because streams of running tasks are short"):
            await waits[0]
        with pytest.raises(BudgetError, match="parent has 2 streams of running tasks open"):
            await anext(traffic.read_output(read, peer))
        with suppress(RefusedError):
            await eves.answer()
        eves.close()

        first, second = await traffic.open_feed(asked, peer), await traffic.open_feed(asked, peer)
        with pytest.raises(BudgetError, match="a stream of parent ended"):
            await waits[1]
        eves = await traffic.open_feed(of_eve, peer)
        with pytest.raises(BudgetError, match="a stream of parent ended"):
            await first.answer()
        assert await second.answer() == FeedAnswer()
        with suppress(RefusedError):
            await eves.answer()
        for feed in (first, second, eves):
            feed.close()

    play(rig, tmp_path, scene, limits=ByteSettings(streams=2))


def test_a_hop_passes_only_standard_input_for_tasks_of_the_origin_of_the_claim(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, _: FeedRequest, __: StubExecutor, /) -> None:
        of_another = FIRST._replace(task=TaskId(STRANGER, Epoch(1), 1))
        peer, feed = Peer(system=PARENT, key=b""), FeedRequest(claim=CLAIM, ticket=TICKET, attempt=of_another)
        read = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=of_another, name="stdout")
        with pytest.raises(FileNotFoundError, match="is left here"):
            await traffic.open_feed(feed, peer)
        with pytest.raises(FileNotFoundError, match="is left here"):
            await anext(traffic.read_output(read, peer))

    play(rig, tmp_path, scene)


@pytest.mark.parametrize(("peer", "ticket"), [(STRANGER, None), (ORIGIN, TICKET)])
def test_another_system_and_another_ticket_feed_nothing(
    rig: Rig, tmp_path: Path, peer: SystemId, ticket: Ticket | None
) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, executor: StubExecutor, /) -> None:
        with pytest.raises(PermissionError, match="has no ticket"):
            await traffic.open_feed(replace(asked, ticket=ticket or asked.ticket), Peer(system=peer, key=b""))
        assert await executor.feed(FIRST, b"", offset_bytes=0) == TakenInput(0, is_closed=False)

    play(rig, tmp_path, scene)


def test_a_ticket_feeds_no_attempt_of_another_claim(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        with pytest.raises(FileNotFoundError, match="is left here"):
            await traffic.open_feed(replace(asked, attempt=SECOND), Peer(system=ORIGIN, key=b""))

    play(rig, tmp_path, scene)


def test_a_later_stream_ends_the_earlier_one_and_begins_where_it_stopped(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        first = await traffic.open_feed(asked, Peer(system=ORIGIN, key=b""))
        assert await answers(first, FeedPiece(content=b"one")) == [FeedAnswer(), FeedAnswer(offset_bytes=3)]
        second = await traffic.open_feed(asked, Peer(system=ORIGIN, key=b""))
        assert await first.answer() is None
        with pytest.raises(ChannelError, match="later stream"):
            await first.send(FeedPiece(content=b"two"))
        said = await answers(second, FeedPiece(content=b"two"))
        assert said == [FeedAnswer(offset_bytes=3), FeedAnswer(offset_bytes=6)]
        first.close()
        second.close()

    play(rig, tmp_path, scene)


def test_a_peer_that_reads_no_answers_fills_no_memory(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        feed = await traffic.open_feed(asked, Peer(system=ORIGIN, key=b""))
        for _number in range(1_000):
            await feed.send(FeedPiece())
        await feed.send(FeedPiece(content=b"one"))
        unread = 1
        while await feed.answer() != FeedAnswer(offset_bytes=3):
            unread += 1
        assert unread <= 64
        feed.close()

    play(rig, tmp_path, scene)


def test_a_stream_that_never_ends_is_closed_after_the_attempt_has_ended(rig: Rig, tmp_path: Path) -> None:
    async def scene(traffic: ByteTraffic, asked: FeedRequest, _: StubExecutor, /) -> None:
        feed = await traffic.open_feed(asked, Peer(system=ORIGIN, key=b""))
        assert await feed.answer() == FeedAnswer()
        rig.end(AttemptEnded(attempt=FIRST, exit_code=0, ran_ns=1))
        assert await feed.answer() == FeedAnswer(is_closed=True, has_ended=True)
        feed.close()

    play(rig, tmp_path, scene)
