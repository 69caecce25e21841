"""The secret of a border's pseudonyms: a file beside the database, made at the first start (MESSIAHS 4).

Whoever has it can compute the ids and pseudonyms that a border shows for any names. It belongs to the database: with
another key a border would show other ids for the same tasks, and executors outside would take one attempt for two.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import write_whole
from messiahs.core.border.pseudonyms import epoch_of_key
from messiahs.core.interface.rows import HiddenSubmissionRow, PassedClaimRow, RowKind
from messiahs.core.model.ids import Epoch
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import StoreError, UnusableStateError

NAME: Final = "border.key"
KEY_BYTES: Final = 32
_OWNER_ALONE: Final = 0o600
_RESTORE: Final = "restore it from the backup of this module's state"


def border_key(store: RowStore) -> bytes:
    """Return the key of the border with this database; a missing one is made if nothing has been shown yet.

    Raises `UnusableStateError` if the file is damaged, is not its owner's alone, or is not the key of this database,
    and `StoreError` if it cannot be written.
    """
    path = store.folder / NAME
    shown = _shown_epoch(store)
    try:
        key = _read(path)
    except FileNotFoundError:
        if shown is not None:
            text = f"{path} is missing, but the database has ids of tasks that were made with it: {_RESTORE}"
            raise UnusableStateError(text) from None
        return _made(path)
    except OSError as error:
        raise UnusableStateError(f"{path} cannot be read: {error.strerror}") from error
    if shown not in (None, epoch_of_key(key)):
        raise UnusableStateError(f"{path} is not the key with which ids in the database were made: {_RESTORE}")
    return key


def _read(path: Path) -> bytes:
    with open(path, "rb", opener=_opened) as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & ~_OWNER_ALONE:
            text = f"{path} has the mode {mode:04o}, so that other accounts may know the key: set it to 0600"
            raise UnusableStateError(text)
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise UnusableStateError(f"{path} does not have exactly {KEY_BYTES} bytes: {_RESTORE}")
    return key


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _made(path: Path) -> bytes:
    key = secrets.token_bytes(KEY_BYTES)
    try:
        write_whole(path, key, mode=_OWNER_ALONE)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; check that the disk is not full") from error
    return key


def _shown_epoch(store: RowStore) -> Epoch | None:
    """Return the epoch of the stored ids that were shown; None without one."""
    for kind in (RowKind.PASSED_CLAIM, RowKind.HIDDEN_SUBMISSION):
        for row in store.rows_of(kind):
            shown = row.shown if isinstance(row, PassedClaimRow | HiddenSubmissionRow) else None
            if shown is not None:
                return shown.epoch
    return None
