"""How calls are grouped to tasks: one for each long call, and one for hundreds of short ones."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from messiahs.core.model.instants import SECOND

BATCH_NS: Final = SECOND // 2
"""How long the calls of one task are to take together; a call that takes longer is alone in its task."""
MOST_CALLS: Final = 1_024
"""Maximum number of calls in one task."""
MOST_BYTES: Final = 16 << 20
"""Maximum size of the pickled calls of one task, unless it has only one chunk."""
_FULL_BYTES: Final = 64 << 20
"""No task is added to a submit whose pickled calls have this size: they are in memory twice while it is made."""
_PROBES: Final = 8
"""Tasks of one call each that are under way while it is not known how long calls take."""
_PROBE_NS: Final = SECOND
"""After each such time without a result there are twice as many: calls may be long, or have not begun."""
_DOUBLINGS: Final = 20
_LATEST_WEIGHT: Final = 0.25
"""The weight of the latest result in the mean."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A pickled call, and where its result goes; one that may have ended a task `is_alone` in the next one."""

    packed: bytes
    future: Future[Any]
    is_alone: bool = False


Chunk = Sequence[Call]
"""Calls that share a task however long they take; of most there is only one."""


@dataclass(slots=True, kw_only=True)
class Waiting:
    """Chunks with the same options that are in no task yet, and how long calls with these options take (mutable).

    Instants are monotonic nanoseconds; `probing_since` moves with time that is left out.
    """

    chunks: deque[Chunk] = field(default_factory=deque)
    mean_ns: float | None = None
    under_way: int = 0
    probing_since: int | None = None

    def note_result(self, took_ns: int) -> None:
        """Count how long a call took."""
        self.mean_ns = took_ns if self.mean_ns is None else self.mean_ns + _LATEST_WEIGHT * (took_ns - self.mean_ns)

    def leave_out(self, *, since: int, now: int) -> None:
        """Count no time between two instants as one without a result: no result could come, or no task could begin."""
        if self.probing_since is not None and now > since:
            self.probing_since = min(now, self.probing_since + now - since)

    def next_batches(self, now: int, room: int) -> list[list[Call]]:
        """Take the calls of at most `room` tasks from the queue, as many as one submit may have."""
        if self.mean_ns is None:
            room = min(room, (_PROBES << self._periods(now)) - self.under_way)
        batches: list[list[Call]] = []
        size_bytes = 0
        while len(batches) < room and size_bytes < _FULL_BYTES and (batch := self._batch()):
            batches.append(batch)
            size_bytes += sum(len(call.packed) for call in batch)
        self.under_way += len(batches)
        if batches and self.probing_since is None:
            self.probing_since = now
        return batches

    def ready_in(self, now: int) -> int | None:
        """Return in how many nanoseconds more tasks may be under way without a result; None if none wait for that."""
        if not self.chunks or self.mean_ns is not None or self.probing_since is None:
            return None
        return _PROBE_NS - (now - self.probing_since) % _PROBE_NS

    def _periods(self, now: int) -> int:
        return 0 if self.probing_since is None else min(_DOUBLINGS, (now - self.probing_since) // _PROBE_NS)

    @property
    def is_busy(self) -> bool:
        """Whether calls wait or are under way."""
        return bool(self.chunks or self.under_way)

    def _batch(self) -> list[Call]:
        """Take the calls of one task from the queue; empty if none wait that are not cancelled."""
        size = 1 if self.mean_ns is None else int(min(MOST_CALLS, max(1, BATCH_NS // max(1, self.mean_ns))))
        batch: list[Call] = []
        size_bytes = 0
        while self.chunks:
            chunk = [call for call in self.chunks[0] if not call.future.cancelled()]
            size_bytes += sum(len(call.packed) for call in chunk)
            is_alone = any(call.is_alone for call in (*batch, *chunk))
            if batch and chunk and (is_alone or len(batch) + len(chunk) > size or size_bytes > MOST_BYTES):
                break
            batch += chunk
            self.chunks.popleft()
        return batch
