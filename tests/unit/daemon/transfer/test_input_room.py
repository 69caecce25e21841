"""Room for inputs on a small disk."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from pathlib import Path
from time import monotonic

import pytest

from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.input_room import InputRoom
from messiahs.daemon.transfer.underway_files import UnderwayFiles, Upload
from messiahs.errors import NoRoomError
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


async def has_room(room: InputRoom, upload: Upload) -> bool:
    try:
        await enter(room, upload)
    except NoRoomError:
        return False
    return True


async def enter(room: InputRoom, upload: Upload) -> None:
    async with room.kept_for(upload):
        pass


def test_uploads_that_begin_at_the_same_time_share_the_room(files: FileStore) -> None:
    async def scene(room: InputRoom) -> None:
        first = Upload("user:ada", 20 * MIB)
        async with room.kept_for(first):
            assert await has_room(room, Upload("user:eve", 8 * MIB))
            assert not await has_room(room, Upload("user:eve", 14 * MIB))
            pieces = room.counted(first, arriving())
            await anext(pieces)
            await anext(pieces)
            assert first.left_bytes == 15 * MIB
            assert await has_room(room, Upload("user:eve", 13 * MIB))
        assert await has_room(room, Upload("user:eve", 26 * MIB))

    play(files, scene)


def test_a_ninth_of_what_a_user_has_stays_free_for_others(files: FileStore) -> None:
    files.keep(b"a" * 16 * MIB, of="user:ada")

    async def scene(room: InputRoom) -> None:
        assert await has_room(room, Upload("user:ada", 10 * MIB))
        with pytest.raises(
            NoRoomError, match=r"no room for 12582912 bytes beside the 1 \(16 MiB\) that you have there"
        ):
            await enter(room, Upload("user:ada", 12 * MIB))
        assert await has_room(room, Upload("user:eve", 12 * MIB))
        announced = Upload("user:ada", 8 * MIB)
        async with room.kept_for(announced):
            # It counts before it has come.
            assert not await has_room(room, Upload("user:ada", 4 * MIB))
            assert await has_room(room, Upload("user:eve", 4 * MIB))

    play(files, scene)


def test_a_user_who_has_many_files_leaves_some_for_others(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=40m,nr_inodes=400", "tmpfs"):
        files = FileStore(tmp_path)
        free = files.free_files()
        assert free is not None
        half = free // 2
        files.keep_all([b"%d" % number for number in range(half)], of="user:ada")

        async def scene(room: InputRoom) -> None:
            left = free - half
            with pytest.raises(
                NoRoomError, match=rf"no room for another {left - 10} files \(inodes\) beside the {half}"
            ):
                await enter(room, Upload("user:ada", 1, left - 10))
            async with room.kept_for(Upload("user:ada", 1, left // 2)):
                # What is on its way counts whole.
                assert not await has_room(room, Upload("user:ada", 1, left // 2 - 10))
                assert await has_room(room, Upload("user:eve", 1, left // 2 - 10))
            assert await has_room(room, Upload("user:ada", 1, left - 50))
            assert await has_room(room, Upload("user:eve", 1, left - 20))

        play(files, scene)


def test_files_that_were_removed_by_hand_make_room(files: FileStore) -> None:
    first, _ = files.keep_all([b"a" * 12 * MIB, b"b" * 4 * MIB], of="user:ada")

    async def scene(room: InputRoom) -> None:
        async with room.kept_for(Upload("user:eve", 12 * MIB + MIB // 2)):
            assert not await has_room(room, Upload("user:ada", 1))
        files.path(first).unlink()
        files.keep(b"e" * (24 * MIB + MIB // 2), of="user:eve")
        # The room of another start: this one has just counted them.
        assert await has_room(InputRoom(files, UnderwayFiles(), in_use=set, spent=lambda: dict), Upload("user:ada", 1))
        assert files.held_by("user:ada").size_bytes == 4 * MIB

    play(files, scene)


def test_an_upload_that_hardly_comes_keeps_no_room_and_ends_when_others_took_it(files: FileStore) -> None:
    async def scene(room: InputRoom) -> None:
        slow = Upload("user:ada", 24 * MIB, begun_seconds=monotonic() - 20)
        async with room.kept_for(slow):
            assert slow.left_bytes == 0
            pieces = room.counted(slow, arriving())
            await anext(pieces)
            assert await has_room(room, Upload("user:eve", 20 * MIB))
            files.keep(b"e" * 30 * MIB, of="user:eve")
            with pytest.raises(NoRoomError, match="came at less than 1 MiB/s, and its room is taken"):
                await anext(pieces)

    play(files, scene)


def test_an_upload_that_comes_fast_enough_keeps_its_room(files: FileStore) -> None:
    async def scene(room: InputRoom) -> None:
        steady = Upload("user:ada", 24 * MIB, begun_seconds=monotonic() - 12, written_bytes=4 * MIB)
        async with room.kept_for(steady):
            assert steady.left_bytes == 20 * MIB
            assert not await has_room(room, Upload("user:eve", 20 * MIB))

    play(files, scene)


def test_what_stays_is_what_tasks_need_and_a_refusal_names_it(files: FileStore) -> None:
    needed, asked = files.keep(b"n" * 12 * MIB), files.keep(b"a" * 9 * MIB)

    async def scene(room: InputRoom) -> None:
        assert not await room.make(10 * MIB)
        assert (await room.shortage()).startswith("inputs take 21 MiB of 40 MiB, 12 MiB of them for tasks that have ")

    play(files, scene, in_use={needed})
    assert files.missing([needed, asked]) == ()
