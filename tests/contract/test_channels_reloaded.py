"""Certificates, roots and revocations change while modules run, without a restart and without a new port."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.core.interface.events import LinkDown, LinkRefused, LinkUp, TransferFailed, TransferReceived
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadRequest
from tests.contract.changing_site import ChangingSite
from tests.contract.channel_modules import CLAIM, CS, TICKET, XINU, Recorded, World, attempt, play, transfer
from tests.waiting import until

CONTENT = bytes(300_000)
REVOKED = "its certificate names xinu, but it was revoked"


@pytest.fixture(params=[False, True], ids=["grpc", "bulk"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> ChangingSite:
    return ChangingSite(tmp_path, has_bulk=request.param)


async def read(reader: Recorded, at: Recorded, *, follow: bool = False) -> bytes:
    wanted = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", follow=follow)
    async with aclosing(reader.channels.fetch(at.name, at.channels.address, wanted)) as pieces:
        return b"".join([piece async for piece in pieces])


def _has_tasks(module: Recorded, count: int) -> bool:
    return sum(len(event.message.tasks) for event in module.of_kind(TransferReceived)) == count


def linked(scene: Callable[[Recorded, Recorded], Awaitable[None]], site: ChangingSite) -> None:
    """Play a scene with `cs`, which listens, and `xinu`, which dials it; both can be dialed for tasks."""

    async def run(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        cs.content = xinu.content = CONTENT
        await until(lambda: cs.of_kind(LinkUp) and xinu.of_kind(LinkUp), "the link")
        await scene(cs, xinu)

    play(site.make, run)


def test_a_renewed_certificate_is_shown_at_once_and_ends_nothing(site: ChangingSite) -> None:
    async def scene(cs: Recorded, xinu: Recorded) -> None:
        for here, there in ((cs, xinu), (xinu, cs)):
            here.channels.send_tasks(there.name, there.channels.address, transfer(1))
        for each in (CS, XINU):
            site.certify(each)
        site.reload(CS, XINU)
        for here, there in ((cs, xinu), (xinu, cs)):
            here.channels.send_tasks(there.name, there.channels.address, transfer(2))
            assert await read(here, there) == CONTENT
            await until(partial(_has_tasks, there, 2), "all tasks")
        assert not cs.of_kind(LinkDown)
        assert not cs.of_kind(TransferFailed) + xinu.of_kind(TransferFailed)

    linked(scene, site)


def test_a_new_root_takes_over_without_a_link_that_ends(site: ChangingSite) -> None:
    async def scene(cs: Recorded, xinu: Recorded) -> None:
        old = site.root_file.read_bytes()
        new = make_root("campus")
        site.use_root(new)
        site.root_file.write_bytes(new.certificate + old)
        site.reload(CS, XINU)
        for each in (CS, XINU):
            site.certify(each)
            site.reload(each)
            assert await read(cs, xinu) == CONTENT
            assert await read(xinu, cs) == CONTENT
        assert not cs.of_kind(LinkDown)
        # With the old root gone, who was accepted by it connects again, with the certificate of the new one.
        site.root_file.write_bytes(new.certificate)
        site.reload(CS, XINU)
        await until(lambda: len(cs.of_kind(LinkUp)) == len(xinu.of_kind(LinkUp)) == 2, "the link under the new root")
        assert await read(cs, xinu) == CONTENT
        assert await read(xinu, cs) == CONTENT

    linked(scene, site)


def test_a_module_of_a_root_that_is_gone_is_refused(site: ChangingSite) -> None:
    async def scene(cs: Recorded, xinu: Recorded) -> None:
        site.use_root(make_root("campus"))
        site.certify(CS)
        site.reload(CS)
        await until(lambda: cs.of_kind(LinkDown), "the end of the link")
        with pytest.raises(ChannelError, match="signed by no root recorded for it"):
            await read(cs, xinu)
        await until(lambda: xinu.of_kind(LinkRefused), "the reason at the other end")

    linked(scene, site)


@pytest.mark.parametrize("by", [CS, XINU], ids=["by who listens", "by who dials"])
def test_a_revoked_module_loses_links_streams_and_connections_and_does_not_return(
    site: ChangingSite, by: SystemId
) -> None:
    async def scene(cs: Recorded, xinu: Recorded) -> None:
        judge, other = (cs, xinu) if by == CS else (xinu, cs)
        judge.channels.send_tasks(other.name, other.channels.address, transfer(1))
        other.channels.send_tasks(judge.name, judge.channels.address, transfer(1))
        following = asyncio.create_task(read(other, judge, follow=True))
        await until(
            lambda: cs.of_kind(TransferReceived) and xinu.of_kind(TransferReceived) and judge.readers, "all streams"
        )
        site.root.revoke(site.serials(other.name))
        site.reload(judge.name)
        await until(lambda: judge.of_kind(LinkDown) and other.of_kind(LinkDown), "the end of the link")
        await until(lambda: judge.of_kind(TransferFailed) and other.of_kind(TransferFailed), "the end of the streams")
        with pytest.raises((ChannelError, PermissionError)):
            await following
        why = f"its certificate names {other.name}, but it was revoked"
        await until(lambda: LinkRefused(neighbor=other.name, text=why) in judge.events, "the reason here")
        with pytest.raises((ChannelError, PermissionError), match="was revoked"):
            await read(other, judge)
        with pytest.raises(ChannelError, match=why):
            await read(judge, other)
        judge.channels.send_tasks(other.name, other.channels.address, transfer(2))
        await until(lambda: judge.of_kind(TransferFailed)[-1].kind is TransferFailure.UNTRUSTED, "the refusal")
        assert len(judge.of_kind(LinkUp)) == 1
        # A certificate for the same key is on the list as well; one for a new key is not.
        site.certify(other.name, has_new_key=True)
        site.reload(other.name)
        await until(lambda: len(judge.of_kind(LinkUp)) == 2, "the link with the new certificate")
        assert await read(other, judge) == CONTENT

    linked(scene, site)


def test_a_module_that_starts_refuses_who_was_revoked_before(site: ChangingSite) -> None:
    async def scene(world: World) -> None:
        for each in (CS, XINU):
            site.certify(each)
        site.root.revoke(site.serials(XINU))
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: LinkRefused(neighbor=XINU, text=REVOKED) in cs.events, "the refusal")
        await until(lambda: any(REVOKED in event.text for event in xinu.of_kind(LinkRefused)), "the reason there")
        assert not cs.of_kind(LinkUp)

    play(site.make, scene)


def test_a_large_output_on_its_way_to_a_revoked_module_ends(tmp_path: Path) -> None:
    site = ChangingSite(tmp_path, has_bulk=True)

    async def scene(cs: Recorded, xinu: Recorded) -> None:
        cs.stops_at = 100_000
        wanted = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout")
        source = await xinu.channels.open_read(CS, cs.channels.address, wanted, size_bytes=len(CONTENT))

        def read_to_the_end() -> None:
            while source.read_into(memoryview(bytearray(1 << 20))):
                pass

        reading = asyncio.create_task(asyncio.to_thread(read_to_the_end))
        await until(lambda: bool(cs.opened), "the source")
        site.root.revoke(site.serials(XINU))
        site.reload(CS)
        with pytest.raises((ChannelError, PermissionError)):
            await reading
        await until(lambda: cs.opened[0].is_closed, "the end of the source")
        source.close()

    linked(scene, site)
