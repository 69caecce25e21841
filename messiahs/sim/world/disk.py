"""The disk of a simulated host: rows in their stored format, written all together or not at all."""

from collections.abc import Iterator, Sequence

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.rows import Row, RowKind, SubmissionRow, TaskRow
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import with_untried, without_items
from messiahs.trace.format.rows import decode_row, encode_key, encode_row, member_range

_COMMITS_PER_BACKUP = 50


class Disk:
    """The storage that survives a crash (mutable)."""

    def __init__(self) -> None:
        self.is_full = False
        self.newest = Instant(0)
        """The instant of the last commit, by the host's clock."""
        self._rows: dict[tuple[int, bytes], bytes] = {}
        self._backup: dict[tuple[int, bytes], bytes] = {}
        self._commits = 0

    def commit(self, writes: Sequence[Store | Forget], now: Instant) -> None:
        """Perform all writes."""
        self.newest = now
        if self._commits % _COMMITS_PER_BACKUP == 0:
            self._backup = dict(self._rows)
        self._commits += 1
        for write in writes:
            if isinstance(write, Store):
                kind, key, body = encode_row(write.row)
                self._rows[kind, key] = body
            else:
                self._rows.pop(encode_key(write.key), None)

    def rows(self) -> Iterator[Row]:
        """Yield every row, in the order of their keys."""
        for (kind, key), body in sorted(self._rows.items()):
            yield decode_row(kind, key, body)

    def live_rows(self) -> Iterator[Row]:
        """Yield what a daemon reads at its start: no tasks of ended submissions, and nothing that only these have."""
        rows = tuple(self.rows())
        ended = {row.id for row in rows if isinstance(row, SubmissionRow) and row.ended_at is not None}
        for row in rows:
            if isinstance(row, SubmissionRow) and row.id in ended:
                yield without_items(row)
            elif not isinstance(row, TaskRow) or row.id.submission not in ended:
                yield row

    def submissions(self) -> list[SubmissionRow]:
        """Return every submission."""
        return [row for row in self._of_kind(RowKind.SUBMISSION) if isinstance(row, SubmissionRow)]

    def submission(self, task: TaskId) -> SubmissionRow | None:
        """Return the submission of a task."""
        kind, key = encode_key((RowKind.SUBMISSION, task.submission))
        body = self._rows.get((kind, key))
        row = decode_row(kind, key, body) if body is not None else None
        return row if isinstance(row, SubmissionRow) else None

    def members(self, submission: SubmissionRow) -> list[TaskRow]:
        """Return the tasks of a submission that were tried or have ended."""
        return list(with_untried(submission, self.stored(submission)))

    def stored(self, submission: SubmissionRow) -> list[TaskRow]:
        """Return the rows of a submission's tasks."""
        low, high = member_range(submission.id)
        return [
            row
            for (kind, key), body in sorted(self._rows.items())
            if kind == RowKind.TASK and low <= key < high and isinstance(row := decode_row(kind, key, body), TaskRow)
        ]

    def wipe(self) -> None:
        """Delete everything."""
        self._rows.clear()
        self.newest = Instant(0)

    def restore(self) -> None:
        """Restore the rows of the last backup, which is some commits old."""
        self._rows = dict(self._backup)

    def _of_kind(self, wanted: RowKind) -> Iterator[Row]:
        return (decode_row(kind, key, body) for (kind, key), body in sorted(self._rows.items()) if kind == wanted)
