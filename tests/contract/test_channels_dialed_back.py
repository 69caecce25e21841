"""Bytes of a module that nobody can dial: it dials the connections that its neighbor asks for (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.core.interface.events import LinkDown, LinkUp, TransferFailed, TransferReceived
from messiahs.core.interface.transfer_answers import TransferAnswer, TransferFailure
from messiahs.core.model.ids import SystemId, Ticket
from messiahs.errors import ChannelError
from messiahs.wire.codec import PutFile, PutRequest, ReadRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    FEDERATION,
    NYNEVE,
    TICKET,
    XINU,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_grpc,
    play,
    transfer,
)
from tests.ports import listening_ports
from tests.waiting import until

LARGE = os.urandom(3 << 20)


@pytest.fixture(params=["frames", "bulk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_grpc(tmp_path, make_root(FEDERATION), has_bulk=request.param == "bulk")


async def pair(world: World) -> tuple[Recorded, Recorded]:
    """Start cs, which nobody can dial, and its parent nyneve; wait for their link."""
    nyneve = await world.start(NYNEVE, neighbors=((CS, None),))
    cs = await outbound(world, nyneve)
    await until(lambda: LinkUp(neighbor=CS) in nyneve.events, "a link")
    return cs, nyneve


async def outbound(world: World, parent: Recorded) -> Recorded:
    return await world.start(CS, listen="", neighbors=((parent.name, parent.channels.address),))


def put_of(content: bytes, *, ticket: Ticket = TICKET) -> PutRequest:
    files = (PutFile(hashlib.sha256(content).digest(), len(content)),)
    return PutRequest(claim=CLAIM, ticket=ticket, files=files)


def read_of(*, ticket: Ticket = TICKET, follow: bool = False) -> ReadRequest:
    return ReadRequest(claim=CLAIM, ticket=ticket, attempt=attempt(1), name="stdout", follow=follow)


async def fetched(module: Recorded, request: ReadRequest) -> bytes:
    return b"".join([piece async for piece in module.channels.fetch(CS, "", request)])


async def bring(sender: Recorded, receiver: Recorded) -> None:
    """Send tasks until they arrive: the first attempts may find the way of an earlier life."""
    while not receiver.of_kind(TransferReceived):
        failures = len(sender.of_kind(TransferFailed))
        sender.channels.send_tasks(CS, "", transfer(2))

        def has_ended(failures: int = failures) -> bool:
            return bool(receiver.of_kind(TransferReceived)) or len(sender.of_kind(TransferFailed)) > failures

        await until(has_ended, "the tasks, or a failure")


def test_tasks_files_and_outputs_travel_both_ways(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        cs.content = nyneve.content = LARGE
        nyneve.channels.send_tasks(CS, "", transfer(1, 2))
        await until(lambda: cs.of_kind(TransferReceived), "the tasks")
        assert [one.sender for one in cs.of_kind(TransferReceived)] == [NYNEVE]
        await nyneve.channels.put(CS, "", put_of(LARGE), lambda _, offset: ContentSource(LARGE, offset=offset))
        assert cs.files.path(hashlib.sha256(LARGE).digest()).read_bytes() == LARGE
        assert await fetched(nyneve, read_of()) == LARGE
        assert [peer.system for peer in cs.readers] == [NYNEVE]
        there = cs.channels.fetch(NYNEVE, nyneve.channels.address, read_of())
        assert b"".join([piece async for piece in there]) == LARGE
        assert (cs.refused, nyneve.refused) == ([], [])

    play(make, scene)


def test_such_a_module_has_no_port(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        nyneve = await world.start(NYNEVE, neighbors=((CS, None),))
        before = listening_ports(os.getpid())
        assert before
        cs = await outbound(world, nyneve)
        await until(lambda: LinkUp(neighbor=CS) in nyneve.events, "a link")
        nyneve.channels.send_tasks(CS, "", transfer(1))
        await until(lambda: cs.of_kind(TransferReceived), "the tasks")
        assert cs.channels.address == ""
        assert listening_ports(os.getpid()) == before

    play(make, scene)


def test_refusals_arrive_as_on_any_other_connection(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        cs.content = b"x"
        cs.on_event = lambda event: (
            cs.channels.refuse_transfer(
                cs.readers[0], TransferAnswer(claim=CLAIM, problem="no", kind=TransferFailure.DENIED)
            )
            if isinstance(event, TransferReceived)
            else None
        )
        wrong = Ticket(bytes(16))
        with pytest.raises(PermissionError):
            await fetched(nyneve, read_of(ticket=wrong))
        nyneve.channels.send_tasks(CS, "", transfer(1))
        await until(lambda: nyneve.of_kind(TransferFailed), "the refusal")
        (failed,) = nyneve.of_kind(TransferFailed)
        assert (failed.claim, failed.text, failed.kind) == (CLAIM, "no", TransferFailure.DENIED)

    play(make, scene)


def test_a_followed_output_is_passed_on_while_it_grows(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        cs.content = b"first"
        reading = nyneve.channels.fetch(CS, "", read_of(follow=True))
        assert await anext(reading) == b"first"
        cs.content += b"second"
        assert await anext(reading) == b"second"
        await reading.aclose()

    play(make, scene)


def test_after_a_restart_at_either_end_bytes_go_on(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        nyneve.channels.send_tasks(CS, "", transfer(1))
        await until(lambda: cs.of_kind(TransferReceived), "the tasks")
        await world.stop(cs)
        await until(lambda: nyneve.of_kind(TransferFailed) and nyneve.of_kind(LinkDown), "the failure")
        again = await outbound(world, nyneve)
        await until(lambda: len(nyneve.of_kind(LinkUp)) == 2, "a new link")
        await bring(nyneve, again)
        address = nyneve.channels.address
        await world.stop(nyneve)
        parent = await world.start(NYNEVE, listen=address, neighbors=((CS, None),))
        await until(lambda: LinkUp(neighbor=CS) in parent.events, "a link with the new life of the parent")
        again.events.clear()
        await bring(parent, again)

    play(make, scene)


def test_a_module_without_a_link_is_not_reached_and_the_reason_says_so(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        nyneve = await world.start(NYNEVE, neighbors=((CS, None),))
        with pytest.raises(ChannelError, match="nobody can dial cs, and it has not dialed this module"):
            await fetched(nyneve, read_of())
        nyneve.channels.send_tasks(CS, "", transfer(1))
        await until(lambda: nyneve.of_kind(TransferFailed), "the failure")
        assert nyneve.of_kind(TransferFailed)[0].kind is TransferFailure.BROKEN

    play(make, scene)


def test_a_pipe_that_was_not_asked_for_is_refused(make: MakeChannels, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        nyneve = await world.start(NYNEVE, neighbors=((CS, None), (XINU, None)))
        cs = await outbound(world, nyneve)
        xinu = await world.start(XINU, listen="", neighbors=((NYNEVE, nyneve.channels.address),))
        await until(lambda: len(nyneve.of_kind(LinkUp)) == 2, "two links")
        stolen = bytes(16)
        for thief in (cs, xinu):
            transport = thief.channels._transport  # type: ignore[attr-defined]  # as a thief would
            await transport._answers._pipe(NYNEVE, nyneve.channels.address, token=stolen)
        await until(lambda: len(nyneve.refused) == 2, "two refusals")
        assert sorted(nyneve.refused) == [
            (CS, "cs was not asked for this pipe"), (XINU, "xinu was not asked for this pipe"),
        ]  # fmt: skip

    play(make, scene)


@pytest.mark.processes  # the other process
def test_other_processes_cannot_use_the_way_to_such_a_module(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        pipes = nyneve.channels._transport._pipes  # type: ignore[attr-defined]  # as a spy would
        address = await pipes.address_of(SystemId("cs"))
        script = (
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect('\\0' + sys.argv[1]); print(s.recv(1))"
        )
        path = address.partition(":")[2]
        spy = await asyncio.create_subprocess_exec("python3", "-c", script, path, stdout=asyncio.subprocess.PIPE)
        printed, _ = await spy.communicate()
        assert printed == b"b''\n"
        cs.content = b"here"
        assert await fetched(nyneve, read_of()) == b"here"
        assert cs.refused == []

    play(make, scene)
