"""Modules for the tests of channels, which record what their channels report."""

import asyncio
import shutil
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol, TypeVar

from messiahs.channel.certificates.tls import KeyAndCertificate, TlsFiles, issue, load, make_root, write
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings, Feed, NeighborAddress, Peer, Splicing
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.memory import MemoryNetwork, memory_channels
from messiahs.core.interface.events import Event
from messiahs.core.interface.messages import BoundTask, Command, TaskTransfer
from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.instants import SECOND, Instant
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.errors import CodecError
from messiahs.wire.codec import FeedRequest, ReadRequest, SpliceQuery
from tests.contract.byte_sources import ContentSource
from tests.waiting import until

FEDERATION = "campus"
CS, XINU, NYNEVE = SystemId("cs"), SystemId("xinu"), SystemId("nyneve")
CLAIM = ClaimId(CS, Epoch(2**64 - 1), 5)
TICKET = Ticket(b"0123456789abcdef")
GRANTED = {
    CLAIM: GrantedClaimRow(
        id=CLAIM,
        origin=NYNEVE,
        via=NYNEVE,
        ticket=TICKET,
        tdv=TDV((("cpus", 1), ("origin", "nyneve"), ("user", "ada"))),
        places=1,
        lease_ns=SECOND,
        lease_until=Instant(0),
    )
}

Scene = Callable[["World"], Awaitable[None]]
SomeEvent = TypeVar("SomeEvent")


def attempt(number: int) -> AttemptId:
    return AttemptId(TaskId(XINU, Epoch(7), number), 1)


def transfer(*numbers: int, claim: ClaimId = CLAIM) -> TaskTransfer:
    command = Command(argv=("true",), env=(("A", "b"),))
    tasks = tuple(BoundTask(attempt=attempt(number), command=command) for number in numbers)
    return TaskTransfer(claim=claim, ticket=TICKET, tasks=tasks)


@dataclass(kw_only=True)
class Recorded:
    """A module's channels and everything that they reported."""

    name: SystemId
    content: bytes = b""
    events: list[Event] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    on_event: Callable[[Event], None] | None = None
    closed_reads: int = 0
    held: "list[tuple[Iterator[Event | None], asyncio.Future[None]]] | None" = None
    """Messages whose turn has not come; None if it comes at once."""
    stops_at: int | None = None
    """Where the next reads of the output block."""
    opened: list[ContentSource] = field(default_factory=list)
    feed: Feed | None = None
    splicing: Splicing | None = None
    readers: list[Peer] = field(default_factory=list)
    folder: Path = field(default_factory=lambda: Path(mkdtemp(prefix="messiahs-test-")))
    _arrivals: ArrivingFiles | None = None
    _channels: Channels | None = None

    def __post_init__(self) -> None:
        """Remove everything of the files."""
        self.sockets.parent.mkdir()
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def channels(self) -> Channels:
        """The channels; set once."""
        assert self._channels is not None
        return self._channels

    @channels.setter
    def channels(self, channels: Channels) -> None:
        self._channels = channels

    @property
    def sockets(self) -> Path:
        """The folder of its sockets, whose path is too long for one."""
        return self.folder / ("long" * 30) / "sockets"

    @property
    def arrivals(self) -> ArrivingFiles:
        """Where files go; `CLAIM` is granted to nyneve."""
        if self._arrivals is None:
            self._arrivals = ArrivingFiles(FileStore(self.folder), claim_of=GRANTED.get, in_use=frozenset)
        return self._arrivals

    @property
    def files(self) -> FileStore:
        """The files that are here."""
        return self.arrivals.files

    def callbacks(self) -> Callbacks:
        """Return callbacks that record."""
        return Callbacks(
            on_event=self._take,
            in_turn=self._in_turn,
            read_output=self._read_output,
            open_output=self._open_output,
            open_feed=self._open_feed,
            open_splice=self._open_splice,
            arrivals=self.arrivals,
            on_refused=lambda peer, text: self.refused.append((peer, text)),
            on_dropped=lambda peer, text: self.dropped.append((peer, text)),
        )

    def of_kind(self, kind: type[SomeEvent]) -> list[SomeEvent]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def _take(self, event: Event) -> None:
        self.events.append(event)
        if self.on_event is not None:
            self.on_event(event)

    def take_turns(self) -> None:
        """Handle what is held back, and what follows at once."""
        held, self.held = self.held or [], None
        for events, done in held:
            self._handle(events, done)

    def _in_turn(self, _: SystemId, events: Iterator[Event | None], __: int) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.held is None:
            self._handle(events, done)
        else:
            self.held.append((events, done))
        return done

    def _handle(self, events: Iterator[Event | None], done: "asyncio.Future[None]") -> None:
        try:
            for event in events:
                if event is not None:
                    self._take(event)
        except CodecError as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    async def _open_feed(self, request: FeedRequest, peer: Peer) -> Feed:
        if request.ticket != TICKET:
            raise PermissionError(f"{peer.system} has no ticket for {request.claim}")
        if self.feed is None:
            raise FileNotFoundError(f"nothing of {request.attempt} is left here")
        return self.feed

    def _open_splice(self, query: SpliceQuery, peer: Peer) -> Splicing:
        if query.ticket != TICKET or self.splicing is None:
            raise PermissionError(f"{peer.system} has no ticket for {query.claim}")
        return self.splicing

    def _check(self, request: ReadRequest, peer: Peer) -> None:
        self.readers.append(peer)
        if request.ticket != TICKET:
            raise PermissionError(f"{peer.system} has no ticket for {request.claim}")
        if request.name != "stdout":
            raise FileNotFoundError(request.name)

    async def _open_output(self, request: ReadRequest, peer: Peer) -> ContentSource:
        self._check(request, peer)
        source = ContentSource(self.content, offset=request.offset_bytes, stop_at=self.stops_at)
        self.opened.append(source)
        return source

    async def _read_output(self, request: ReadRequest, peer: Peer) -> AsyncGenerator[bytes, None]:
        self._check(request, peer)
        at = request.offset_bytes

        def has_more() -> bool:
            return at < len(self.content)

        try:
            while has_more() or request.follow:
                if self.stops_at is not None and at >= self.stops_at:
                    await asyncio.Event().wait()
                piece = self.content[at : at + 100_000]
                at += len(piece)
                if piece:
                    yield piece
                else:
                    await until(has_more, "more of an output that is followed")
        finally:
            self.closed_reads += 1


class MakeChannels(Protocol):
    """Makes the channels of one implementation for a module."""

    def __call__(self, settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        """Make them, not yet started."""


class World:
    """Several modules over one implementation; end with `stop_all`."""

    def __init__(self, make: MakeChannels) -> None:
        self._make = make
        self._modules: list[Recorded] = []

    async def start(
        self,
        name: SystemId,
        *,
        listen: str = "127.0.0.1:0",
        neighbors: tuple[tuple[SystemId, str | None], ...] = (),
        idle_seconds: float = 60.0,
        silence_seconds: float = 15.0,
    ) -> Recorded:
        """Start a module."""
        module = self.make(
            name, listen=listen, neighbors=neighbors, idle_seconds=idle_seconds, silence_seconds=silence_seconds
        )
        await module.channels.start()
        return module

    def make(
        self,
        name: SystemId,
        *,
        listen: str = "127.0.0.1:0",
        neighbors: tuple[tuple[SystemId, str | None], ...] = (),
        idle_seconds: float = 60.0,
        silence_seconds: float = 15.0,
    ) -> Recorded:
        """Make a module, not yet started."""
        module = Recorded(name=name)
        settings = ChannelSettings(
            federation=FEDERATION,
            name=name,
            listen=listen,
            neighbors=tuple(NeighborAddress(system=system, address=address) for system, address in neighbors),
            sockets=module.sockets,
            idle_seconds=idle_seconds,
            silence_seconds=silence_seconds,
        )
        module.channels = self._make(settings, module.callbacks())
        self._modules.append(module)
        return module

    async def stop(self, module: Recorded) -> None:
        """Stop a module."""
        self._modules.remove(module)
        await module.channels.stop()

    async def stop_all(self) -> None:
        """Stop whatever still runs."""
        for module in list(self._modules):
            await self.stop(module)


def make_memory(network: MemoryNetwork) -> MakeChannels:
    def make(settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        return memory_channels(settings, callbacks, network)

    return make


def make_grpc(folder: Path, root: KeyAndCertificate, *, has_bulk: bool = False) -> MakeChannels:
    """Make channels over gRPC; with `has_bulk`, files and large outputs of any size have streams of raw bytes."""

    def make(settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        settings = replace(settings, bulk_port=0 if has_bulk else None, bulk_least_bytes=1)
        return grpc_channels(settings, callbacks, load(tls_files(folder, root, name=settings.name)))

    return make


def tls_files(folder: Path, root: KeyAndCertificate, *, name: str, federation: str = FEDERATION) -> TlsFiles:
    files = TlsFiles(
        certificate_file=folder / f"{name}.pem", key_file=folder / f"{name}.key", trust_file=folder / "root.pem"
    )
    write(
        issue(root, federation=federation, name=name), certificate_file=files.certificate_file, key_file=files.key_file
    )
    files.trust_file.write_bytes(root.certificate)
    return files


IMPLEMENTATIONS = ("memory", "grpc", "bulk")


def make_implementation(kind: str, folder: Path) -> MakeChannels:
    """Return a maker of channels; those of one maker can reach each other."""
    if kind == "memory":
        return make_memory(MemoryNetwork())
    return make_grpc(folder, make_root(FEDERATION), has_bulk=kind == "bulk")


def play(make: MakeChannels, scene: Scene) -> None:
    """Run a scene, and require that it leaves nothing of the channels behind."""

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
