"""A module that has another certificate than the one that was checked before: it is checked, and used at once."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

from messiahs.channel.grpc_options import STREAMS_OF_CONNECTION
from messiahs.core.interface.events import TransferFailed, TransferReceived
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadRequest
from tests.contract.authorities import naming
from tests.contract.channel_modules import CLAIM, CS, TICKET, XINU, Recorded, World, attempt, transfer
from tests.contract.test_channels_certificates import Sites, play
from tests.waiting import PATIENCE_SECONDS, until

READ = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout")


def test_a_module_with_a_new_certificate_is_checked_and_reached_again(tmp_path: Path) -> None:
    sites = Sites(tmp_path)

    async def scene(world: World) -> None:
        cs = await world.start(CS)
        xinu = await world.start(XINU)
        address = xinu.channels.address
        cs.channels.send_tasks(XINU, address, transfer(1))
        await until(lambda: xinu.of_kind(TransferReceived), "the first tasks")
        await world.stop(xinu)
        sites.use(XINU, sites.ours.sign(naming(XINU)))
        again = await world.start(XINU, listen=address)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not again.of_kind(TransferReceived):
                failures = len(cs.of_kind(TransferFailed))
                cs.channels.send_tasks(XINU, address, transfer(2))
                await until(partial(_has_outcome, cs, again, failures), "an outcome")
        # What fails has found nobody who listens. A new certificate is checked at once, and the tasks follow.
        failed = cs.of_kind(TransferFailed)
        assert not any(event.kind is TransferFailure.UNTRUSTED or "certificate" in event.text for event in failed), (
            failed
        )

    play(sites, scene)


def test_an_output_of_a_module_with_a_new_certificate_is_read_at_once(tmp_path: Path) -> None:
    sites = Sites(tmp_path)

    async def scene(world: World) -> None:
        cs = await world.start(CS)
        xinu = await world.start(XINU)
        xinu.content = b"first"
        address = xinu.channels.address
        assert [each async for each in cs.channels.fetch(XINU, address, READ)] == [b"first"]
        await world.stop(xinu)
        sites.use(XINU, sites.ours.sign(naming(XINU)))
        again = await world.start(XINU, listen=address)
        again.content = b"second"
        assert await _read_when_it_listens(cs, address) == b"second"

    play(sites, scene)


def test_none_of_several_connections_is_used_after_one_has_met_a_new_certificate(tmp_path: Path) -> None:
    sites = Sites(tmp_path)

    async def scene(world: World) -> None:
        cs = await world.start(CS)
        xinu = await world.start(XINU)
        xinu.content, xinu.stops_at = b"first", 1
        address = xinu.channels.address
        following = replace(READ, follow=True)
        followed = [cs.channels.fetch(XINU, address, following) for _ in range(STREAMS_OF_CONNECTION + 1)]
        await asyncio.gather(*map(anext, followed))
        for each in followed:
            await each.aclose()
        await world.stop(xinu)
        sites.use(XINU, sites.ours.sign(naming(XINU)))
        again = await world.start(XINU, listen=address)
        again.content = b"second"
        assert await _read_when_it_listens(cs, address) == b"second"

    play(sites, scene)


async def _read_when_it_listens(module: Recorded, address: str) -> bytes:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return b"".join([each async for each in module.channels.fetch(XINU, address, READ)])
            except ChannelError as error:
                if "certificate" in str(error):
                    raise


def _has_outcome(origin: Recorded, executor: Recorded, failures: int) -> bool:
    return bool(executor.of_kind(TransferReceived)) or len(origin.of_kind(TransferFailed)) > failures
