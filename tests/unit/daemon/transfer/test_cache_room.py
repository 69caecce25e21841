"""Room in the cache for files that pass: the sum of one scan is used for all who ask in the next seconds."""

import asyncio
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer import cache_room
from messiahs.daemon.transfer.cache_room import Cache, CacheRoom
from messiahs.daemon.transfer.underway_files import UnderwayFiles
from messiahs.wire.codec import PutFile

MIB = 1 << 20


class Counting(FileStore):
    """A store that counts scans of all its files (mutable)."""

    scans = 0

    def cached_bytes(self, in_use: Collection[bytes]) -> int:
        """Count, and return the size."""
        self.scans += 1
        return super().cached_bytes(in_use)


def room_of(store: FileStore, *, cache_bytes: int = 16 * MIB) -> CacheRoom:
    cache = Cache(size_bytes=cache_bytes, secret=b"", in_use=frozenset, passes=lambda _: True)
    return CacheRoom(store, cache, own=SystemId("me"), underway=UnderwayFiles())


def file(size_bytes: int) -> PutFile:
    return PutFile(os.urandom(32), size_bytes)


def test_one_scan_serves_many_requests_and_what_they_were_admitted_counts(tmp_path: Path) -> None:
    store = Counting(tmp_path)
    store.keep_all([bytes([number]) * MIB for number in range(4)])

    async def scene() -> None:
        room = room_of(store)
        answers = await asyncio.gather(*(room.has(f"eve/{number}", [file(1)]) for number in range(64)))
        assert all(answers)
        assert store.scans == 1
        # Of the 16 MiB, 4 MiB are stored, and each of the 64 small files counts as 64 KiB.
        assert await room.has("ada", [file(8 * MIB)])
        assert store.scans == 1
        # None of them has come, which only a scan can tell.
        assert await room.has("ada", [file(1)])
        assert store.scans == 2

    asyncio.run(scene())


def test_a_refusal_holds_for_its_supplier_without_another_scan(tmp_path: Path) -> None:
    store = Counting(tmp_path)
    store.keep_all([bytes([number]) * MIB for number in range(16)])

    async def scene() -> None:
        room = room_of(store)
        assert not await room.has("eve", [file(MIB)])
        scans = store.scans
        assert not await room.has("eve", [file(MIB)])
        assert not await room.has("eve", [file(2 * MIB)])
        assert store.scans == scans
        assert not await room.has("ada", [file(MIB)])
        assert store.scans > scans

    asyncio.run(scene())


def test_a_scan_holds_only_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = Counting(tmp_path), [1_000.0]
    monkeypatch.setattr(cache_room, "monotonic", lambda: now[0])

    async def scene() -> None:
        room = room_of(store)
        assert await room.has("eve", [file(1)])
        store.keep_all([bytes([number]) * MIB for number in range(16)])
        assert await room.has("eve", [file(1)])
        now[0] += 10.0
        assert not await room.has("eve", [file(1)])

    asyncio.run(scene())


def test_scans_need_none_of_the_threads_that_all_share(tmp_path: Path) -> None:
    async def scene() -> None:
        go_on = Event()
        with ThreadPoolExecutor(1) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            taken = asyncio.create_task(asyncio.to_thread(go_on.wait))
            try:
                assert await room_of(FileStore(tmp_path)).has("eve", [file(1)])
            finally:
                go_on.set()
            await taken

    asyncio.run(scene())
