"""The module's rows in SQLite: one transaction for each batch, durable before other actions of the batch."""

import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from messiahs.config.disk import has_room
from messiahs.core.interface.actions import Store
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.notifications import NotificationRow
from messiahs.core.interface.rows import CountersRow, Row, RowKind, SubmissionRow, TaskRow
from messiahs.core.model.ids import Epoch, IdsGiven, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import without_items
from messiahs.daemon.storage.clock import BootOffset
from messiahs.daemon.storage.description_sizes import DescriptionSizes
from messiahs.daemon.storage.facts import FACTS, checked_fact, fact_in, note_fact
from messiahs.daemon.storage.high_water_mark import Mark
from messiahs.daemon.storage.known_submissions import KnownSubmissions
from messiahs.daemon.storage.tables import LATER_ROWS, LATER_TABLE, create, is_later, table_of
from messiahs.daemon.storage.writes import EncodedWrites, Write, encoded_writes, place_of
from messiahs.errors import StoreError, UnusableStateError
from messiahs.trace.format.rows import check_row, decode_row, encode_key, member_range

_PAGE_ROWS = 1_024
_UNKNOWN = 100_000
"""Number of ids that may have been issued since a backup, if nothing records it."""
_PAGE_SUBMISSIONS, _PAGE_BYTES = 128, 256 << 10
"""The most submissions of a page, and the stored size above which a page has no further row."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SUBMISSIONS = """
SELECT submission.key, submission.body, task.body
FROM rows AS submission LEFT JOIN rows AS task ON task.kind = ? AND task.key = submission.key
WHERE submission.kind = ? AND submission.key > ? ORDER BY submission.key LIMIT ?
"""
"""A single task has the id of its submission, and therefore its key."""
_FIND_LATER_TABLE = f"SELECT name FROM sqlite_schema WHERE name = '{LATER_TABLE}'"  # noqa: S608 - a constant


class RowStore:
    """One database file. Writes come from one thread, reads from any; every failure is a `StoreError`.

    The file is created atomically, with its epoch, and is checked each time it is opened: a file that is damaged, empty
    or of another kind is an `UnusableStateError`, and is not modified.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = threading.Lock()
        self._known = KnownSubmissions()
        self.sizes = DescriptionSizes()
        """Of what was committed, and what `live_rows` has read."""
        self._unwritten_offset: BootOffset | None = None
        self._marking = threading.Lock()
        self._committed_at: Instant | None = None
        self._has_later_table = False
        """Whether it is known to be there."""
        try:
            if not path.exists():
                if Path(f"{path}-wal").exists():
                    raise self._unusable("it is missing, but the last part of it is in its -wal file")
                create(path, epoch=checked_fact("epoch", secrets.token_bytes(8)))
            self._reader = _connect(path)
            # A flipped bit can turn bytes into text that is not UTF-8.
            self._reader.text_factory = bytes
            self._check()
            self._writer = _connect(path)
            self._mark = Mark(path.with_suffix(".mark"))
            self.forgotten = self._forgotten()
            """Ids that may have been issued since the copy was made, if the file is an older one; else None."""
        except (sqlite3.Error, OSError) as error:
            raise self._problem("cannot be opened", error) from error

    def close(self) -> None:
        """Close the file."""
        self.follow_with_mark(at_once=True)
        self._writer.close()
        self._reader.close()

    def epoch(self) -> Epoch:
        """Return the 64 random bits that were drawn when this state was created."""
        stored = self._fact("epoch")
        assert stored is not None, "every state is created with an epoch"
        return Epoch(int.from_bytes(stored))

    @property
    def folder(self) -> Path:
        """The folder of the module, on the disk that this file fills."""
        return self._path.parent

    def has_room(self) -> bool:
        """Whether the disk has more space than is reserved for accepted work."""
        return has_room(self._path.parent)

    def newest(self) -> Instant:
        """Return the instant of the last commit."""
        reached = self._mark.reached
        return max(self._newest_here(), reached.newest if reached is not None else Instant(0))

    def _newest_here(self) -> Instant:
        stored = self._fact("newest")
        return Instant(int.from_bytes(stored) if stored is not None else 0)

    def _forgotten(self) -> IdsGiven | None:
        """Return the ids that may have been issued since this file was last stored, if it is older than its mark."""
        reached, here = self._mark.reached, self._newest_here()
        if reached is not None:
            return reached.given if here < reached.newest else None
        if self._fact("marked") is None:
            return None
        # The mark is missing or damaged, so its content can only be estimated.
        counters = next(self.rows_of(RowKind.COUNTERS), None)
        given = counters.given if isinstance(counters, CountersRow) else IdsGiven()
        return IdsGiven(submissions=given.submissions + _UNKNOWN, claims=given.claims + _UNKNOWN)

    def boot_offset(self) -> BootOffset | None:
        """Return the clock offset of the daemon that wrote last; None if there is none."""
        stored = self._fact("boot_offset")
        if stored is None:
            return None
        offset, _, boot = stored.decode().partition(" ")
        return BootOffset(boot=boot, offset_ns=int(offset))

    def write_with_next(self, offset: BootOffset) -> None:
        """Store the clock offset with the next commit, so that a full disk does not prevent the start."""
        self._unwritten_offset = offset if offset != self.boot_offset() else None

    def commit(self, writes: Sequence[Write], now: Instant) -> None:
        """Make all writes or none; they survive a crash of the machine when this returns."""
        offset, encoded = self._unwritten_offset, encoded_writes(writes)
        given = [write.row.given for write in writes if isinstance(write, Store) and isinstance(write.row, CountersRow)]
        with self._marking:
            self._mark.reserve(given[-1] if given else IdsGiven())
        try:
            with self._known.writing({place_of(write) for write in writes}), self._writer:
                self._writer.execute("BEGIN IMMEDIATE")
                self._write(encoded)
                note_fact(self._writer, "newest", now.to_bytes(8))
                if self._committed_at is None:
                    note_fact(self._writer, "marked", b"")
                if offset is not None:
                    note_fact(self._writer, "boot_offset", f"{offset.offset_ns} {offset.boot}".encode())
        except sqlite3.Error as error:
            raise self._problem("cannot be written", error) from error
        self._unwritten_offset = None
        self._committed_at = now
        for row, size_bytes in encoded.submissions:
            self.sizes.store(row, stored_bytes=size_bytes)
        self.sizes.forget(encoded.forgotten_submissions)
        self.follow_with_mark()

    def follow_with_mark(self, *, at_once: bool = False) -> None:
        """Update the mark after the last commit, at most once a second unless `at_once`."""
        with self._marking:
            if self._committed_at is not None:
                self._mark.follow(self._committed_at, at_once=at_once)

    def live_rows(self) -> Iterator[Row]:
        """Yield all rows, except tasks of submissions that have ended, and notifications that were given.

        Submissions that have ended are without what only their members have, which may be large.
        """
        for row, size_bytes in self._sized_rows_of(RowKind.SUBMISSION):
            assert isinstance(row, SubmissionRow)
            self.sizes.store(row, stored_bytes=size_bytes)
            if row.ended_at is None:
                yield row
                yield from self.members(row.id)
            else:
                yield without_items(row)
        for kind in RowKind:
            if kind not in (RowKind.SUBMISSION, RowKind.TASK, RowKind.NOTIFIED):
                yield from self.rows_of(kind)

    def submissions(self, *, after: TaskId | None) -> list[tuple[SubmissionRow, TaskRow | None]]:
        """Return the next page of submissions, oldest first, each with the row of its task if it has a single one.

        A page has as many as are not large together, and at least one.
        """
        _, low = (0, b"") if after is None else encode_key((RowKind.SUBMISSION, after))
        values = (int(RowKind.TASK), int(RowKind.SUBMISSION), low, _PAGE_SUBMISSIONS)
        page = self._select(_SUBMISSIONS, values, most_bytes=_PAGE_BYTES)
        found = []
        for key, submission, task in page:
            row = self._decoded(RowKind.SUBMISSION, key, submission)
            stored = None if task is None else self._decoded(RowKind.TASK, key, task)
            assert isinstance(row, SubmissionRow)
            assert isinstance(stored, TaskRow | None)
            found.append((row, stored))
        return found

    def submission(self, task: TaskId) -> SubmissionRow | None:
        """Return the submission of a task."""
        key = (RowKind.SUBMISSION, task.submission)
        if (known := self._known.get(key)) is not None:
            return known
        with self._known.reading(key) as reader:
            body = self._body(*key)
            row = None if body is None else self._decoded(*encode_key(key), body)
            if body is None or not isinstance(row, SubmissionRow):
                return None
            self._known.add(key, row, size_bytes=len(body), reader=reader)
        return row

    def unread_bytes(self, task: TaskId) -> int:
        """Return the stored size of the submission of a task: what `submission` would have to read."""
        key = (RowKind.SUBMISSION, task.submission)
        if self._known.get(key) is not None:
            return 0
        found = self._select("SELECT length(body) FROM rows WHERE kind = ? AND key = ?", encode_key(key))
        return int(found[0][0]) if found else 0

    def task(self, task: TaskId) -> TaskRow | None:
        """Return a task's row; None if it was never tried."""
        row = self._row(RowKind.TASK, task)
        return row if isinstance(row, TaskRow) else None

    def notification(self, task: TaskId) -> NotificationRow | None:
        """Return how the user of a task was notified of its end, or is about to be."""
        rows = (self._row(kind, task.submission) for kind in (RowKind.NOTIFICATION, RowKind.NOTIFIED))
        return next((row for row in rows if isinstance(row, NotificationRow)), None)

    def members(self, submission: TaskId) -> list[TaskRow]:
        """Return the rows of a submission's tasks, in order, read in pages so that other reads can proceed."""
        rows: list[TaskRow] = []
        first = submission.submission
        while page := self.members_page(first):
            rows.extend(page)
            first = first._replace(member=page[-1].id.member + 1)
        return rows

    def members_page(self, first: TaskId, *, skip: int = 0, most: int = _PAGE_ROWS) -> list[TaskRow]:
        """Return rows of a submission's tasks from `first` on, without so many at the beginning; none is the end."""
        _, low = encode_key((RowKind.TASK, first))
        _, high = member_range(first)
        query = "SELECT key, body FROM rows WHERE kind = ? AND key BETWEEN ? AND ? ORDER BY key LIMIT ? OFFSET ?"
        page = self._select(query, (int(RowKind.TASK), low, high, most, skip), most_bytes=_PAGE_BYTES)
        decoded = (self._decoded(RowKind.TASK, key, body) for key, body in page)
        return [row for row in decoded if isinstance(row, TaskRow)]

    def audit_page(self, after: int) -> list[AuditRow]:
        """Return the next page of the audit log, above a number, in order; an empty page is the end."""
        _, low = encode_key((RowKind.AUDIT, after))
        query = "SELECT kind, key, body FROM rows WHERE kind IN (?, ?) AND key > ? ORDER BY key LIMIT ?"
        page = self._select(query, (int(RowKind.OPEN_AUDIT), int(RowKind.AUDIT), low, _PAGE_ROWS))
        decoded = (self._decoded(kind, key, body) for kind, key, body in page)
        return [row for row in decoded if isinstance(row, AuditRow)]

    def output(self, task: TaskId, name: str) -> bytes | None:
        """Return a small output."""
        _, key = encode_key((RowKind.TASK, task))
        found = self._select("SELECT body FROM outputs WHERE task = ? AND name = ?", (key, name))
        return bytes(found[0][0]) if found else None

    def outputs_bytes(self, submission: TaskId) -> int:
        """Return the size of all small outputs of a submission."""
        found = self._select(
            "SELECT sum(length(body)) FROM outputs WHERE task BETWEEN ? AND ?", member_range(submission)
        )
        return int(found[0][0] or 0)

    def _write(self, writes: EncodedWrites) -> None:
        tables = {table_of(kind) for kind, _, _ in writes.stored} | {table_of(kind) for kind, _, _ in writes.forgotten}
        if LATER_TABLE in tables and not self._has_later_rows():
            # A database of release 0.1.0 has none.
            self._writer.execute(LATER_ROWS)
        for table in tables:
            rows = [row for row in writes.stored if table_of(row[0]) == table]
            keys = [key for key in writes.forgotten if table_of(key[0]) == table]
            self._writer.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)  # noqa: S608 - one of two names
            self._writer.executemany(f"DELETE FROM {table} WHERE kind = ? AND key BETWEEN ? AND ?", keys)  # noqa: S608 - as above
        self._writer.executemany("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?)", writes.outputs)
        ended = [(first, last) for kind, first, last in writes.forgotten if kind == RowKind.TASK]
        self._writer.executemany("DELETE FROM outputs WHERE task BETWEEN ? AND ?", ended)

    def rows_of(self, kind: RowKind) -> Iterator[Row]:
        """Yield all rows of a kind, in the order of their keys, read in pages."""
        return (row for row, _ in self._sized_rows_of(kind))

    def _sized_rows_of(self, kind: RowKind) -> Iterator[tuple[Row, int]]:
        """Yield the same, each with its stored size."""
        if is_later(kind) and not self._has_later_rows():
            return
        # The key of a row that is the only one of its kind is empty.
        query, low = "SELECT key, body FROM {} WHERE kind = ? AND key >= ? ORDER BY key LIMIT ?", b""
        while page := self._select(query.format(table_of(kind)), (int(kind), low, _PAGE_ROWS), most_bytes=_PAGE_BYTES):
            for key, body in page:
                yield self._decoded(kind, key, body), len(body)
            # No key is between these two.
            low = page[-1][0] + b"\0"

    def _row(self, kind: RowKind, task: TaskId) -> Row | None:
        body = self._body(kind, task)
        return None if body is None else self._decoded(*encode_key((kind, task)), body)

    def _body(self, kind: RowKind, task: TaskId) -> bytes | None:
        if is_later(kind) and not self._has_later_rows():
            return None
        query = f"SELECT body FROM {table_of(kind)} WHERE kind = ? AND key = ?"  # noqa: S608 - as above
        found = self._select(query, encode_key((kind, task)))
        return found[0][0] if found else None

    def _decoded(self, kind: int, key: bytes, body: bytes) -> Row:
        try:
            return decode_row(int(kind), key, body)
        except UnusableStateError as error:
            raise self._named(error) from error

    def _has_later_rows(self) -> bool:
        # Nothing removes the table.
        self._has_later_table = self._has_later_table or bool(self._select(_FIND_LATER_TABLE, ()))
        return self._has_later_table

    def _fact(self, name: str) -> bytes | None:
        found = self._select("SELECT value FROM facts WHERE name = ?", (name,))
        if not found:
            return None
        value = fact_in(name, found[0][0])
        if value is None:
            raise self._unusable(f"its fact {name} is damaged")
        return value

    def _select(self, query: str, values: tuple[object, ...], *, most_bytes: int | None = None) -> list[Any]:
        """Return what a query finds; with a limit, no more behind what exceeds it."""
        try:
            with self._reading, closing(self._reader.execute(query, values)) as cursor:
                return cursor.fetchall() if most_bytes is None else _first_of(cursor, most_bytes)
        except sqlite3.Error as error:
            raise self._problem("cannot be read", error) from error

    def _check(self) -> None:
        """Read every page once, because later work would build upon damage that is found too late."""
        ((found,), *_) = self._select("PRAGMA quick_check(1)", ())
        if found != b"ok":
            raise self._unusable(" ".join(found.decode(errors="replace").split()))
        # SQLite accepts an empty file.
        if not self._select("SELECT name FROM sqlite_schema WHERE name = 'facts'", ()) or self._fact("epoch") is None:
            raise self._unusable("it contains no state of a module")
        self._check_rows()

    def _check_rows(self) -> None:
        """Check the checksum of every row and fact; SQLite has none, and takes most flipped bits for content."""
        for fact in FACTS:
            self._fact(fact)
        try:
            for table in ("rows", LATER_TABLE) if self._has_later_rows() else ("rows",):
                self._check_table(table)
        except sqlite3.Error as error:
            raise self._problem("cannot be read", error) from error
        except UnusableStateError as error:
            raise self._named(error) from error

    def _check_table(self, table: str) -> None:
        query = f"SELECT kind, key, body FROM {table}"  # noqa: S608 - one of two names
        with self._reading, closing(self._reader.execute(query)) as cursor:
            for kind, key, body in cursor:
                if not (isinstance(key, bytes) and isinstance(body, bytes)):
                    raise self._unusable("a row is not a sequence of bytes")
                check_row(kind, key, body)

    def _problem(self, what: str, error: sqlite3.Error | OSError) -> StoreError:
        if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
            return self._unusable(str(error))
        return StoreError(f"{self._path} {what}: {error}; check that the disk is not full and the file is writable")

    def _named(self, error: UnusableStateError) -> UnusableStateError:
        return UnusableStateError(f"{self._path}: {error}")

    def _unusable(self, text: str) -> UnusableStateError:
        return UnusableStateError(
            f"{self._path} is damaged ({text}). It was left as it is: restore it from a backup (with its -wal and -shm "
            "files, if there are any), or move it away to start anew, without the tasks that it contains"
        )


def _first_of(rows: Iterable[Any], most_bytes: int) -> list[Any]:
    found = []
    for row in rows:
        found.append(row)
        most_bytes -= sum(len(each) for each in row if each is not None)
        if most_bytes < 0:
            break
    return found


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    connection.execute("PRAGMA synchronous = FULL")
    return connection
