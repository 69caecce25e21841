"""Bytes of a module that nobody can dial: it dials the connections that its neighbor asks for (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import os
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest

from messiahs.channel.byte_streams.byte_threads import in_own_thread
from messiahs.channel.certificates.tls import make_root
from messiahs.channel.contract import OutputSource
from messiahs.channel.pipes import PIPE_LIMIT
from messiahs.core.interface.events import LinkDown, LinkUp, TransferFailed, TransferReceived
from messiahs.core.interface.transfer_answers import TransferAnswer, TransferFailure
from messiahs.core.model.ids import Ticket
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
from tests.waiting import PATIENCE_SECONDS, until

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


async def asked_pair(world: World) -> tuple[Recorded, Recorded]:
    """Start both, and let cs open a pipe, after which it is known that nobody can dial it."""
    cs, nyneve = await pair(world)
    cs.content = b"x"
    assert await fetched(nyneve, read_of()) == b"x"
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
    async with asyncio.timeout(PATIENCE_SECONDS):
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


def test_large_files_and_outputs_take_the_port_of_the_side_that_can_be_dialed(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await asked_pair(world)
        # The file, and then the output, stop halfway.
        source = ContentSource(LARGE, stop_at=1 << 20)
        putting = asyncio.create_task(nyneve.channels.put(CS, "", put_of(LARGE), lambda _sha256, _offset: source))
        await until(lambda: source.is_blocked, "half of the file")
        assert has_raw_stream(nyneve)
        source.go_on()
        await putting
        await until(lambda: not has_raw_stream(nyneve), "the end of the stream")
        cs.content, cs.stops_at = LARGE, 1 << 20
        output = await nyneve.channels.open_read(CS, "", read_of(), size_bytes=len(LARGE))
        await until(lambda: bool(cs.opened) and cs.opened[0].is_blocked, "half of the output")
        assert has_raw_stream(nyneve)
        cs.opened[0].go_on()
        assert hashlib.sha256(await read_all(output)).digest() == hashlib.sha256(LARGE).digest()
        output.close()
        await until(lambda: not has_raw_stream(nyneve), "the end of the stream")

    play(make_grpc(tmp_path, make_root(FEDERATION), has_bulk=True), scene)


def test_a_large_output_comes_in_frames_if_the_port_cannot_be_dialed(tmp_path: Path) -> None:
    dials = make_grpc(tmp_path, make_root(FEDERATION), has_bulk=True)

    async def scene(world: World) -> None:
        cs, nyneve = await asked_pair(world)
        cs.content = LARGE
        # As if a firewall admitted the first port alone: the second one is known, and nobody listens.
        nyneve.channels._bulk._listener.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
        output = await nyneve.channels.open_read(CS, "", read_of(), size_bytes=len(LARGE))
        assert await read_all(output) == LARGE
        output.close()
        assert [text for _, text in cs.refused if "the port for large files" in text]

    play(dials, scene)


def has_raw_stream(module: Recorded) -> bool:
    """Whether a connection to the second port of a module of this process is open."""
    first = int(module.channels.address.rpartition(":")[2])
    second = listening_ports(os.getpid()) - {first}
    return any(
        connection.laddr.port in second and connection.status == psutil.CONN_ESTABLISHED
        for connection in psutil.Process().net_connections("tcp")
    )


async def read_all(output: OutputSource) -> bytes:
    def read() -> bytes:
        buffer, content = memoryview(bytearray(1 << 20)), bytearray()
        while size := output.read_into(buffer):
            content += buffer[:size]
        return bytes(content)

    return await in_own_thread(read, stop=output.close)


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


def test_a_module_without_a_link_is_not_reached_and_the_reason_says_so(
    make: MakeChannels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("messiahs.channel.pipes._LINKING_SECONDS", 0.1)

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


def test_a_neighbor_gets_so_many_pipes_and_no_more(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await asked_pair(world)
        pipes = nyneve.channels._transport._pipes  # type: ignore[attr-defined]  # as a greedy neighbor would
        opened = cs.channels._transport._answers._open  # type: ignore[attr-defined]
        # That of the look at the certificate ends; the other one carries the connection of the read.
        await until(lambda: opened[NYNEVE] == 1, "the end of the first pipe")
        async with AsyncExitStack() as stack:
            for _ in range(PIPE_LIMIT - 1):
                await stack.enter_async_context(pipes._pipe(CS))
            pipes._asked[CS].tokens.put_nowait(bytes(16))
            await until(lambda: bool(cs.refused), "the refusal")
            assert cs.refused == [(NYNEVE, f"it asks for more than {PIPE_LIMIT} connections for bytes")]
        assert await fetched(nyneve, read_of()) == b"x"

    play(make, scene)
