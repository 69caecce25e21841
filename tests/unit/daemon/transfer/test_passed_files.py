"""Files that pass a hop: cached or passed on, once for each supplier, and refused by the module concerned."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from messiahs.channel.contract import ChannelSettings, Peer, Receipt
from messiahs.channel.memory import MemoryNetwork, memory_channels
from messiahs.core.interface.events import Event, StraightFailed
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Leg
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.passed_files import Cache, PassingFiles
from messiahs.errors import BeyondError, ChannelError, RefusedError
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, GRANTED, NYNEVE, TICKET, XINU, Recorded
from tests.waiting import until

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
        cache = Cache(size_bytes=cache_bytes, secret=b"secret", in_use=frozenset)
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


def test_a_cached_file_is_sent_once_for_any_number_of_claims(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        await scene.put()
        await scene.put(claim=OTHER.number)
        assert scene.offsets == [0]
        assert scene.is_here()
        assert scene.there.path(FILE.sha256).read_bytes() == CONTENT
        assert not scene.passing.arriving
        assert not scene.passing.claims

    play(tmp_path, scene)


def test_many_small_and_empty_files_pass_on_one_stream(tmp_path: Path) -> None:
    contents = {hashlib.sha256(each).digest(): each for each in (b"", *(bytes([number]) * 500 for number in range(50)))}

    async def scene(scene: Scene) -> None:
        settings = ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0")
        channels = memory_channels(settings, Recorded(name=NYNEVE).callbacks(), scene.network)
        files = tuple(PutFile(sha256, len(content)) for sha256, content in contents.items())
        for claim in (CLAIM, OTHER):
            request = PutRequest(claim=claim, ticket=TICKET, files=files)
            await channels.put(XINU, scene.hop, request, lambda sha256, _: ContentSource(contents[sha256]))
        for store in (scene.there, scene.passing.files):
            assert {sha256: store.path(sha256).read_bytes() for sha256 in contents} == contents

    play(tmp_path, scene)


def test_a_second_claim_follows_a_file_that_is_on_its_way_for_another(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        second = asyncio.create_task(scene.put(claim=OTHER.number))
        await until(lambda: len(scene.passing.claims) == 2, "that the second stream has begun")
        assert not second.done()
        scene.sources[0][1].go_on()
        await asyncio.gather(first, second)
        assert scene.offsets == [0]

    play(tmp_path, scene)


@pytest.mark.parametrize("own", [CLAIM.number, OTHER.number])
def test_a_file_for_the_own_machine_and_for_the_next_system_comes_once(tmp_path: Path, own: int) -> None:
    async def scene(scene: Scene) -> None:
        scene.legs[OTHER.number] = scene.legs[CLAIM.number]
        scene.legs[own] = Leg(system=XINU, address=scene.hop, ticket=TICKET)
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        second = asyncio.create_task(scene.put(claim=OTHER.number))
        await until(lambda: scene.begun == [CLAIM.number, OTHER.number], "that the second stream has begun")
        scene.sources[0][1].go_on()
        await asyncio.gather(first, second)
        assert scene.offsets == [0]
        assert scene.is_here()
        assert scene.there.path(FILE.sha256).read_bytes() == CONTENT

    play(tmp_path, scene)


def test_a_file_for_two_claims_of_one_executor_is_brought_by_one_stream(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        scene.legs[OTHER.number] = scene.legs[CLAIM.number]
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        second = asyncio.create_task(scene.put(claim=OTHER.number))
        await until(lambda: len(scene.passing.claims) == 2, "that the second stream has begun")
        scene.sources[0][1].go_on()
        await asyncio.gather(first, second)
        assert scene.offsets == [0]

    play(tmp_path, scene)


@pytest.mark.parametrize("cache_bytes", [1 << 30, 0])
def test_after_a_break_a_file_continues_at_what_has_arrived(tmp_path: Path, cache_bytes: int) -> None:
    async def scene(scene: Scene) -> None:
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        store = scene.passing.files if cache_bytes else scene.there
        await until(lambda: sum(path.stat().st_size for path in (store.root / "drafts").glob("*.*")), "a draft")
        first.cancel()
        await asyncio.wait([first])
        await until(lambda: not scene.passing.receipts, "that the hop has given up the stream")
        await scene.put()
        assert scene.offsets[0] == 0 < scene.offsets[1] <= 300_000
        assert scene.there.path(FILE.sha256).read_bytes() == CONTENT
        assert scene.is_here() == bool(cache_bytes)

    play(tmp_path, scene, cache_bytes=cache_bytes)


@pytest.mark.parametrize("cache_bytes", [1 << 30, 0])
def test_a_supplier_that_knows_only_the_hash_of_what_passed_must_bring_it(tmp_path: Path, cache_bytes: int) -> None:
    async def scene(scene: Scene) -> None:
        await scene.put()
        with pytest.raises(ChannelError):
            await scene.put(of=EVE, content=b"x" * len(CONTENT))
        known = [scene.passing.shown(name).hex() for name in (NYNEVE, EVE)]
        assert [scene.there.size_for(f"xinu/{name}", FILE.sha256) for name in known] == [len(CONTENT), None]
        await scene.put(of=EVE)
        assert scene.offsets == [0, 0, 0]
        assert scene.there.size_for(f"xinu/{known[1]}", FILE.sha256) == len(CONTENT)

    play(tmp_path, scene, cache_bytes=cache_bytes)


def test_a_refusal_of_the_next_system_is_told_in_its_words(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        # This claim is unknown at the executor, which might be reached on another leg.
        with pytest.raises(BeyondError, match="cs: xinu has no ticket"):
            await scene.put(claim=7)
        assert [type(event) for event in scene.events] == [StraightFailed]
        wrong = FILE._replace(size_bytes=1)
        with pytest.raises(RefusedError, match="another file"):
            await _put_file(scene, wrong)

    play(tmp_path, scene)


async def _put_file(scene: Scene, file: PutFile) -> None:
    settings = ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0")
    channels = memory_channels(settings, Recorded(name=NYNEVE).callbacks(), scene.network)
    request = PutRequest(claim=CLAIM, ticket=TICKET, files=(file,))
    await channels.put(XINU, scene.hop, request, lambda _, offset: ContentSource(b"x", offset=offset))


def test_a_system_that_cannot_be_reached_is_named_and_another_leg_is_looked_for(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        await scene.executor.channels.stop()
        with pytest.raises(BeyondError, match=r"^cs: "):
            await scene.put()
        assert [type(event) for event in scene.events] == [StraightFailed]

    play(tmp_path, scene)
