"""Guarantees of both implementations of the task channel (MESSIAHS 5.3.3)."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.contract import Peer
from messiahs.channel.memory import memory_key
from messiahs.core.interface.events import TransferFailed, TransferReceived
from messiahs.core.interface.messages import BoundTask, Command, TaskTransfer
from messiahs.core.interface.transfer_answers import TransferAnswer, TransferFailure
from messiahs.core.model.ids import ClaimId, Epoch, SystemId, Ticket
from messiahs.errors import ChannelError
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


def has_ended(executor: Recorded, origin: Recorded, *, failures: int) -> bool:
    return bool(executor.of_kind(TransferReceived)) or len(origin.of_kind(TransferFailed)) >= failures


def read(*, offset: int = 0, follow: bool = False, name: str = "stdout", ticket: Ticket = TICKET) -> ReadRequest:
    return ReadRequest(claim=CLAIM, ticket=ticket, attempt=attempt(1), name=name, offset_bytes=offset, follow=follow)


def test_tasks_arrive_in_order_at_systems_that_are_not_neighbors(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        other = ClaimId(CS, Epoch(1), 6)
        for number in range(0, 1_000, 10):
            nyneve.channels.send_tasks(CS, cs.channels.address, transfer(*range(number, number + 10)))
        nyneve.channels.send_tasks(CS, cs.channels.address, transfer(claim=other))
        await until(lambda: any(t.message.claim == other for t in cs.of_kind(TransferReceived)), "the last transfer")
        received = cs.of_kind(TransferReceived)
        tasks = [task for event in received for task in event.message.tasks]
        assert tasks == list(transfer(*range(1_000)).tasks)
        assert {event.sender for event in received} == {NYNEVE}
        assert nyneve.events == []

    play(make, scene)


def test_tasks_and_reads_come_with_the_key_of_their_sender(make: MakeChannels, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        for name in (NYNEVE, XINU):
            sender = await world.start(name)
            sender.channels.send_tasks(CS, cs.channels.address, transfer(1))
            async with aclosing(sender.channels.fetch(CS, cs.channels.address, read())) as pieces:
                assert [piece async for piece in pieces] == []
        await until(lambda: len(cs.of_kind(TransferReceived)) == 2, "the transfers")
        assert cs.readers == [Peer(system=name, key=key_of(name, tmp_path)) for name in (NYNEVE, XINU)]
        assert {(event.sender, event.key) for event in cs.of_kind(TransferReceived)} == {
            (peer.system, peer.key) for peer in cs.readers
        }

    play(make, scene)


def test_a_refusal_is_for_its_claim_alone_and_for_the_peer_that_brought_the_tasks(
    make: MakeChannels, tmp_path: Path
) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        other = ClaimId(CS, Epoch(1), 6)
        for message in (transfer(1), transfer(2, claim=other)):
            nyneve.channels.send_tasks(CS, cs.channels.address, message)
        await until(lambda: len(cs.of_kind(TransferReceived)) == 2, "the transfers")
        beyond = TransferAnswer(claim=other, problem="gate: no route", kind=TransferFailure.BEYOND)
        cs.channels.refuse_transfer(Peer(system=NYNEVE, key=bytes(16)), replace(beyond, problem="another key"))
        cs.channels.refuse_transfer(
            Peer(system=XINU, key=key_of(XINU, tmp_path)), replace(beyond, problem="a stranger")
        )
        cs.channels.refuse_transfer(Peer(system=NYNEVE, key=key_of(NYNEVE, tmp_path)), beyond)
        await until(lambda: nyneve.events, "the answer")
        assert nyneve.events == [TransferFailed(claim=other, text="gate: no route", kind=TransferFailure.BEYOND, to=CS)]
        # The stream continues, and the other claim is still on it.
        nyneve.channels.send_tasks(CS, cs.channels.address, transfer(3))
        await until(lambda: len(cs.of_kind(TransferReceived)) == 3, "a further transfer")
        await world.stop(cs)
        await until(lambda: len(nyneve.of_kind(TransferFailed)) == 2, "the end of the stream")
        assert [(each.claim, each.kind) for each in nyneve.of_kind(TransferFailed)[1:]] == [
            (CLAIM, TransferFailure.BROKEN)
        ]

    play(make, scene)


def key_of(name: SystemId, folder: Path) -> bytes:
    """Return the fingerprint of a module's key, which has a file unless the channels are in memory."""
    file = folder / f"{name}.pem"
    return key_fingerprint(certificates_in(file.read_bytes())[0]) if file.exists() else memory_key(name)


def test_a_broken_task_channel_fails_each_claim_once_and_is_opened_again(make: MakeChannels, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        address = cs.channels.address
        other = ClaimId(CS, Epoch(1), 6)
        for message in (transfer(1), transfer(2, claim=other), transfer(3)):
            nyneve.channels.send_tasks(CS, address, message)
        await until(lambda: len(cs.of_kind(TransferReceived)) == 3, "the transfers")
        await world.stop(cs)
        await until(lambda: len(nyneve.of_kind(TransferFailed)) == 2, "two failures")
        assert {(event.claim, event.kind) for event in nyneve.of_kind(TransferFailed)} == {
            (CLAIM, TransferFailure.BROKEN),
            (other, TransferFailure.BROKEN),
        }
        again = await world.start(CS, listen=address)
        # A later attempt may find the new listener: each attempt either arrives or fails.
        for count in range(3, 100):
            nyneve.channels.send_tasks(CS, address, transfer(4))
            await until(partial(has_ended, again, nyneve, failures=count), "an end")
            if again.of_kind(TransferReceived):
                break
        assert again.of_kind(TransferReceived) == [
            TransferReceived(sender=NYNEVE, key=key_of(NYNEVE, tmp_path), message=transfer(4))
        ]

    play(make, scene)


def test_a_task_channel_that_was_idle_is_closed_without_a_failure_and_opened_when_needed(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE, idle_seconds=0.05)
        other = ClaimId(CS, Epoch(1), 6)
        for count, message in enumerate((transfer(1), transfer(2, claim=other)), start=1):
            nyneve.channels.send_tasks(CS, cs.channels.address, message)
            assert open_transfers()
            await until(lambda: not open_transfers(), "the end of the task channel")
            assert len(cs.of_kind(TransferReceived)) == count
        await world.stop(cs)
        nyneve.channels.send_tasks(CS, cs.channels.address, transfer(3))
        await until(lambda: nyneve.events, "the failure of the last claim")
        assert [event.claim for event in nyneve.of_kind(TransferFailed)] == [CLAIM]

    play(make, scene)


def open_transfers() -> bool:
    return any("Transfers._run" in str(task.get_coro()) for task in asyncio.all_tasks())


def test_tasks_for_an_address_without_the_right_listener_fail(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        xinu = await world.start(XINU)
        nobody = xinu.channels.address
        await world.stop(xinu)
        nyneve = await world.start(NYNEVE)
        nyneve.channels.send_tasks(XINU, nobody, transfer(1))
        await until(lambda: len(nyneve.of_kind(TransferFailed)) == 1, "no connection")
        nyneve.channels.send_tasks(XINU, cs.channels.address, transfer(1))
        await until(lambda: len(nyneve.of_kind(TransferFailed)) == 2, "the wrong system")
        assert cs.events == []

    play(make, scene)


def test_a_task_too_large_to_be_sent_fails_its_claim_and_nothing_else(make: MakeChannels, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        small = transfer(1)
        large = BoundTask(attempt=attempt(2), command=Command(argv=("echo", "x" * (128 << 10))))
        other = ClaimId(CS, Epoch(1), 6)
        nyneve.channels.send_tasks(CS, cs.channels.address, TaskTransfer(claim=other, ticket=TICKET, tasks=(large,)))
        nyneve.channels.send_tasks(CS, cs.channels.address, small)
        await until(lambda: cs.of_kind(TransferReceived) and nyneve.events, "both outcomes")
        assert cs.of_kind(TransferReceived) == [
            TransferReceived(sender=NYNEVE, key=key_of(NYNEVE, tmp_path), message=small)
        ]
        assert [(event.claim, event.kind) for event in nyneve.of_kind(TransferFailed)] == [
            (other, TransferFailure.REFUSED)
        ]

    play(make, scene)


def test_an_output_is_read_from_an_offset(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        cs.content = bytes(range(256)) * 8_000
        request = read(offset=1_000_003)
        pieces = [piece async for piece in nyneve.channels.fetch(CS, cs.channels.address, request)]
        assert b"".join(pieces) == cs.content[1_000_003:]
        assert [piece async for piece in nyneve.channels.fetch(CS, cs.channels.address, read(offset=2**40))] == []

    play(make, scene)


def test_an_output_is_followed_while_it_grows_until_the_reader_leaves(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        cs.content = b"one"
        async with aclosing(nyneve.channels.fetch(CS, cs.channels.address, read(follow=True))) as pieces:
            assert await anext(pieces) == b"one"
            cs.content += b"two"
            assert await anext(pieces) == b"two"
            assert cs.closed_reads == 0
        await until(lambda: cs.closed_reads == 1, "the end of the read at the executor")

    play(make, scene)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (read(ticket=Ticket(b"?" * 16)), PermissionError),
        (read(ticket=Ticket(b"short")), PermissionError),
        (read(name="../key.pem"), PermissionError),
        (read(name="stderr"), FileNotFoundError),
    ],
)
def test_the_executor_s_refusal_of_a_read_arrives_unchanged(
    make: MakeChannels, request_: ReadRequest, error: type[Exception]
) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        with pytest.raises(error):
            await anext(nyneve.channels.fetch(CS, cs.channels.address, request_))

    play(make, scene)


def test_a_read_without_a_listener_is_a_channel_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        await world.stop(cs)
        with pytest.raises(ChannelError):
            await anext(nyneve.channels.fetch(CS, cs.channels.address, read()))

    play(make, scene)
