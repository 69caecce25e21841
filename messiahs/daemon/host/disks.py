"""The disks on which a module needs room to accept work."""

from pathlib import Path

from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.storage.store import RowStore
from messiahs.executor.contract import Executor
from messiahs.executor.protocol.layout import WorkFolders


def full_folder(store: RowStore, files: FileStore, *, executor: Executor | None) -> Path | None:
    """Return a folder of the module whose disk is full; None if all have room. Raises `OSError`."""
    if executor is None:
        return WorkFolders(state=store.folder).full()
    return WorkFolders(state=store.folder, files=files.root, tasks=executor.folder).full()
