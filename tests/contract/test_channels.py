"""Guarantees of both implementations of the channels (MESSIAHS 5.3)."""

from itertools import pairwise
from pathlib import Path

import pytest

from messiahs.core.interface.events import ControlReceived, LinkDown, LinkRefused, LinkUp, VectorReceived
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, TaskKill, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.vectors.vectors import Interval, MachineClass, Vector
from messiahs.errors import ChannelError
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    IMPLEMENTATIONS,
    NYNEVE,
    XINU,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_implementation,
    play,
)
from tests.waiting import until


@pytest.fixture(params=IMPLEMENTATIONS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_implementation(request.param, tmp_path)


async def linked(world: World) -> tuple[Recorded, Recorded]:
    """Start cs and its child xinu, and wait until both know of their link."""
    cs = await world.start(CS, neighbors=((XINU, None),))
    xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
    await until(lambda: LinkUp(neighbor=XINU) in cs.events and LinkUp(neighbor=CS) in xinu.events, "a link")
    return cs, xinu


def kill(number: int) -> TaskKill:
    return TaskKill(claim=CLAIM, attempts=(attempt(number),))


def vector(free: int, kind: VectorKind = VectorKind.FOR_PARENTS) -> StatusVector:
    machines = MachineClass(count=3, attributes=(("free_slots", Interval(free, free)),))
    return StatusVector(kind=kind, vector=Vector((machines,)), period_ns=1, age_ns=0)


def controls(module: Recorded) -> list[object]:
    return [event.message for event in module.of_kind(ControlReceived)]


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
        counters = cs.channels.counters[XINU]
        # The peer may have the last message before its write has returned.
        await until(lambda: counters.received == counters.sent == len(sent), "the same numbers in the counters")

    play(make, scene)


def test_a_neighbor_is_not_read_while_its_turn_has_not_come_and_loses_nothing(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        cs.held = []
        sent = [TaskKill(claim=CLAIM, attempts=tuple(map(attempt, range(number, 8_000)))) for number in range(40)]
        for message in sent:
            xinu.channels.send_control(CS, message)
        counters = xinu.channels.counters[CS]
        await until(lambda: bool(cs.held), "the first message")
        # They are larger together than what may be on its way.
        for _ in range(20):
            cs.channels.send_control(XINU, SystemStatusQuery())
        await until(lambda: len(controls(xinu)) == 20, "the other direction")
        # One message of each stream of the link, of which one may open in the meantime.
        assert len(cs.held) < 5
        assert counters.sent < len(sent)
        assert not controls(cs)
        cs.take_turns()
        await until(lambda: len(controls(cs)) == len(sent), "all messages")
        assert controls(cs) == sent

    play(make, scene)


def test_link_up_precedes_every_received_message_even_if_the_other_side_sends_at_once(make: MakeChannels) -> None:
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
        # All of them were sent in one iteration, before the channel could write one.
        assert len(cs.of_kind(VectorReceived)) == 2
        # The neighbor may have it before its write has returned.
        await until(lambda: xinu.channels.counters[CS].sent == 2, "the same number in the counters")

    play(make, scene)


def test_messages_that_cannot_be_encoded_are_dropped_and_reported(make: MakeChannels) -> None:
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


def test_a_neighbor_that_reads_nothing_loses_its_link(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        _, xinu = await linked(world)
        for number in range(20_000):
            # In one iteration, so that the channel cannot write between two of them.
            xinu.channels.send_control(CS, kill(number))
        await until(lambda: xinu.of_kind(LinkDown), "the end of the link")
        assert xinu.of_kind(LinkDown) == [LinkDown(neighbor=CS, text="the neighbor does not read its messages")]

    play(make, scene)


def test_a_stranger_or_a_neighbor_that_should_be_dialed_gets_no_link(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        stranger_of_cs, dialed_by_cs = SystemId("stranger"), SystemId("dialed")
        cs = await world.start(CS, neighbors=((dialed_by_cs, "127.0.0.1:1"),))
        stranger = await world.start(stranger_of_cs, neighbors=((CS, cs.channels.address),))
        dialed = await world.start(dialed_by_cs, neighbors=((CS, cs.channels.address),))
        await until(lambda: stranger.refused and dialed.refused, "two refusals")
        assert "stranger is no neighbor of cs" in stranger.refused[0][1]
        assert "cs dials dialed" in dialed.refused[0][1]
        assert (stranger_of_cs, "stranger is no neighbor of cs") in cs.refused
        for module, neighbor in ((cs, dialed_by_cs), (stranger, CS), (dialed, CS)):
            (refused,) = {type(event) for event in module.events}
            assert refused is LinkRefused
            assert {(event.neighbor, event.text) for event in module.of_kind(LinkRefused)} <= {
                (neighbor, text) for _, text in module.refused
            }

    play(make, scene)


def test_an_address_in_use_is_a_channel_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS)
        with pytest.raises(ChannelError, match="cannot listen on"):
            await world.start(NYNEVE, listen=cs.channels.address)

    play(make, scene)
