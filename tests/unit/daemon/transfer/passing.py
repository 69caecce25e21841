"""A hop through which two systems send files to two others, over channels in memory."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from messiahs.channel.contract import ChannelSettings, Peer, Receipt
from messiahs.channel.memory import MemoryNetwork, memory_channels
from messiahs.core.interface.events import Event
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Leg
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.cache_room import Cache
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.passed_files import PassingFiles
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, GRANTED, NYNEVE, TICKET, XINU, Recorded

CONTENT = bytes(range(256)) * 4_000
FILE = PutFile(hashlib.sha256(CONTENT).digest(), len(CONTENT))
OTHER = CLAIM._replace(number=6)
EVE, BLAYS = SystemId("eve"), SystemId("blays")


@dataclass(kw_only=True)
class Scene:
    """`nyneve` and `eve` send files through `xinu` to `cs`, and those of the other claim to `blays`."""

    network: MemoryNetwork
    passing: PassingFiles
    there: FileStore
    hop: str
    executor: Recorded
    events: list[Event]
    begun: list[int]
    legs: dict[int, Leg]
    """The next leg of each claim; one to the hop itself is for its own machine."""
    sources: list[tuple[int, ContentSource]] = field(default_factory=list)

    async def put(
        self, *, of: SystemId = NYNEVE, claim: int = CLAIM.number, content: bytes = CONTENT, stop_at: int | None = None
    ) -> None:
        """Send the file, perhaps with another content, or not beyond an offset."""

        def opened(_: bytes, offset: int) -> ContentSource:
            source = ContentSource(content, offset=offset, stop_at=stop_at)
            self.sources.append((offset, source))
            return source

        settings = ChannelSettings(federation=FEDERATION, name=of, listen="127.0.0.1:0")
        channels = memory_channels(settings, Recorded(name=of).callbacks(), self.network)
        request = PutRequest(claim=CLAIM._replace(number=claim), ticket=TICKET, files=(FILE,))
        await channels.put(XINU, self.hop, request, opened)

    @property
    def offsets(self) -> list[int]:
        """The offsets from which the file was sent to the hop."""
        return [offset for offset, _ in self.sources]

    def is_here(self) -> bool:
        """Whether the hop has stored the file."""
        return self.passing.files.size(FILE.sha256) is not None


class _Hop:
    """Passes everything on."""

    def __init__(self, passing: PassingFiles, local: ArrivingFiles) -> None:
        self._passing, self._local = passing, local
        self.legs: dict[int, Leg] = {}
        self.begun: list[int] = []

    async def keep(self, _peer: Peer, _transfer: TaskTransfer, _contents: tuple[bytes, ...], /) -> str:
        """Store nothing."""
        return ""

    def receive(self, peer: Peer, request: PutRequest) -> Receipt:
        """Begin to receive files."""
        self.begun.append(request.claim.number)
        leg = self.legs.get(request.claim.number, self.legs[CLAIM.number])
        if leg.system == XINU:
            return self._local.receive(peer, request)
        return self._passing.receive(peer, request, leg=leg)


def play(folder: Path, scene: Callable[[Scene], Awaitable[None]], *, cache_bytes: int = 1 << 30) -> None:
    async def run() -> None:
        network, events = MemoryNetwork(), list[Event]()
        claims = {each: replace(GRANTED[CLAIM], id=each, via=XINU) for each in (CLAIM, OTHER)}
        settings = ChannelSettings(federation=FEDERATION, name=CS, listen="127.0.0.1:0")

        def executor_at(name: SystemId) -> Recorded:
            arrivals = ArrivingFiles(FileStore(_folder(folder / name)), claim_of=claims.get, in_use=frozenset)
            made = Recorded(name=name, _arrivals=arrivals)
            made.channels = memory_channels(replace(settings, name=name), made.callbacks(), network)
            return made

        executor, other = executor_at(CS), executor_at(BLAYS)
        hop = Recorded(name=XINU)
        cache = Cache(size_bytes=cache_bytes, secret=b"secret", in_use=frozenset, passes=lambda claim: claim == OTHER)
        files = FileStore(_folder(folder / "hop"))
        granted = {each: replace(claim, via=NYNEVE) for each, claim in claims.items()}
        local = ArrivingFiles(files, claim_of=granted.get, in_use=frozenset)
        passing = PassingFiles(
            files,
            cache,
            own=XINU,
            underway=local.underway,
            channels=lambda: hop.channels,
            on_event=events.append,
        )
        arriving = _Hop(passing, local)
        callbacks = replace(hop.callbacks(), arrivals=arriving)
        hop.channels = memory_channels(replace(settings, name=XINU), callbacks, network)
        try:
            for module in (executor, other, hop):
                await module.channels.start()
            for claim, module in ((CLAIM, executor), (OTHER, other)):
                leg = Leg(system=module.name, address=module.channels.address, ticket=TICKET)
                arriving.legs[claim.number] = leg
            async with asyncio.timeout(60):
                await scene(
                    Scene(
                        network=network,
                        passing=passing,
                        there=executor.files,
                        hop=hop.channels.address,
                        executor=executor,
                        events=events,
                        begun=arriving.begun,
                        legs=arriving.legs,
                    )
                )
        finally:
            for module in (hop, executor, other):
                await module.channels.stop()

    asyncio.run(run())


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
