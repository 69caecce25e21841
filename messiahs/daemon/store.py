"""The module's rows in SQLite: one transaction for each batch, on disk before anything else of the batch is done."""

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from messiahs.config.whole_files import sync_folder
from messiahs.core.actions import Forget, Store
from messiahs.core.ids import Epoch, TaskId
from messiahs.core.instants import Instant
from messiahs.core.rows import Row, RowKind, SubmissionRow, TaskRow
from messiahs.daemon.clock import BootOffset
from messiahs.errors import StoreError, UnusableStateError
from messiahs.trace.rows import decode_row, encode_key, encode_row, member_range

_RESERVED_BYTES = 8 * 1_024 * 1_024
_PAGE_ROWS = 1_024
_PAGE_SUBMISSIONS = 128
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA = """
CREATE TABLE rows (kind INTEGER, key BLOB, body BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE outputs (
    task BLOB, name TEXT, body BLOB NOT NULL, PRIMARY KEY (task, name)
) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""

_SUBMISSIONS = """
SELECT submission.body, task.body
FROM rows AS submission LEFT JOIN rows AS task ON task.kind = ? AND task.key = submission.key
WHERE submission.kind = ? AND submission.key > ? ORDER BY submission.key LIMIT ?
"""
"""A task that is alone has the id of its submission, and so its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOutput:
    """Keep a small output of a task beside its rows, in place of what an earlier attempt left."""

    task: TaskId
    name: str
    body: bytes


Write = Store | Forget | KeepOutput


class RowStore:
    """One database file. Writes come from one thread, reads from any; every failure is a `StoreError`.

    The file comes into being whole, with its epoch, and is checked each time it is opened: one that was damaged,
    emptied or is something else is an `UnusableStateError`, and is left as it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = threading.Lock()
        self._unwritten_offset: BootOffset | None = None
        try:
            if not path.exists():
                if Path(f"{path}-wal").exists():
                    raise self._unusable("it is missing, but the last part of it is in its -wal file")
                _create(path)
            self._reader = _connect(path)
            self._check()
            self._writer = _connect(path)
        except (sqlite3.Error, OSError) as error:
            raise self._problem("cannot be opened", error) from error

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
        self._reader.close()

    def epoch(self) -> Epoch:
        """Give the 64 random bits that were drawn when this state was made."""
        stored = self._fact("epoch")
        assert stored is not None, "every state is made with an epoch"
        return Epoch(int.from_bytes(stored))

    def has_room(self) -> bool:
        """Say whether the disk has more room than is kept for what the module has taken on already."""
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize >= _RESERVED_BYTES

    def newest(self) -> Instant:
        """Give the instant of the last commit."""
        stored = self._fact("newest")
        return Instant(int.from_bytes(stored) if stored is not None else 0)

    def boot_offset(self) -> BootOffset | None:
        """Give how the daemon that wrote last counted its instants; None if none has."""
        stored = self._fact("boot_offset")
        if stored is None:
            return None
        offset, _, boot = stored.decode().partition(" ")
        return BootOffset(boot=boot, offset_ns=int(offset))

    def write_with_next(self, offset: BootOffset) -> None:
        """Let the next commit note how its instants are counted: a full disk does not hinder the start."""
        self._unwritten_offset = offset if offset != self.boot_offset() else None

    def commit(self, writes: Sequence[Write], now: Instant) -> None:
        """Do all writes or none; when this returns they survive a crash of the machine."""
        offset = self._unwritten_offset
        try:
            with self._writer:
                self._writer.execute("BEGIN IMMEDIATE")
                for write in writes:
                    self._write(write)
                self._note("newest", now.to_bytes(8))
                if offset is not None:
                    self._note("boot_offset", f"{offset.offset_ns} {offset.boot}".encode())
        except sqlite3.Error as error:
            raise self._problem("cannot be written", error) from error
        self._unwritten_offset = None

    def live_rows(self) -> Iterator[Row]:
        """Give all rows but the tasks of submissions that have ended."""
        submissions = [row for row in self._rows(RowKind.SUBMISSION) if isinstance(row, SubmissionRow)]
        for submission in submissions:
            yield submission
            if submission.ended_at is None:
                yield from self.members(submission.id)
        for kind in RowKind:
            if kind not in (RowKind.SUBMISSION, RowKind.TASK):
                yield from self._rows(kind)

    def submissions(self, *, after: TaskId | None) -> list[tuple[SubmissionRow, TaskRow | None]]:
        """Give the next page of submissions, the oldest first, each with the row of its task if it has a single one."""
        _, low = (0, b"") if after is None else encode_key((RowKind.SUBMISSION, after))
        page = self._select(_SUBMISSIONS, (int(RowKind.TASK), int(RowKind.SUBMISSION), low, _PAGE_SUBMISSIONS))
        found = []
        for submission, task in page:
            row = decode_row(RowKind.SUBMISSION, submission)
            stored = None if task is None else decode_row(RowKind.TASK, task)
            assert isinstance(row, SubmissionRow)
            assert isinstance(stored, TaskRow | None)
            found.append((row, stored))
        return found

    def submission(self, task: TaskId) -> SubmissionRow | None:
        """Give the submission that a task belongs to."""
        row = self._row(RowKind.SUBMISSION, task.submission)
        return row if isinstance(row, SubmissionRow) else None

    def task(self, task: TaskId) -> TaskRow | None:
        """Give a task's row, None if it was never tried."""
        row = self._row(RowKind.TASK, task)
        return row if isinstance(row, TaskRow) else None

    def members(self, submission: TaskId) -> list[TaskRow]:
        """Give the rows of a submission's tasks, in order, read in pages: others read in between."""
        low, high = member_range(submission)
        query = "SELECT kind, body, key FROM rows WHERE kind = ? AND key BETWEEN ? AND ? ORDER BY key LIMIT ?"
        rows: list[TaskRow] = []
        while page := self._select(query, (int(RowKind.TASK), low, high, _PAGE_ROWS)):
            rows.extend(row for kind, body, _ in page if isinstance(row := decode_row(kind, body), TaskRow))
            # The least key that is greater.
            low = bytes(page[-1][2]) + b"\0"
        return rows

    def output(self, task: TaskId, name: str) -> bytes | None:
        """Give a small output that was kept."""
        _, key = encode_key((RowKind.TASK, task))
        found = self._select("SELECT body FROM outputs WHERE task = ? AND name = ?", (key, name))
        return bytes(found[0][0]) if found else None

    def _write(self, write: Write) -> None:
        match write:
            case Store():
                self._writer.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", encode_row(write.row))
            case Forget():
                self._writer.execute("DELETE FROM rows WHERE kind = ? AND key = ?", encode_key(write.key))
            case KeepOutput():
                _, key = encode_key((RowKind.TASK, write.task))
                self._writer.execute("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?)", (key, write.name, write.body))

    def _note(self, fact: str, value: bytes) -> None:
        self._writer.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (fact, value))

    def _rows(self, kind: RowKind) -> Iterator[Row]:
        for found, body in self._select("SELECT kind, body FROM rows WHERE kind = ? ORDER BY key", (int(kind),)):
            yield decode_row(found, body)

    def _row(self, kind: RowKind, task: TaskId) -> Row | None:
        found = self._select("SELECT kind, body FROM rows WHERE kind = ? AND key = ?", encode_key((kind, task)))
        return _decoded(*found[0]) if found else None

    def _fact(self, name: str) -> bytes | None:
        found = self._select("SELECT value FROM facts WHERE name = ?", (name,))
        return bytes(found[0][0]) if found else None

    def _select(self, query: str, values: tuple[object, ...]) -> list[Any]:
        try:
            with self._reading, closing(self._reader.execute(query, values)) as cursor:
                return cursor.fetchall()
        except sqlite3.Error as error:
            raise self._problem("cannot be read", error) from error

    def _check(self) -> None:
        """Read every page once: damage that is found later may have been built upon."""
        ((found,), *_) = self._select("PRAGMA quick_check(1)", ())
        if found != "ok":
            raise self._unusable(" ".join(str(found).split()))
        # An empty file is sound for SQLite.
        if not self._select("SELECT name FROM sqlite_schema WHERE name = 'facts'", ()) or self._fact("epoch") is None:
            raise self._unusable("it holds nothing of a module")

    def _problem(self, what: str, error: sqlite3.Error | OSError) -> StoreError:
        if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
            return self._unusable(str(error))
        return StoreError(f"{self._path} {what}: {error}; check that the disk is not full and the file is writable")

    def _unusable(self, text: str) -> UnusableStateError:
        return UnusableStateError(
            f"{self._path} is damaged ({text}). It was left as it is: restore it from a backup (with its -wal and -shm "
            "files, if there are any), or move it away to start anew, without the tasks that it holds"
        )


@lru_cache(16)
def _decoded(kind: int, body: bytes) -> Row:
    """Read a row; that of a large array is asked for once for each of its members."""
    return decode_row(kind, body)


def _create(path: Path) -> None:
    """Make a new state in one step: a crash leaves a whole one or none."""
    draft = path.with_suffix(".new")
    for left in ("", "-wal", "-shm"):
        Path(f"{draft}{left}").unlink(missing_ok=True)
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO facts VALUES ('epoch', ?)", (secrets.token_bytes(8),))
    draft.rename(path)
    sync_folder(path.parent)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    connection.execute("PRAGMA synchronous = FULL")
    return connection
