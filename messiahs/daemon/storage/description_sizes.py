"""The estimated memory of each user's submissions, until they are forgotten: a sum that follows the database.

The items of an array, and the inputs of its members, are most of that. A submission counts until it is forgotten, also
after it has ended: a retry brings it back.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Final

from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId

LIMIT_BYTES: Final = 512 << 20
"""What a user has before further submits are refused; the last one that is accepted may exceed it."""
_UNIT_BYTES: Final = 1 << 10
_SMALL_BYTES: Final = 4 << 10
_ENTRY_BYTES: Final = 64
"""What an item, a member with inputs, or an input takes beside its stored size, about."""


class DescriptionSizes:
    """The sums of all users (mutable, used by several threads)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: dict[TaskId, tuple[str, int]] = {}
        """User and size of each submission."""
        self._small: dict[tuple[str, int], tuple[str, int]] = {}
        """What small submissions share, since there may be many: a user, and a size in whole KiB."""
        self._sums = Counter[str]()

    def of(self, user: str) -> int:
        """Return the bytes that the submissions of a user take together."""
        with self._lock:
            return self._sums[user]

    def of_submission(self, submission: TaskId) -> int:
        """Return the bytes of one submission; 0 if it is forgotten."""
        with self._lock:
            return self._counted.get(submission, ("", 0))[1]

    def store(self, row: SubmissionRow, *, stored_bytes: int) -> None:
        """Count a submission with its stored size, rounded up to whole KiB, in place of an earlier row."""
        entries = len(row.items) + len(row.member_inputs) + sum(map(len, row.member_inputs))
        size_bytes = stored_bytes + _ENTRY_BYTES * entries
        counted = row.user, -(-size_bytes // _UNIT_BYTES) * _UNIT_BYTES
        self.forget((row.id,))
        with self._lock:
            self._counted[row.id] = self._small.setdefault(counted, counted) if size_bytes < _SMALL_BYTES else counted
            self._sums[row.user] += counted[1]

    def forget(self, submissions: Iterable[TaskId]) -> None:
        """Count these no more."""
        with self._lock:
            for user, size_bytes in filter(None, [self._counted.pop(each, None) for each in submissions]):
                self._sums[user] -= size_bytes
                if not self._sums[user]:
                    del self._sums[user]
