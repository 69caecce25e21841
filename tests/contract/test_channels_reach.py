"""Neighbors dial each other on request, at the addresses that are configured for them and nowhere else."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel import reach_exchange
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.tls import load, make_root
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings, Stream
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.reach_exchange import Heard, ReachExchange
from messiahs.core.interface.events import LinkUp
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.errors import ChannelError, ProtocolError
from messiahs.wire.reach import (
    ReachAnswer,
    ReachRequest,
    ReachResult,
    reach_message_from_bytes,
    reach_message_to_bytes,
)
from tests.contract.channel_modules import CS, FEDERATION, NYNEVE, XINU, Recorded, World, play, tls_files
from tests.waiting import until

QUESTIONS = 200


class Asking:
    """Modules that ask each other; `known` has the addresses that are configured at each for others (mutable)."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._root = folder, make_root(FEDERATION)
        self.exchanges: dict[SystemId, ReachExchange] = {}
        self.known: dict[tuple[SystemId, SystemId], str] = {}
        self.earlier: set[SystemId] = set()
        """Modules of an earlier release."""

    def make(self, settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        """Make the channels of a module."""
        tls = TlsInForce(load(tls_files(self._folder, self._root, name=settings.name)))

        async def address_of(neighbor: SystemId) -> str:
            return self.known.get((settings.name, neighbor), "")

        exchange = ReachExchange(settings, tls, address_of)
        self.exchanges[settings.name] = exchange
        beside = () if settings.name in self.earlier else (exchange,)
        return grpc_channels(replace(settings, bulk_port=None), callbacks, tls, None, beside)

    async def ask(self, who: SystemId, whom: SystemId) -> Heard:
        """Ask as soon as the stream is there."""
        exchange = self.exchanges[who]
        await until(lambda: whom in exchange._ends, "the stream")
        return await exchange.ask(whom)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


async def linked(world: World) -> tuple[Recorded, Recorded]:
    """Start `cs`, and `xinu` below it, which dials."""
    cs = await world.start(CS, neighbors=((XINU, None),))
    xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
    await until(lambda: cs.of_kind(LinkUp) and xinu.of_kind(LinkUp), "the link")
    return cs, xinu


def test_each_end_of_a_link_is_dialed_where_the_other_end_knows_it(asking: Asking) -> None:
    async def scene(world: World) -> None:
        cs, xinu = await linked(world)
        asking.known = {(CS, XINU): xinu.channels.address, (XINU, CS): cs.channels.address}
        for who, whom in ((XINU, CS), (CS, XINU)):
            heard = await asking.ask(who, whom)
            assert (heard.answer.result, heard.answer.address) == (ReachResult.ANSWERED, asking.known[whom, who])
            assert abs(heard.clock_ahead_ns) < SECOND

    play(asking.make, scene)


@pytest.mark.parametrize(
    ("address", "result"),
    [
        ("", ReachResult.NO_ADDRESS),
        ("nowhere.invalid:7101", ReachResult.UNRESOLVED),
        ("127.0.0.1:no-port", ReachResult.FAILED),
        ("CLOSED", ReachResult.REFUSED),
        ("SILENT", ReachResult.SILENT),
        ("OTHER", ReachResult.OTHER),
        ("HANGS UP", ReachResult.FAILED),
    ],
)
def test_what_happened_is_said(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, address: str, result: ReachResult
) -> None:
    monkeypatch.setattr("messiahs.channel.certificates.pinning.ANSWER_SECONDS", 0.5)

    async def scene(world: World) -> None:
        cs, _ = await linked(world)
        with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            hanging = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
            async with hanging:
                places = {
                    "SILENT": f"127.0.0.1:{silent.getsockname()[1]}",
                    "CLOSED": f"127.0.0.1:{closed.getsockname()[1]}",
                    "OTHER": cs.channels.address,
                    "HANGS UP": f"127.0.0.1:{hanging.sockets[0].getsockname()[1]}",
                }
                asking.known[CS, XINU] = places.get(address, address)
                answer = (await asking.ask(XINU, CS)).answer
        assert (answer.result, answer.address) == (result, places.get(address, address))
        # Which system is there instead is no matter of the one that asks.
        assert "cs" not in answer.text

    play(asking.make, scene)


def test_a_neighbor_of_an_earlier_release_cannot_be_asked_and_asks_nothing(asking: Asking) -> None:
    asking.earlier.add(CS)

    async def scene(world: World) -> None:
        await linked(world)
        await until(lambda: CS not in asking.exchanges[XINU]._ends, "the end of the stream")
        with pytest.raises(ProtocolError, match="release"):
            await asking.exchanges[XINU].ask(CS)

    play(asking.make, scene)


def test_a_system_without_a_link_cannot_be_asked(asking: Asking) -> None:
    async def scene(world: World) -> None:
        await linked(world)
        with pytest.raises(ProtocolError):
            await asking.exchanges[CS].ask(NYNEVE)

    play(asking.make, scene)


def test_an_answer_that_does_not_come_is_an_error_also_when_the_link_ends(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: SystemId) -> str:
        await asyncio.Event().wait()
        return ""

    async def scene(world: World) -> None:
        cs, _ = await linked(world)
        monkeypatch.setattr(asking.exchanges[CS], "_address_of", never)
        monkeypatch.setattr(reach_exchange, "_WAIT_SECONDS", 0.3)
        with pytest.raises(ChannelError, match="no answer within"):
            await asking.ask(XINU, CS)
        monkeypatch.setattr(reach_exchange, "_WAIT_SECONDS", 60)
        monkeypatch.setattr(reach_exchange, "PAUSE_SECONDS", 0)
        question = asyncio.create_task(asking.ask(XINU, CS))
        await until(lambda: asking.exchanges[XINU]._ends[CS].asked is not None, "the question")
        cs.channels.drop_link(XINU)
        with pytest.raises(ChannelError, match="the link ended"):
            await question

    play(asking.make, scene)


class Listener:
    """Counts the connections that arrive at an address (mutable)."""

    def __init__(self) -> None:
        self.count = 0

    async def start(self) -> asyncio.Server:
        """Listen, and hang up on everybody."""
        return await asyncio.start_server(self._count, "127.0.0.1", 0)

    def _count(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        writer.close()


class HostileStream:
    """The end of a stream of a neighbor that writes what it likes (mutable)."""

    def __init__(self, contents: list[bytes]) -> None:
        self._contents = contents
        self.answers: list[ReachAnswer] = []
        self.has_ended = asyncio.Event()

    async def read(self) -> bytes | None:
        """Return the next message; the last one keeps the stream open."""
        if not self._contents:
            await self.has_ended.wait()
            return None
        return self._contents.pop(0)

    async def write(self, content: bytes) -> None:
        """Note an answer."""
        answer = reach_message_from_bytes(content)
        assert isinstance(answer, ReachAnswer)
        self.answers.append(answer)


def run_hostile(asking: Asking, scene: Callable[[ReachExchange, Listener], object]) -> None:
    """Run a scene with the exchange of a module that knows XINU at the address of a listener."""

    async def run() -> None:
        settings = ChannelSettings(federation=FEDERATION, name=CS, listen="127.0.0.1:0")
        asking.make(settings, Recorded(name=CS).callbacks())
        listener = Listener()
        server = await listener.start()
        async with server:
            asking.known[CS, XINU] = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            exchange = asking.exchanges[CS]
            try:
                await scene(exchange, listener)  # type: ignore[misc]
            finally:
                await exchange.stop()

    asyncio.run(run())


def question(number: int) -> bytes:
    return reach_message_to_bytes(ReachRequest(number=number))


def test_a_flood_of_questions_has_the_neighbor_dialed_once_also_over_new_links(asking: Asking) -> None:
    async def scene(exchange: ReachExchange, listener: Listener) -> None:
        answers: list[ReachAnswer] = []
        for _ in range(3):
            stream = HostileStream([question(number) for number in range(QUESTIONS)])
            running = asyncio.create_task(exchange.run(XINU, stream))
            await until(lambda stream=stream: len(stream.answers) >= QUESTIONS - 1, "the answers")  # type: ignore[misc]
            answers += stream.answers
            stream.has_ended.set()
            await running
        await until(lambda: listener.count, "the dial")
        assert listener.count == 1
        assert sum(each.result is not ReachResult.NOT_NOW for each in answers) <= 1

    run_hostile(asking, scene)


def test_a_second_stream_takes_the_place_of_the_first(asking: Asking) -> None:
    async def scene(exchange: ReachExchange, _: Listener) -> None:
        first, second = HostileStream([]), HostileStream([])
        running = [asyncio.create_task(exchange.run(XINU, stream)) for stream in (first, second)]
        await running[0]
        assert not running[1].done()
        second.has_ended.set()
        await running[1]

    run_hostile(asking, scene)


def test_who_sends_what_is_malformed_is_not_listened_to_and_what_was_not_asked_is_ignored(asking: Asking) -> None:
    async def scene(exchange: ReachExchange, _: Listener) -> None:
        await exchange.run(XINU, HostileStream([b"\xff", question(1)]))
        unasked = ReachAnswer(number=1, result=ReachResult.ANSWERED, clock_ns=time.time_ns())
        stream = HostileStream([reach_message_to_bytes(unasked), b"", question(2)])
        running = asyncio.create_task(exchange.run(XINU, stream))
        await until(lambda: stream.answers, "the answer to a question after them")
        assert stream.answers[0].number == 2
        stream.has_ended.set()
        await running

    run_hostile(asking, scene)


def test_a_clock_that_is_wrong_is_noticed_however_long_the_answer_takes(asking: Asking) -> None:
    class Late:
        """The stream of a neighbor whose clock is an hour ahead, and which dials for a minute as it says (mutable)."""

        def __init__(self) -> None:
            self._asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def read(self) -> bytes:
            """Answer the question."""
            if self._asked.done() and self._asked.cancelled():
                await asyncio.Event().wait()
            number = await asyncio.shield(self._asked)
            self._asked = asyncio.get_running_loop().create_future()
            return reach_message_to_bytes(
                ReachAnswer(
                    number=number,
                    result=ReachResult.NO_ADDRESS,
                    clock_ns=time.time_ns() + 3600 * SECOND,
                    took_ns=60 * SECOND,
                )
            )

        async def write(self, content: bytes) -> None:
            """Note the question."""
            asked = reach_message_from_bytes(content)
            assert isinstance(asked, ReachRequest)
            self._asked.set_result(asked.number)

    async def scene(exchange: ReachExchange, _: Listener) -> None:
        late: Stream = Late()
        exchange.begin(XINU, late)
        heard = await asking.ask(CS, XINU)
        assert abs(heard.clock_ahead_ns - 3600 * SECOND) < SECOND
        # The same answer again, which costs the neighbor nothing.
        assert await exchange.ask(XINU) is heard

    run_hostile(asking, scene)
