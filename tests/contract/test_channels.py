"""What both implementations of the channels promise (MESSIAHS 5.3)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from messiahs.channel.memory import MemoryNetwork
from messiahs.channel.tls import make_root
from messiahs.core.events import ControlReceived, LinkDown, LinkUp, TransferFailed, TransferReceived, VectorReceived
from messiahs.core.ids import ClaimId, Epoch, SystemId, Ticket
from messiahs.core.messages import (
    BoundTask,
    Command,
    StatusVector,
    SystemStatusQuery,
    TaskKill,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.vectors import Interval, MachineClass, Vector
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    NYNEVE,
    TICKET,
    XINU,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_grpc,
    make_memory,
    transfer,
    until,
)

Scene = Callable[[World], Awaitable[None]]


@pytest.fixture(params=["memory", "grpc"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_memory(MemoryNetwork()) if request.param == "memory" else make_grpc(tmp_path, make_root("campus"))


def play(make: MakeChannels, scene: Scene) -> None:
    """Run a scene, and require that nothing of the channels is left behind."""

    async def run() -> None:
        world = World(make)
        before = asyncio.all_tasks()
        try:
            async with asyncio.timeout(60):
                await scene(world)
        finally:
            await world.stop_all()
        left = {task for task in asyncio.all_tasks() - before if "channel" in str(task.get_coro())}
        assert not left

    asyncio.run(run())


async def linked(world: World) -> tuple[Recorded, Recorded]:
    """Start cs and its child xinu, and wait until both know of their link."""
    cs = await world.start(CS, neighbors=((XINU, None),))
    xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
    await until(lambda: LinkUp(neighbor=XINU) in cs.events and LinkUp(neighbor=CS) in xinu.events, "a link")
    return cs, xinu


def has_ended(executor: Recorded, origin: Recorded, *, failures: int) -> bool:
    return bool(executor.of_kind(TransferReceived)) or len(origin.of_kind(TransferFailed)) >= failures


def kill(number: int) -> TaskKill:
    return TaskKill(claim=CLAIM, attempts=(attempt(number),))


def vector(free: int, kind: VectorKind = VectorKind.FOR_PARENTS) -> StatusVector:
    machines = MachineClass(count=3, attributes=(("free_slots", Interval(free, free)),))
    return StatusVector(kind=kind, vector=Vector((machines,)), period_ns=1, age_ns=0)


def controls(module: Recorded) -> list[object]:
    return [event.message for event in module.of_kind(ControlReceived)]


def read(*, offset: int = 0, follow: bool = False, name: str = "stdout", ticket: Ticket = TICKET) -> ReadRequest:
    return ReadRequest(claim=CLAIM, ticket=ticket, attempt=attempt(1), name=name, offset_bytes=offset, follow=follow)


def test_control_messages_arrive_in_order_in_both_directions(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        sent = [kill(number) for number in range(3_000)]
        for message in sent:
            xinu.channels.send_control(CS, message)
            cs.channels.send_control(XINU, message)
        await until(lambda: len(controls(cs)) == len(controls(xinu)) == len(sent), "all messages")
        assert controls(cs) == sent
        assert controls(xinu) == sent
        assert cs.channels.counters[XINU].received == cs.channels.counters[XINU].sent == len(sent)

    play(make, scene)


def test_link_up_comes_before_anything_received_even_if_the_other_side_speaks_at_once(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))

        def greet(event: object) -> None:
            if isinstance(event, LinkUp):
                cs.channels.send_control(XINU, SystemStatusQuery())
                cs.channels.send_vector(XINU, vector(1, VectorKind.FOR_CHILDREN))

        cs.on_event = greet
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: len(xinu.events) == 3, "the greeting")
        assert xinu.events[0] == LinkUp(neighbor=CS)
        assert ControlReceived(sender=CS, message=SystemStatusQuery()) in xinu.events
        assert VectorReceived(sender=CS, message=vector(1, VectorKind.FOR_CHILDREN)) in xinu.events

    play(make, scene)


def test_a_link_is_made_again_when_the_neighbor_that_was_dialed_restarts(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        address = cs.channels.address
        await world.stop(cs)
        await until(lambda: xinu.of_kind(LinkDown), "the end of the link")
        xinu.channels.send_control(CS, kill(1))
        assert xinu.channels.counters[CS].dropped == 1
        again = await world.start(CS, listen=address, neighbors=((XINU, None),))
        await until(lambda: len(xinu.of_kind(LinkUp)) == 2, "a new link")
        xinu.channels.send_control(CS, kill(2))
        await until(lambda: controls(again) == [kill(2)], "a message on the new link")
        assert [type(event) for event in xinu.events] == [LinkUp, LinkDown, LinkUp]
        assert [type(event) for event in cs.events] == [LinkUp, LinkDown]

    play(make, scene)


def test_a_link_is_made_again_when_the_neighbor_that_dials_restarts(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        await world.stop(xinu)
        await until(lambda: cs.of_kind(LinkDown), "the end of the link")
        await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: len(cs.of_kind(LinkUp)) == 2, "a new link")
        assert [type(event) for event in cs.events] == [LinkUp, LinkDown, LinkUp]

    play(make, scene)


def test_a_second_connection_of_a_neighbor_replaces_the_first(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, first = await linked(world)
        second = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: second.of_kind(LinkUp), "the second link")
        await world.stop(first)
        cs.channels.send_control(XINU, kill(1))
        await until(lambda: controls(second) or len(second.of_kind(LinkUp)) > 1, "a message or a replacement in turn")
        kinds = [type(event) for event in cs.events]
        assert kinds[:3] == [LinkUp, LinkDown, LinkUp]
        assert all(one is not other for one, other in pairwise(kinds))

    play(make, scene)


def test_a_dropped_link_ends_on_both_sides_and_is_dialed_again(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        cs.channels.drop_link(XINU, "no common version")
        await until(lambda: len(cs.of_kind(LinkUp)) == 2 and len(xinu.of_kind(LinkUp)) == 2, "a new link")
        assert cs.of_kind(LinkDown) == [LinkDown(neighbor=XINU, text="no common version")]
        assert len(xinu.of_kind(LinkDown)) == 1

    play(make, scene)


def test_of_many_vectors_the_newest_of_each_kind_arrives_and_old_ones_may_not(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        for free in range(200):
            xinu.channels.send_vector(CS, vector(free))
            xinu.channels.send_vector(CS, vector(free, VectorKind.FOR_SIBLINGS))
        last = {VectorReceived(sender=XINU, message=vector(199, kind)) for kind in (VectorKind(1), VectorKind(3))}
        await until(lambda: last <= set(cs.of_kind(VectorReceived)), "the last vectors")
        # All of them were sent in one go, before the channel could write one.
        assert len(cs.of_kind(VectorReceived)) == 2
        assert xinu.channels.counters[CS].sent == 2

    play(make, scene)


def test_messages_that_cannot_be_encoded_are_dropped_and_told(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        classes = tuple(MachineClass(count=count, attributes=()) for count in range(1, 66))
        large = StatusVector(kind=VectorKind.FOR_PARENTS, vector=Vector(classes), period_ns=1, age_ns=0)
        xinu.channels.send_vector(CS, large)
        await until(lambda: xinu.dropped, "the dropped vector")
        xinu.channels.send_vector(CS, vector(3))
        await until(lambda: cs.of_kind(VectorReceived), "a vector after it")
        assert xinu.dropped == [(CS, "65 classes, at most 64 are allowed")]
        assert xinu.channels.counters[CS].dropped == 1

    play(make, scene)


def test_a_neighbor_that_takes_nothing_loses_its_link(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        _, xinu = await linked(world)
        for number in range(20_000):
            # In one go: the channel has no chance to write between two of them.
            xinu.channels.send_control(CS, kill(number))
        await until(lambda: xinu.of_kind(LinkDown), "the end of the link")
        assert xinu.of_kind(LinkDown) == [LinkDown(neighbor=CS, text="the neighbor does not take its messages")]

    play(make, scene)


def test_tasks_arrive_in_order_at_systems_that_are_no_neighbors(make: MakeChannels) -> None:
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


def test_a_broken_task_channel_fails_each_claim_once_and_is_opened_again(make: MakeChannels) -> None:
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
        assert {event.claim for event in nyneve.of_kind(TransferFailed)} == {CLAIM, other}
        again = await world.start(CS, listen=address)
        # The new listener may be found only at a later attempt: each either arrives or fails.
        for count in range(3, 100):
            nyneve.channels.send_tasks(CS, address, transfer(4))
            await until(partial(has_ended, again, nyneve, failures=count), "an end")
            if again.of_kind(TransferReceived):
                break
        assert again.of_kind(TransferReceived) == [TransferReceived(sender=NYNEVE, message=transfer(4))]

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


def test_tasks_for_an_address_where_nobody_or_another_system_listens_fail(make: MakeChannels) -> None:
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


def test_a_task_too_large_to_be_sent_fails_its_claim_and_nothing_else(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        small = transfer(1)
        large = BoundTask(attempt=attempt(2), command=Command(argv=("echo", "x" * (128 << 10))))
        other = ClaimId(CS, Epoch(1), 6)
        nyneve.channels.send_tasks(CS, cs.channels.address, TaskTransfer(claim=other, ticket=TICKET, tasks=(large,)))
        nyneve.channels.send_tasks(CS, cs.channels.address, small)
        await until(lambda: cs.of_kind(TransferReceived) and nyneve.events, "both outcomes")
        assert cs.of_kind(TransferReceived) == [TransferReceived(sender=NYNEVE, message=small)]
        assert [event.claim for event in nyneve.of_kind(TransferFailed)] == [other]

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
def test_the_executor_s_refusal_of_a_read_arrives_as_what_it_is(
    make: MakeChannels, request_: ReadRequest, error: type[Exception]
) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        with pytest.raises(error):
            await anext(nyneve.channels.fetch(CS, cs.channels.address, request_))

    play(make, scene)


def test_a_read_where_nobody_listens_is_a_channel_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        nyneve = await world.start(NYNEVE)
        await world.stop(cs)
        with pytest.raises(ChannelError):
            await anext(nyneve.channels.fetch(CS, cs.channels.address, read()))

    play(make, scene)


def test_who_is_no_neighbor_or_should_be_dialed_gets_no_link(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        stranger_of_cs, dialed_by_cs = SystemId("stranger"), SystemId("dialed")
        cs = await world.start(CS, neighbors=((dialed_by_cs, "127.0.0.1:1"),))
        stranger = await world.start(stranger_of_cs, neighbors=((CS, cs.channels.address),))
        dialed = await world.start(dialed_by_cs, neighbors=((CS, cs.channels.address),))
        await until(lambda: stranger.refused and dialed.refused, "two refusals")
        assert "stranger is no neighbor of cs" in stranger.refused[0][1]
        assert "cs dials dialed" in dialed.refused[0][1]
        assert (stranger_of_cs, "stranger is no neighbor of cs") in cs.refused
        assert cs.events == stranger.events == dialed.events == []

    play(make, scene)


def test_an_address_in_use_is_a_channel_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        with pytest.raises(ChannelError, match="cannot listen on"):
            await world.start(NYNEVE, listen=cs.channels.address)

    play(make, scene)
