"""Neighbors that come and go while the channels run (MESSIAHS 5.3.2)."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from messiahs.channel.contract import NeighborAddress
from messiahs.core.interface.events import (
    ControlReceived,
    LinkDown,
    LinkRefused,
    LinkUp,
    TransferFailed,
    TransferReceived,
)
from messiahs.core.interface.messages import SystemStatusQuery
from messiahs.wire.codec import ReadRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    IMPLEMENTATIONS,
    NYNEVE,
    TICKET,
    XINU,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_implementation,
    play,
    transfer,
)
from tests.waiting import until


@pytest.fixture(params=IMPLEMENTATIONS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_implementation(request.param, tmp_path)


def link(one: Recorded, other: Recorded) -> None:
    """Let `one` dial the other, which accepts it."""
    other.channels.link(NeighborAddress(system=one.name, address=None))
    one.channels.link(NeighborAddress(system=other.name, address=other.channels.address))


async def until_linked(*modules: Recorded, times: int = 1) -> None:
    await until(lambda: all(len(each.of_kind(LinkUp)) == times for each in modules), "the link")


def texts(module: Recorded) -> list[str]:
    return [event.text for event in module.of_kind(LinkRefused)]


def test_a_neighbor_is_linked_without_a_restart_and_messages_pass(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await world.start(CS), await world.start(XINU)
        link(xinu, cs)
        await until_linked(xinu, cs)
        xinu.channels.send_control(CS, SystemStatusQuery())
        await until(lambda: bool(cs.of_kind(ControlReceived)), "the message")
        assert (xinu.channels.counters[CS].sent, cs.channels.counters[XINU].received) == (1, 1)

    play(make, scene)


def test_a_neighbor_that_is_linked_before_the_start_is_dialed_at_the_start(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None), (NYNEVE, None)))
        xinu = world.make(XINU)
        xinu.channels.link(NeighborAddress(system=CS, address=cs.channels.address))
        await xinu.channels.start()
        await until_linked(xinu, cs)

    play(make, scene)


@pytest.mark.parametrize("by_dialer", [True, False], ids=["by the side that dials", "by the side that listens"])
def test_an_unlinked_neighbor_loses_its_link_at_once_and_gets_the_last_messages(
    make: MakeChannels, *, by_dialer: bool
) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None), (NYNEVE, None)))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        nyneve = await world.start(NYNEVE, neighbors=((CS, cs.channels.address),))
        by, other = (xinu, cs) if by_dialer else (cs, xinu)
        await until_linked(xinu, nyneve)
        by.channels.send_control(other.name, SystemStatusQuery())
        by.channels.unlink(other.name)
        assert [event.text for event in by.of_kind(LinkDown)] == [f"{other.name} is no neighbor of {by.name}"]
        assert other.name not in by.channels.counters
        await until(lambda: bool(other.of_kind(LinkDown)), "the end of the link")
        assert len(other.of_kind(ControlReceived)) == 1
        assert not nyneve.of_kind(LinkDown)

    play(make, scene)


def test_a_former_neighbor_is_refused_with_a_reason_until_it_is_linked_again(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until_linked(xinu, cs)
        cs.channels.unlink(XINU)
        await until(lambda: any("xinu is no neighbor of cs" in text for text in texts(xinu)), "the reason")
        cs.channels.link(NeighborAddress(system=XINU, address=None))
        await until_linked(xinu, cs, times=2)

    play(make, scene)


def test_a_former_neighbor_is_dialed_no_more(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address), (NYNEVE, "127.0.0.1:1")))
        await until(lambda: bool(cs.refused) and len(xinu.of_kind(LinkRefused)) >= 2, "the refusals")
        xinu.channels.unlink(CS)
        cs.channels.link(NeighborAddress(system=XINU, address=None))
        # Others that are dialed afterwards are linked, so this one would have been.
        nyneve = await world.start(NYNEVE)
        nyneve.channels.link(NeighborAddress(system=XINU, address=None))
        xinu.channels.link(NeighborAddress(system=NYNEVE, address=nyneve.channels.address))
        await until_linked(nyneve, xinu)
        assert {event.neighbor for event in xinu.of_kind(LinkUp)} == {NYNEVE}

    play(make, scene)


def test_a_neighbor_that_moved_is_dialed_at_its_new_address(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        first = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, first.channels.address),))
        await until_linked(xinu, first)
        await world.stop(first)
        second = await world.start(CS, neighbors=((XINU, None),))
        xinu.channels.link(NeighborAddress(system=CS, address=second.channels.address))
        await until_linked(second)
        assert len(xinu.of_kind(LinkDown)) == 1

    play(make, scene)


def test_a_repetition_changes_nothing(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until_linked(xinu, cs)
        link(xinu, cs)
        xinu.channels.unlink(NYNEVE)
        xinu.channels.send_control(CS, SystemStatusQuery())
        await until(lambda: bool(cs.of_kind(ControlReceived)), "the message")
        assert not cs.of_kind(LinkDown)
        cs.channels.unlink(XINU)
        cs.channels.unlink(XINU)
        assert len(cs.of_kind(LinkDown)) == 1

    play(make, scene)


def test_streams_in_both_directions_end(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until_linked(xinu, cs)
        cs.channels.send_tasks(XINU, xinu.channels.address, transfer(1))
        xinu.channels.send_tasks(CS, cs.channels.address, transfer(2))
        both = (cs, xinu)
        await until(lambda: all(each.of_kind(TransferReceived) for each in both), "the streams")
        cs.channels.unlink(XINU)
        await until(lambda: all(each.of_kind(TransferFailed) for each in both), "their ends")

    play(make, scene)


@pytest.mark.parametrize("kind", ["grpc", "bulk"])
def test_an_output_that_a_former_neighbor_follows_ends_with_the_reason(tmp_path: Path, kind: str) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        following = asyncio.create_task(follow(xinu, cs))
        await until(lambda: bool(cs.readers), "the stream")
        cs.channels.unlink(XINU)
        with pytest.raises(PermissionError, match="xinu is no neighbor of cs"):
            await following

    play(make_implementation(kind, tmp_path), scene)


async def follow(reader: Recorded, at: Recorded) -> None:
    request = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", follow=True)
    async with aclosing(reader.channels.fetch(at.name, at.channels.address, request)) as pieces:
        async for _ in pieces:
            pass
