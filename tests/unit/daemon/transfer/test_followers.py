"""Whoever follows an output is woken by what is written and by the end, and costs nothing in between."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from messiahs.daemon.transfer.followers import Followers
from messiahs.executor.linux.file_changes import FileChanges
from tests.waiting import PATIENCE_SECONDS


async def in_time(followers: Followers, changes: FileChanges, *, path: Path, has_ended: Callable[[], bool]) -> None:
    with path.open("ab") as file:
        watch = changes.watch(file.fileno())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await followers.changed(watch, has_ended)
    watch.close()


def test_all_are_woken_by_a_write_and_each_by_the_end_of_its_attempt(tmp_path: Path) -> None:
    async def scene() -> None:
        changes, followers, ended = FileChanges(), Followers(), set[str]()
        waiting = {
            name: asyncio.create_task(
                in_time(followers, changes, path=tmp_path / name[0], has_ended=partial(ended.__contains__, name))
            )
            for name in ("a1", "a2", "b1", "c1")
        }
        await asyncio.sleep(0)
        with (tmp_path / "a").open("ab") as file:
            file.write(b"more")
        await asyncio.gather(waiting["a1"], waiting["a2"])
        ended.add("b1")
        await waiting["b1"]
        assert not waiting["c1"].done()
        waiting["c1"].cancel()
        changes.close()

    asyncio.run(scene())


def test_a_follower_that_comes_after_all_others_have_gone_is_woken_too(tmp_path: Path) -> None:
    async def scene() -> None:
        changes, followers = FileChanges(), Followers()
        for _ in range(2):
            await in_time(followers, changes, path=tmp_path / "log", has_ended=lambda: True)
            # The look for the first ends, and the next follower begins another.
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        changes.close()

    asyncio.run(scene())
