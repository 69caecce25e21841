"""Fetching outputs from executors that may lie: what is stored, what is refused, and what remains."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from messiahs.channel.contract import ChannelSettings, Peer
from messiahs.channel.memory import MemoryNetwork, memory_channels
from messiahs.config.disk import free_bytes
from messiahs.core.interface.actions import FetchOutputs
from messiahs.core.interface.output_events import OutputsFailed
from messiahs.core.model.routes import Leg
from messiahs.core.model.task_files import Output
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput
from messiahs.daemon.transfer.output_arrivals import SMALL_BYTES, Bounds, Outputs, failure_of
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.errors import ChannelError, NoRoomError, ProtocolError
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import ReadRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, CS, FEDERATION, NYNEVE, TICKET, Recorded, attempt
from tests.sparse_files import resident_pages
from tests.unit.core.rig import make_module
from tests.waiting import let_pass_in_loop, until

MEGABYTE = 1 << 20


@dataclass(kw_only=True)
class Executor:
    """An executor that sends what the test sets, whatever it announced before."""

    contents: dict[str, bytes] = field(default_factory=dict)
    is_endless: bool = False
    is_silent: bool = False
    is_dripping: bool = False
    asked: list[str] = field(default_factory=list)
    closed: int = 0

    async def read(self, request: ReadRequest, _peer: Peer) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output."""
        self.asked.append(request.name)
        content = self.contents[request.name]
        try:
            for start in range(0, len(content), 100_000):
                yield content[start : start + 100_000]
            while self.is_dripping:
                yield b"x"
                await let_pass_in_loop(0.02)
            if self.is_silent:
                await asyncio.Event().wait()
            while self.is_endless:
                yield bytes([1]) * 100_000
                await asyncio.sleep(0)
        finally:
            self.closed += 1


@dataclass(kw_only=True)
class Scene:
    """A module that fetches outputs from an executor."""

    outputs: Outputs
    home: Path
    store: RowStore
    address: str

    def fetch(self, **sizes: int) -> FetchOutputs:
        """Fetch outputs with these announced sizes."""
        outputs = tuple(Output(name=name.replace("__", "/"), size_bytes=size) for name, size in sizes.items())
        return FetchOutputs(
            attempt=attempt(1),
            claim=CLAIM,
            leg=Leg(system=CS, address=self.address, ticket=TICKET),
            outputs=outputs,
        )

    async def fetch_cut_short(self, **sizes: int) -> FetchOutputs:
        """Begin to bring outputs home, until the stream of one breaks."""
        fetch = self.fetch(**sizes)
        with pytest.raises(ChannelError, match="broke"):
            await self.outputs.bring_home(fetch)
        return fetch

    def files(self) -> list[Path]:
        """List existing large outputs."""
        return [path for path in self.home.rglob("*") if path.is_file()]


def play(
    tmp_path: Path,
    executor: Executor,
    /,
    scene: Callable[[Scene], Awaitable[None]],
    *,
    bounds: Bounds | None = None,
) -> None:
    async def run() -> None:
        network = MemoryNetwork()
        callbacks = replace(Recorded(name=CS).callbacks(), read_output=executor.read)
        if isinstance(executor, _Cut):
            callbacks = replace(callbacks, open_output=executor.open)
        settings = ChannelSettings(federation=FEDERATION, name=CS, listen="127.0.0.1:0")
        there = memory_channels(settings, callbacks, network)
        here = memory_channels(replace(settings, name=NYNEVE), Recorded(name=NYNEVE).callbacks(), network)
        await there.start()
        await here.start()
        store = RowStore(tmp_path / "module.db")
        outputs = Outputs(
            tmp_path / "outputs",
            store,
            own=NYNEVE,
            channels=here,
            here=OwnOutputs(None, RecordedModule(make_module())),
            bounds=bounds,
        )
        try:
            async with asyncio.timeout(60):
                await scene(Scene(outputs=outputs, home=tmp_path / "outputs", store=store, address=there.address))
        finally:
            await here.stop()
            await there.stop()
            store.close()

    asyncio.run(run())


def test_small_outputs_are_for_the_store_and_large_ones_are_files(tmp_path: Path) -> None:
    small, large = b"small", bytes(range(256)) * 10_000

    async def scene(scene: Scene) -> None:
        kept = await scene.outputs.bring_home(scene.fetch(stdout=len(small), work__large=len(large)))
        assert kept == (KeepOutput(task=attempt(1).task, name="stdout", body=small),)
        assert scene.outputs.read_declared(attempt(1).task, "large", offset=0, limit=len(large) + 1) == large
        assert len(scene.files()) == 1

    play(tmp_path, Executor(contents={"stdout": small, "work/large": large}), scene)


def test_the_folders_of_large_outputs_are_on_disk_when_they_are_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, fsync = b"x" * (SMALL_BYTES + 1), os.fsync
    synced: list[Path] = []

    def noting_fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    async def scene(scene: Scene) -> None:
        synced.clear()
        await scene.outputs.bring_home(scene.fetch(stdout=len(large)))
        (file,) = scene.files()
        assert synced[1:] == [file.parent, file.parent.parent, scene.home, tmp_path]

    monkeypatch.setattr(os, "fsync", noting_fsync)
    play(tmp_path, Executor(contents={"stdout": large}), scene)


@pytest.mark.parametrize("announced", [5, SMALL_BYTES + 1, MEGABYTE])
def test_more_than_was_announced_ends_the_fetch_at_once_and_nothing_is_left(tmp_path: Path, announced: int) -> None:
    executor = Executor(contents={"stderr": b"e" * 100_000, "stdout": b"x"}, is_endless=True)

    async def scene(scene: Scene) -> None:
        with pytest.raises(ProtocolError, match="more of stdout than it announced"):
            await scene.outputs.bring_home(scene.fetch(stdout=announced))
        await until(lambda: executor.closed == 1, "that the executor need not send any more")
        assert scene.files() == []

    play(tmp_path, executor, scene)


def test_an_output_shorter_than_announced_is_not_retried(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        fetch = scene.fetch(work__first=100_000, stdout=MEGABYTE)
        with pytest.raises(ProtocolError, match="shorter than announced") as failure:
            await scene.outputs.bring_home(fetch)
        assert failure_of(fetch, failure.value).is_gone
        assert scene.files() == []

    play(tmp_path, Executor(contents={"stdout": b"x", "work/first": b"f" * 100_000}), scene)


def test_outputs_for_which_the_disk_has_no_room_are_not_even_asked_for(tmp_path: Path) -> None:
    executor = Executor(contents={"stdout": b"x"})

    async def scene(scene: Scene) -> None:
        fetch = scene.fetch(stdout=free_bytes(tmp_path) + (64 << 30))
        with pytest.raises(NoRoomError) as failure:
            await scene.outputs.bring_home(fetch)
        said = failure_of(fetch, failure.value)
        assert (said.is_full, said.is_gone) == (True, False)
        assert executor.asked == []

    play(tmp_path, executor, scene)


def test_small_outputs_come_home_though_the_last_twentieth_of_the_disk_is_reached(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        sizes = {"stdout": 5, "work__out": 100_000}
        assert len(await scene.outputs.bring_home(scene.fetch(**sizes))) == 1
        with pytest.raises(NoRoomError):
            await scene.outputs.bring_home(scene.fetch(stderr=MEGABYTE + 1))

    contents = {"stdout": b"small", "work/out": b"x" * 100_000, "stderr": b"e" * (MEGABYTE + 1)}
    play(tmp_path, Executor(contents=contents), scene, bounds=Bounds(room=lambda _folder: 0))


def test_a_disk_that_fills_up_meanwhile_ends_the_way_home_of_a_large_output(tmp_path: Path) -> None:
    rooms = [1 << 40, 1 << 40, 0]

    async def scene(scene: Scene) -> None:
        with pytest.raises(NoRoomError, match="rest of stdout"):
            await scene.outputs.bring_home(scene.fetch(stdout=3 * MEGABYTE))
        assert scene.files() == []

    executor = Executor(contents={"stdout": bytes(range(256)) * 12_288})
    play(tmp_path, executor, scene, bounds=Bounds(room=lambda _folder: rooms.pop(0)))


def test_what_is_on_its_way_counts_for_the_room_of_others(tmp_path: Path) -> None:
    executor = Executor(contents={"stdout": b"x"}, is_endless=True)

    async def scene(scene: Scene) -> None:
        first = scene.fetch(stdout=60 * MEGABYTE)
        fetching = asyncio.create_task(scene.outputs.bring_home(first))
        await until(lambda: executor.asked, "that the first one is on its way")
        with pytest.raises(NoRoomError):
            await scene.outputs.bring_home(replace(first, attempt=attempt(2)))
        fetching.cancel()
        await asyncio.wait([fetching])
        await until(lambda: executor.closed == 1, "that the executor need not send any more")
        scene.outputs.discard(first.attempt)
        assert scene.files() == []
        again = asyncio.create_task(scene.outputs.bring_home(replace(first, attempt=attempt(2))))
        await until(lambda: len(executor.asked) == 2, "that there is room for the second one now")
        again.cancel()
        await asyncio.wait([again])

    play(tmp_path, executor, scene, bounds=Bounds(room=lambda _folder: 100 * MEGABYTE))


def test_what_is_only_announced_keeps_little_room_from_others(tmp_path: Path) -> None:
    executor = Executor(contents={"stdout": b"x"}, is_silent=True)

    async def scene(scene: Scene) -> None:
        large = scene.fetch(stdout=14_000 * MEGABYTE)
        announced = [
            asyncio.create_task(scene.outputs.bring_home(replace(large, attempt=attempt(number))))
            for number in range(5)
        ]
        await until(lambda: len(executor.asked) == 5, "that all are on their way")
        for each in announced:
            each.cancel()
        await asyncio.wait(announced)

    play(tmp_path, executor, scene, bounds=Bounds(room=lambda _folder: 15_000 * MEGABYTE))


def test_an_executor_that_drips_is_taken_for_one_that_cannot_be_reached(tmp_path: Path) -> None:
    executor = Executor(contents={"stdout": b"x"}, is_dripping=True)

    async def scene(scene: Scene) -> None:
        with pytest.raises(ChannelError, match="bytes a second"):
            await scene.outputs.bring_home(scene.fetch(stdout=3 * MEGABYTE))
        scene.outputs.discard(attempt(1))
        assert scene.files() == []

    play(tmp_path, executor, scene, bounds=Bounds(silence_seconds=0.2))


@pytest.mark.parametrize("begin", [b"", b"x"])
@pytest.mark.parametrize("announced", [5, 3 * MEGABYTE])
def test_an_executor_that_sends_nothing_more_is_not_waited_for(tmp_path: Path, announced: int, begin: bytes) -> None:
    executor = Executor(contents={"stdout": begin}, is_silent=True)

    async def scene(scene: Scene) -> None:
        with pytest.raises(ChannelError, match="nothing for long"):
            await scene.outputs.bring_home(scene.fetch(stdout=announced))
        await until(lambda: executor.closed == 1, "that the executor need not send any more")

    play(tmp_path, executor, scene, bounds=Bounds(silence_seconds=0.2))


def test_zeros_are_stored_as_a_hole(tmp_path: Path) -> None:
    content = b"begin" + bytes(64 * MEGABYTE) + b"middle" + bytes(64 * MEGABYTE)

    async def scene(scene: Scene) -> None:
        await scene.outputs.bring_home(scene.fetch(stdout=len(content)))
        (path,) = scene.files()
        assert path.stat().st_size == len(content)
        assert path.stat().st_blocks * 512 < MEGABYTE
        assert path.read_bytes() == content

    play(tmp_path, Executor(contents={"stdout": content}), scene)


@pytest.mark.parametrize(
    ("error", "is_gone", "is_full"),
    [
        (FileNotFoundError("gone"), True, False),
        (PermissionError("no ticket"), True, False),
        (ProtocolError("malformed"), True, False),
        (ChannelError("unreachable"), False, False),
        (OSError(errno.ENOSPC, "No space left on device"), False, True),
        (OSError(errno.EIO, "Input/output error"), False, False),
    ],
)
def test_a_failure_says_whether_to_try_again_and_whose_it_is(
    error: ChannelError | OSError, *, is_gone: bool, is_full: bool
) -> None:
    fetch = FetchOutputs(attempt=attempt(1), claim=CLAIM, leg=Leg(system=CS, address="", ticket=TICKET), outputs=())
    assert failure_of(fetch, error) == OutputsFailed(
        attempt=attempt(1), leg=fetch.leg, text=str(error), is_gone=is_gone, is_full=is_full
    )


class _Cut(Executor):
    """An executor whose streams break once after half of a large output."""

    async def read(self, request: ReadRequest, _peer: Peer) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output from its offset on."""
        self.asked.append(f"{request.name} from {request.offset_bytes}")
        content = self.contents[request.name]
        half, is_first = len(content) // 2, not self.closed
        try:
            if request.name == "stdout" and is_first:
                yield content[request.offset_bytes : half]
                raise ChannelError("the stream broke")
            yield content[request.offset_bytes :]
        finally:
            self.closed += request.name == "stdout"

    async def open(self, request: ReadRequest, _peer: Peer) -> ContentSource:
        """Open the rest of an output."""
        self.asked.append(f"{request.name} from {request.offset_bytes}")
        return ContentSource(self.contents[request.name], offset=request.offset_bytes)


def test_after_a_cut_the_rest_of_a_large_output_is_fetched_and_not_what_was_complete(tmp_path: Path) -> None:
    first, second = bytes(range(256)) * 8_000, bytes(range(255)) * 16_000
    executor = _Cut(contents={"stderr": first, "stdout": second})

    async def scene(scene: Scene) -> None:
        fetch = await scene.fetch_cut_short(stderr=len(first), stdout=len(second))
        assert await scene.outputs.bring_home(fetch) == ()
        assert executor.asked == ["stderr from 0", "stdout from 0", f"stdout from {len(second) // 2}"]
        assert {path.name for path in scene.files()} == {"stderr", "stdout"}
        assert scene.outputs.read(attempt(1).task, "stdout", offset=0, limit=len(second) + 1) == second
        assert scene.outputs.read(attempt(1).task, "stderr", offset=0, limit=len(first) + 1) == first

    play(tmp_path, executor, scene)


def test_damage_to_what_had_arrived_before_a_cut_is_noticed_at_the_end(tmp_path: Path) -> None:
    content = bytes(range(256)) * 8_000
    executor = _Cut(contents={"stdout": content})

    async def scene(scene: Scene) -> None:
        fetch = await scene.fetch_cut_short(stdout=len(content))
        (part,) = scene.files()
        with part.open("r+b") as file:
            file.write(b"?")
        with pytest.raises(ChannelError, match="arrived incomplete or damaged"):
            await scene.outputs.bring_home(fetch)
        await scene.outputs.bring_home(fetch)
        assert executor.asked == ["stdout from 0", f"stdout from {len(content) // 2}", "stdout from 0"]
        assert scene.outputs.read(attempt(1).task, "stdout", offset=0, limit=len(content) + 1) == content

    play(tmp_path, executor, scene)


def test_what_arrived_of_an_earlier_attempt_is_not_continued(tmp_path: Path) -> None:
    content = bytes(range(256)) * 8_000
    executor = _Cut(contents={"stdout": content})

    async def scene(scene: Scene) -> None:
        fetch = await scene.fetch_cut_short(stdout=len(content))
        next_attempt = fetch.attempt._replace(number=2)
        await scene.outputs.bring_home(replace(fetch, attempt=next_attempt))
        assert executor.asked == ["stdout from 0"] * 2
        assert [path.name for path in scene.files()] == ["stdout"]

    play(tmp_path, executor, scene)


def test_the_holes_of_an_output_are_read_as_zeros_without_the_kernels_memory(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        await scene.outputs.bring_home(scene.fetch(work__large=4 * MEGABYTE))
        for offset in range(0, 4 * MEGABYTE, SMALL_BYTES):
            assert not any(scene.outputs.read_declared(attempt(1).task, "large", offset=offset, limit=SMALL_BYTES))
        assert resident_pages(scene.files()[0], 4 * MEGABYTE) == 0

    play(tmp_path, Executor(contents={"work/large": bytes(4 * MEGABYTE)}), scene)
