"""A peer that is shut off: everything open with it ends, and it learns a code and nothing else."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from messiahs.core.interface.events import LinkDown, LinkRefused, LinkUp, TransferFailed, TransferReceived
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    IMPLEMENTATIONS,
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

CONTENT = bytes(300_000)


@pytest.fixture(params=IMPLEMENTATIONS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_implementation(request.param, tmp_path)


def read(*, follow: bool = False) -> ReadRequest:
    return ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", follow=follow)


async def read_all(reader: Recorded, at: Recorded, *, name: SystemId, follow: bool = False) -> bytes:
    async with aclosing(reader.channels.fetch(name, at.channels.address, read(follow=follow))) as pieces:
        return b"".join([piece async for piece in pieces])


@pytest.mark.parametrize("by_dialer", [True, False], ids=["by the side that dials", "by the side that listens"])
def test_a_link_ends_and_the_other_side_learns_the_code(make: MakeChannels, *, by_dialer: bool) -> None:
    async def scene(world: World) -> None:
        listening = await world.start(CS, neighbors=((XINU, None),))
        dialing = await world.start(XINU, neighbors=((CS, listening.channels.address),))
        by, other = (dialing, listening) if by_dialer else (listening, dialing)
        await until(lambda: all(each.of_kind(LinkUp) for each in (by, other)), "the link")
        by.channels.shut_off(other.name)
        await until(lambda: bool(other.of_kind(LinkRefused)), "the code")
        texts = {event.text for event in other.of_kind(LinkRefused)}
        assert texts == {"its administrator has shut this module off (shut_off)"}
        assert [len(each.of_kind(LinkDown)) for each in (by, other)] == [1, 1]
        by.channels.readmit(other.name)
        await until(lambda: all(len(each.of_kind(LinkUp)) == 2 for each in (by, other)), "the second link")

    play(make, scene)


def test_a_module_that_starts_with_a_neighbor_shut_off_never_links(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        listening = await world.start(CS, neighbors=((XINU, None),))
        listening.channels.shut_off(XINU)
        dialing = await world.start(XINU, neighbors=((CS, listening.channels.address),))
        await until(lambda: bool(dialing.of_kind(LinkRefused)), "the code")
        assert not listening.events

    play(make, scene)


def test_streams_of_the_peer_end_and_no_new_ones_open(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await world.start(CS), await world.start(XINU)
        cs.content = CONTENT
        assert await read_all(xinu, cs, name=CS) == CONTENT
        following = asyncio.create_task(read_all(xinu, cs, name=CS, follow=True))
        xinu.channels.send_tasks(CS, cs.channels.address, transfer(1))
        await until(lambda: bool(cs.of_kind(TransferReceived)) and len(cs.readers) == 2, "both streams")
        cs.channels.shut_off(XINU)
        await until(lambda: bool(xinu.of_kind(TransferFailed)), "the end of the stream of tasks")
        with pytest.raises(PermissionError, match="shut_off"):
            await read_all(xinu, cs, name=CS)
        cs.channels.readmit(XINU)
        assert await read_all(xinu, cs, name=CS) == CONTENT
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    play(make, scene)


def test_streams_to_the_peer_end_and_no_new_ones_open(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await world.start(CS), await world.start(XINU)
        xinu.channels.send_tasks(CS, cs.channels.address, transfer(1))
        await until(lambda: bool(cs.of_kind(TransferReceived)), "the stream of tasks")
        xinu.channels.shut_off(CS)
        await until(lambda: len(xinu.of_kind(TransferFailed)) == 1, "its end")
        xinu.channels.send_tasks(CS, cs.channels.address, transfer(2))
        await until(lambda: len(xinu.of_kind(TransferFailed)) == 2, "the refusal")
        with pytest.raises(ChannelError, match="this module's administrator has shut cs off"):
            await read_all(xinu, cs, name=CS)
        assert len(cs.of_kind(TransferReceived)) == 1

    play(make, scene)


@pytest.mark.parametrize("by_reader", [True, False])
def test_a_large_output_on_its_way_ends_on_both_sides(tmp_path: Path, *, by_reader: bool) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await world.start(CS), await world.start(XINU)
        cs.content, cs.stops_at = CONTENT, 100_000
        source = await xinu.channels.open_read(CS, cs.channels.address, read(), size_bytes=len(CONTENT))

        def read_to_the_end() -> None:
            while source.read_into(memoryview(bytearray(1 << 20))):
                pass

        reading = asyncio.create_task(asyncio.to_thread(read_to_the_end))
        await until(lambda: bool(cs.opened), "the source")
        (xinu if by_reader else cs).channels.shut_off(CS if by_reader else XINU)
        with pytest.raises((ChannelError, PermissionError)):
            await reading
        await until(lambda: cs.opened[0].is_closed, "the end of the source")
        source.close()

    play(make_implementation("bulk", tmp_path), scene)
