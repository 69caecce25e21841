"""Large files are written to their disk while they arrive: the kernel counts their pages that are only in memory."""

import asyncio
import ctypes
import os
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from messiahs.config.disk import WRITEBACK_BYTES
from messiahs.daemon.storage.files import FileStore
from tests.unit.daemon.transfer.test_output_arrivals import Executor, Scene, play
from tests.waiting import until

_CACHESTAT = 451
"""The number of this system call on every architecture."""
_PIECE = b"x" * (1 << 20)


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("size", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def dirty_pages(path: Path, size_bytes: int) -> int:
    """Count the pages at the beginning of a file that the kernel has not begun to write to the disk."""
    pages, at = _Pages(), _Range(0, size_bytes)
    with path.open("rb") as file:
        if ctypes.CDLL(None).syscall(_CACHESTAT, file.fileno(), ctypes.byref(at), ctypes.byref(pages), 0):
            pytest.skip("this kernel does not count the pages of a file (Linux 6.5)")
    return int(pages.dirty)


@pytest.fixture(autouse=True)
def on_a_disk(tmp_path: Path) -> None:
    with (tmp_path / "synced").open("wb") as file:
        file.write(_PIECE)
        file.flush()
        os.fsync(file.fileno())
    if dirty_pages(tmp_path / "synced", len(_PIECE)):
        pytest.skip(f"{tmp_path} is on no disk")


def test_an_input_is_written_to_the_disk_while_it_arrives(tmp_path: Path) -> None:
    name = sha256(b"only its beginning arrives").digest()
    with closing(FileStore(tmp_path).draft(name, size_bytes=2 * WRITEBACK_BYTES, of="a user")) as draft:
        for _ in range(WRITEBACK_BYTES // len(_PIECE)):
            draft.add(_PIECE)
        (arrived,) = (tmp_path / "drafts").glob(f"{name.hex()}.*")
        assert arrived.stat().st_size == WRITEBACK_BYTES
        assert not dirty_pages(arrived, WRITEBACK_BYTES)


def test_an_output_is_written_to_the_disk_while_it_arrives(tmp_path: Path) -> None:
    beginning = (WRITEBACK_BYTES // len(_PIECE) + 1) * _PIECE
    executor = Executor(contents={"stdout": beginning}, is_silent=True)

    async def run(scene: Scene) -> None:
        fetching = asyncio.create_task(scene.outputs.bring_home(scene.fetch(stdout=2 * WRITEBACK_BYTES)))
        await until(lambda: any(path.stat().st_size > WRITEBACK_BYTES + len(_PIECE) // 2 for path in scene.files()))
        (arrived,) = scene.files()
        # A few bytes of each piece are written together with the next one.
        assert not dirty_pages(arrived, WRITEBACK_BYTES - len(_PIECE))
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)

    play(tmp_path, executor, run)
