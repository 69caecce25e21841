"""Who follows a file is woken by each write to it, and by none to another one."""

import asyncio
from pathlib import Path

import psutil
import pytest

from messiahs.executor.linux.file_changes import FileChanges, Watch
from tests.waiting import PATIENCE_SECONDS


def watched(changes: FileChanges, path: Path) -> Watch:
    with path.open("ab") as file:
        return changes.watch(file.fileno())


def write(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


async def woken(watch: Watch) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await watch.changed()


def test_each_who_watches_a_file_is_woken_by_each_write(tmp_path: Path) -> None:
    async def scene() -> None:
        changes, path = FileChanges(), tmp_path / "log"
        first, second = (watched(changes, path) for _ in range(2))
        for _ in range(2):
            write(path)
            await woken(first)
            await woken(second)
        first.close()
        write(path)
        await woken(second)
        assert not first.has_changed.is_set()
        changes.close()

    asyncio.run(scene())


def test_a_write_to_another_file_and_the_end_of_a_watch_wake_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        changes = FileChanges()
        one, other = (watched(changes, tmp_path / name) for name in ("one", "other"))
        write(tmp_path / "other")
        await woken(other)
        assert not one.has_changed.is_set()
        (tmp_path / "other").unlink()
        other.close()
        other.close()
        changes.close()

    asyncio.run(scene())


def test_what_is_not_open_cannot_be_watched() -> None:
    async def scene() -> None:
        with pytest.raises(OSError, match="No such file"):
            FileChanges().watch(1 << 20)

    asyncio.run(scene())


def test_who_watches_nothing_any_more_has_no_file_open(tmp_path: Path) -> None:
    async def scene() -> None:
        before, changes = psutil.Process().num_fds(), FileChanges()
        watch = watched(changes, tmp_path / "log")
        assert psutil.Process().num_fds() > before
        changes.close()
        changes.close()
        watch.close()
        assert psutil.Process().num_fds() == before

    asyncio.run(scene())
