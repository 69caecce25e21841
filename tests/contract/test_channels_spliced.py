"""Connections that a module of a third site passes on to a system that nobody can dial (MESSIAHS 5.3.3)."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.channel.contract import Splicing
from messiahs.core.interface.events import LinkUp, TransferReceived
from messiahs.core.model.ids import SystemId, Ticket
from messiahs.core.model.routes import Leg, Splice
from messiahs.errors import ChannelError, DeclinedError
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
from tests.waiting import until

LARGE = os.urandom(3 << 20)
WRONG = Ticket(bytes(16))


@pytest.fixture
def make(tmp_path: Path) -> MakeChannels:
    return make_grpc(tmp_path, make_root(FEDERATION), has_bulk=True)


@dataclass
class Hop:
    """The module in the middle, which counts what it passes on (mutable)."""

    module: Recorded
    refuses: Callable[[int], bool] = lambda _: False
    sizes: list[int] = field(default_factory=list)
    closed: int = 0

    def __post_init__(self) -> None:
        self.module.splicing = Splicing(Leg(system=CS, address="", ticket=TICKET), self.count, self.close)

    async def count(self, forth_bytes: int, back_bytes: int) -> None:
        """Note bytes before they move."""
        self.sizes.append(forth_bytes + back_bytes)
        if self.refuses(sum(self.sizes)):
            raise DeclinedError("xinu: as much as it may today")

    def close(self) -> None:
        """Note an end."""
        self.closed += 1

    def way(self, *, ticket: Ticket = TICKET) -> Splice:
        """Return the address of cs through this hop."""
        return Splice(hop=XINU, address=self.module.channels.address, claim=CLAIM, ticket=ticket)


async def three(world: World) -> tuple[Recorded, Hop, Recorded]:
    """Start cs, which nobody can dial, its parent xinu, and nyneve, which has no link with either."""
    xinu = await world.start(XINU, neighbors=((CS, None),))
    cs = await world.start(CS, listen="", neighbors=((XINU, xinu.channels.address),))
    await until(lambda: LinkUp(neighbor=CS) in xinu.events, "a link")
    return cs, Hop(xinu), await world.start(NYNEVE)


def read_of(*, follow: bool = False) -> ReadRequest:
    return ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout", follow=follow)


async def fetched(module: Recorded, way: Splice) -> bytes:
    return b"".join([piece async for piece in module.channels.fetch(CS, way, read_of())])


def test_tasks_files_and_outputs_pass_a_third_module_that_serves_none_of_them(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, hop, nyneve = await three(world)
        cs.content = LARGE
        nyneve.channels.send_tasks(CS, hop.way(), transfer(1))
        await until(lambda: cs.of_kind(TransferReceived), "the tasks")
        assert [one.sender for one in cs.of_kind(TransferReceived)] == [NYNEVE]
        files = (PutFile(hashlib.sha256(LARGE).digest(), len(LARGE)),)
        request = PutRequest(claim=CLAIM, ticket=TICKET, files=files)
        await nyneve.channels.put(CS, hop.way(), request, lambda _, offset: ContentSource(LARGE, offset=offset))
        assert cs.files.path(files[0].sha256).read_bytes() == LARGE
        assert await fetched(nyneve, hop.way()) == LARGE
        assert {peer.system for peer in cs.readers} == {NYNEVE}
        assert sum(hop.sizes) > 2 * len(LARGE)
        assert (hop.module.readers, hop.module.of_kind(TransferReceived)) == ([], [])

    play(make, scene)


def test_connections_are_shared_by_claims_and_each_new_one_shows_the_latest_ticket(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, hop, nyneve = await three(world)
        cs.content = b"x"
        with pytest.raises(ChannelError, match="has no ticket"):
            await fetched(nyneve, hop.way(ticket=WRONG))
        assert await fetched(nyneve, hop.way()) == b"x"
        assert await fetched(nyneve, replace(hop.way(), ticket=WRONG)) == b"x"

    play(make, scene)


def test_the_reader_learns_which_bound_of_the_hop_ends_its_connection(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, hop, nyneve = await three(world)
        cs.content = b"x"
        hop.refuses = lambda _: True
        with pytest.raises(ChannelError, match="xinu: as much as it may today"):
            await fetched(nyneve, hop.way())
        await until(lambda: hop.closed == 1, "the end of the connection")

    play(make, scene)


def test_a_hop_that_shuts_the_next_system_off_ends_connections_with_it(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, hop, nyneve = await three(world)
        cs.content = b"x"
        assert await fetched(nyneve, hop.way()) == b"x"
        assert hop.closed < len(hop.sizes)
        hop.module.channels.shut_off(CS)
        with pytest.raises(ChannelError):
            await fetched(nyneve, hop.way())

    play(make, scene)


def test_a_hop_passes_on_to_no_address_at_which_the_next_system_has_not_proved_its_name(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, hop, nyneve = await three(world)
        cs.content = b"x"
        elsewhere = await world.start(SystemId("gawain"))
        hop.module.splicing = Splicing(
            Leg(system=CS, address=elsewhere.channels.address, ticket=TICKET), hop.count, hop.close
        )
        with pytest.raises(ChannelError, match=r"xinu, which passes the connection on: .*cs is not reached"):
            await fetched(nyneve, hop.way())
        assert hop.sizes == []

    play(make, scene)
