"""Bytes that cross a border: each side uses the ids that it was shown, and reads nothing of the other one's words."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from messiahs.channel.contract import ByteSource, ChannelSettings, Peer
from messiahs.channel.memory import MemoryNetwork, memory_channels
from messiahs.config.settings import ByteSettings
from messiahs.core.interface.events import TransferReceived
from messiahs.core.model.ids import AttemptId, ClaimId, Ticket
from messiahs.core.model.routes import Leg, Route
from messiahs.daemon.transfer.byte_traffic import ByteTraffic
from messiahs.errors import BeyondError, ChannelError, DeclinedError, MessiahsError, RefusedError
from messiahs.executor.stub import StubExecutor
from messiahs.wire.codec import FeedRequest, PutFile, PutRequest, ReadRequest
from tests.contract.channel_modules import FEDERATION, Recorded
from tests.unit.core.border.gate import (
    INSIDE_CLAIM,
    OUTSIDE_CLAIM,
    gate,
    granted_inside,
    granted_outside,
    inside,
    shown,
    toward,
)
from tests.unit.core.rig import CHILD, PARENT, Rig, remote, transfer
from tests.unit.daemon.transfer.byte_traffic import traffic_of

NEXT = Ticket(b"of the next leg.")
ATTEMPT = inside(1, member=3)
FILE = PutFile(b"f" * 32, 5)


@dataclass
class Next:
    """The next system: it fails as the test says, in words that name what is behind the border (mutable)."""

    error: Exception = field(default_factory=lambda: RefusedError("far: its disk /home/ann is full"))
    asked: list[tuple[ClaimId, AttemptId | None]] = field(default_factory=list)

    async def read_output(self, request: ReadRequest, _: Peer) -> AsyncGenerator[bytes, None]:
        """Send one piece, and fail."""
        self.asked.append((request.claim, request.attempt))
        yield b"one"
        raise self.error

    async def open_output(self, request: ReadRequest, _: Peer) -> "FailingSource":
        """Open an output that fails in the middle."""
        self.asked.append((request.claim, request.attempt))
        return FailingSource(self.error)

    async def open_feed(self, request: FeedRequest, _: Peer) -> object:
        """Fail."""
        self.asked.append((request.claim, request.attempt))
        raise self.error

    def receive(self, _: Peer, request: PutRequest) -> object:
        """Fail."""
        self.asked.append((request.claim, None))
        raise DeclinedError(str(self.error), is_brief=not isinstance(self.error, RefusedError))


@dataclass
class FailingSource:
    """An output whose first piece arrives (mutable)."""

    error: Exception
    sha256: bytes = b""
    has_sent: bool = False

    def read_into(self, buffer: memoryview, /) -> int:
        """Return a piece, then fail."""
        if self.has_sent:
            raise self.error
        self.has_sent = True
        buffer[:3] = b"one"
        return 3

    def close(self) -> None:
        """Do nothing."""


Scene = Callable[[ByteTraffic, Next], Awaitable[None]]


def play(rig: Rig, claim: ClaimId, folder: Path, scene: Scene, /) -> None:
    """Let the next leg of a claim lead to a system that fails."""
    network, then = MemoryNetwork(), Next()
    passed = rig.state.hop.passed[claim]
    settings = ChannelSettings(federation=FEDERATION, name=passed.toward_executor, listen="127.0.0.1:0")
    recorded = Recorded(name=passed.toward_executor)
    callbacks = replace(
        recorded.callbacks(),
        read_output=then.read_output,
        open_output=then.open_output,
        open_feed=then.open_feed,  # type: ignore[arg-type]
        arrivals=then,  # type: ignore[arg-type]
    )

    async def run() -> None:
        there = memory_channels(settings, callbacks, network)
        await there.start()
        leg = Leg(system=passed.toward_executor, address=there.address, ticket=NEXT)
        rig.state.hop.passed[claim] = replace(passed, route=Route(straight=leg, path=leg))
        own = memory_channels(replace(settings, name=rig.state.system), Recorded(name=CHILD).callbacks(), network)
        await own.start()
        limits = ByteSettings()
        await scene(traffic_of(rig, folder, channels=lambda: own, executor=StubExecutor(), limits=limits), then)
        await own.stop()
        await there.stop()

    asyncio.run(run())


async def read_all(pieces: AsyncGenerator[bytes, None]) -> None:
    async for _ in pieces:
        pass


async def read_source(source: ByteSource) -> None:
    while await asyncio.to_thread(source.read_into, memoryview(bytearray(64))):
        pass


async def failures(
    traffic: ByteTraffic, peer: Peer, /, claim: ClaimId, *, ticket: Ticket, attempt: AttemptId
) -> list[Exception]:
    """Return how each kind of bytes fails for a peer; standard input may end without a reason."""
    read = ReadRequest(claim=claim, ticket=ticket, attempt=attempt, name="stdout")

    async def feed() -> None:
        opened = await traffic.open_feed(FeedRequest(claim=claim, ticket=ticket, attempt=attempt), peer)
        await opened.answer()

    async def put() -> None:
        await traffic.receive(peer, PutRequest(claim=claim, ticket=ticket, files=(FILE,))).begin()

    async def read_large() -> None:
        await read_source(await traffic.open_output(read, peer))

    found: list[Exception] = []
    for one in (read_all(traffic.read_output(read, peer)), read_large(), feed(), put()):
        try:
            await one
        except (MessiahsError, OSError) as error:
            found.append(error)
    return found


def test_the_outside_names_its_own_ids_and_reads_the_borders_words_alone(tmp_path: Path) -> None:
    rig = gate(toward(CHILD))
    _, row = granted_inside(rig)
    assert row.shown is not None
    assert row.ticket is not None
    claim, ticket, peer = row.shown, row.ticket, Peer(system=PARENT, key=b"")

    async def scene(traffic: ByteTraffic, then: Next, /) -> None:
        for then.error, words in (
            (RefusedError("far: its disk /home/ann is full"), "it was refused behind this border"),
            (BeyondError("far cannot reach home"), "the next system behind this border was not reached"),
            (ChannelError("10.0.0.1:7101 does not answer"), "the next system behind this border was not reached"),
        ):
            errors = await failures(traffic, peer, claim, ticket=ticket, attempt=remote())
            assert {str(error) for error in errors} == {words}
        then.error = FileNotFoundError("far has no /home/ann/stdout")
        errors = await failures(traffic, peer, claim, ticket=ticket, attempt=remote())
        assert str(errors[0]) == "nothing of it is left behind this border"
        assert isinstance(errors[0], FileNotFoundError)
        assert set(then.asked) == {(INSIDE_CLAIM, remote()), (INSIDE_CLAIM, None)}
        for wrong in (INSIDE_CLAIM, claim._replace(number=claim.number + 1)):
            for error in await failures(traffic, peer, wrong, ticket=ticket, attempt=remote()):
                assert str(wrong) in str(error) or str(remote()) in str(error)

    play(rig, INSIDE_CLAIM, tmp_path, scene)


def test_an_origin_inside_names_its_own_ids_and_reads_the_words_of_the_outside(tmp_path: Path) -> None:
    rig = gate(toward(PARENT))
    ticket = granted_outside(rig).ticket
    assert ticket is not None
    rig.handle(TransferReceived(sender=CHILD, message=transfer(OUTSIDE_CLAIM, ticket, ATTEMPT)))

    async def scene(traffic: ByteTraffic, then: Next, /) -> None:
        peer = Peer(system=CHILD, key=b"")
        errors = await failures(traffic, peer, OUTSIDE_CLAIM, ticket=ticket, attempt=ATTEMPT)
        assert {str(error) for error in errors} == {"far: its disk /home/ann is full"}
        assert set(then.asked) == {(OUTSIDE_CLAIM, shown(rig, ATTEMPT)), (OUTSIDE_CLAIM, None)}
        then.asked.clear()
        for error in (await failures(traffic, peer, OUTSIDE_CLAIM, ticket=ticket, attempt=remote()))[:3]:
            assert isinstance(error, FileNotFoundError)
        assert set(then.asked) == {(OUTSIDE_CLAIM, None)}

    play(rig, OUTSIDE_CLAIM, tmp_path, scene)
