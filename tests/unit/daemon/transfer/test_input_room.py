"""Room for inputs on a small disk."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from pathlib import Path

import pytest

from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.input_room import InputRoom, Upload
from messiahs.daemon.transfer.underway_files import UnderwayFiles
from tests.live.disks import mounted

pytestmark = pytest.mark.processes

MIB = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> Iterator[FileStore]:
    """Make a store on a disk of 40 MiB, of which inputs may take 30."""
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=40m", "tmpfs"):
        yield FileStore(tmp_path)


def play(files: FileStore, scene: Callable[[InputRoom], Awaitable[None]], *, in_use: Collection[bytes] = ()) -> None:
    asyncio.run(_played(scene, InputRoom(files, UnderwayFiles(), in_use=lambda: in_use, spent=lambda: dict)))


async def _played(scene: Callable[[InputRoom], Awaitable[None]], room: InputRoom) -> None:
    await scene(room)


async def arriving() -> AsyncIterator[bytes]:
    yield b"x" * 5 * MIB
    yield b"x"


def test_uploads_that_begin_at_the_same_time_share_the_room(files: FileStore) -> None:
    async def scene(room: InputRoom) -> None:
        first = Upload(20 * MIB)
        assert await room.make(first.left_bytes)
        with room.kept_for(first):
            assert (await room.make(8 * MIB), await room.make(14 * MIB)) == (True, False)
            pieces = first.counted(arriving())
            await anext(pieces)
            await anext(pieces)
            assert first.left_bytes == 15 * MIB
            assert await room.make(14 * MIB)
        assert await room.make(28 * MIB)

    play(files, scene)


def test_what_stays_is_what_tasks_need_and_a_refusal_names_it(files: FileStore) -> None:
    needed, asked = files.keep(b"n" * 12 * MIB), files.keep(b"a" * 9 * MIB)

    async def scene(room: InputRoom) -> None:
        assert not await room.make(10 * MIB)
        assert (await room.shortage()).startswith("inputs take 21 MiB of 40 MiB, 12 MiB of them for tasks that have ")

    play(files, scene, in_use={needed})
    assert files.missing([needed, asked]) == ()
