"""Files without a use are deleted."""

import asyncio
import logging
import os
import shutil
from pathlib import Path

from messiahs.channel.contract import Channels
from messiahs.core.model.ids import SystemId
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.file_retention import collect_periodically
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.passed_files import Cache, PassingFiles


class _Messages(logging.Handler):
    """Gives what is logged in the event loop's own thread."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.queue: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put_nowait(record.getMessage())


async def _until(messages: _Messages, text: str) -> None:
    while text not in await messages.queue.get():
        pass


def _no_channels() -> Channels:
    raise AssertionError


async def _collect_after_an_error(folder: Path) -> None:
    files = FileStore(folder)
    (sha256,) = files.keep_all((b"nobody needs it",))
    os.utime(files.path(sha256), (0, 0))
    arrivals = ArrivingFiles(files, claim_of=lambda _: None, in_use=frozenset)
    cache = Cache(size_bytes=0, secret=b"", in_use=frozenset, passes=lambda _: False)
    passing = PassingFiles(
        files, cache, own=SystemId("cs"), underway=arrivals.underway, channels=_no_channels, on_event=lambda _: None
    )
    messages, log = _Messages(), logging.getLogger("messiahs.daemon.transfer.file_retention")
    away = folder.with_name("away")
    shutil.move(folder, away)
    level = log.level
    log.addHandler(messages)
    log.setLevel(logging.INFO)
    collecting = asyncio.create_task(collect_periodically(arrivals, passing, period_seconds=0))
    try:
        async with asyncio.timeout(60):
            await _until(messages, "could not be deleted")
            shutil.move(away, folder)
            await _until(messages, "were deleted")
    finally:
        collecting.cancel()
        log.removeHandler(messages)
        log.setLevel(level)
    assert files.size(sha256) is None


def test_collecting_continues_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    asyncio.run(_collect_after_an_error(tmp_path / "files"))
