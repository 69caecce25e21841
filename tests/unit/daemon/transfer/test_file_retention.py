"""Files without a use are deleted."""

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest

from messiahs.channel.contract import Channels
from messiahs.core.model.ids import SystemId
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.cache_room import Cache
from messiahs.daemon.transfer.file_retention import collect_periodically
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.passed_files import PassingFiles
from tests.waiting import until


def _no_channels() -> Channels:
    raise AssertionError


async def _collect_after_an_error(folder: Path, log: pytest.LogCaptureFixture) -> None:
    files = FileStore(folder)
    (sha256,) = files.keep_all((b"nobody needs it",))
    os.utime(files.path(sha256), (0, 0))
    arrivals = ArrivingFiles(files, claim_of=lambda _: None, in_use=frozenset)
    cache = Cache(size_bytes=0, secret=b"", in_use=frozenset, passes=lambda _: False)
    passing = PassingFiles(
        files, cache, own=SystemId("cs"), underway=arrivals.underway, channels=_no_channels, on_event=lambda _: None
    )
    away = folder.with_name("away")
    shutil.move(folder, away)
    collecting = asyncio.create_task(collect_periodically(arrivals, passing, period_seconds=0))
    try:
        await until(lambda: "could not be deleted" in log.text)
        shutil.move(away, folder)
        await until(lambda: "were deleted" in log.text)
    finally:
        collecting.cancel()
    assert files.size(sha256) is None


def test_collecting_continues_after_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "files").mkdir()
    asyncio.run(_collect_after_an_error(tmp_path / "files", caplog))
