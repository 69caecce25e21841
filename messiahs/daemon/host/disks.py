"""The disks on which a module needs room to accept work."""

import asyncio
from pathlib import Path

from messiahs.daemon.storage.disk_reserve import fill_reserve
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.executor.contract import Executor
from messiahs.executor.protocol.layout import WorkFolders


async def look_at_disks(store: RowStore, arrivals: ArrivingFiles, *, executor: Executor | None) -> Path | None:
    """Return a folder of the module whose disk is full; None if all have room. Raises `OSError`.

    Inputs that no task needs make room on their disk first. Where there is room, some is reserved for the next start.
    """
    await asyncio.to_thread(store.follow_with_mark, at_once=True)
    root = arrivals.files.root
    folders = WorkFolders(state=store.folder)
    if executor is not None:
        folders = WorkFolders(state=store.folder, files=root, tasks=executor.folder)
    full = folders.full()
    if full is not None and full.stat().st_dev == root.stat().st_dev:
        await arrivals.room.make()
        full = folders.full()
    if full is None:
        fill_reserve(store.folder)
    return full
