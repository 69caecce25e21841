"""How calls are grouped to tasks: one for each long call, and one for hundreds of short ones."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from messiahs.core.model.instants import SECOND

BATCH_NS: Final = SECOND // 2
"""Minimum time that the calls of one task are to take together; a call that takes longer is alone in its task."""
LONGEST_BATCH_NS: Final = 10 * SECOND
"""Maximum time that they are to take together, however long their task takes to start."""
_STARTS: Final = 4
"""How many times as long as their task takes to start calls may take together while other tasks wait for a machine."""
MOST_CALLS: Final = 1_024
"""Maximum number of calls in one task."""
MOST_BYTES: Final = 16 << 20
"""Maximum size of the pickled calls of one task, unless it has only one chunk."""
_FULL_BYTES: Final = 64 << 20
"""No task is added to a submit whose pickled calls have this size: they are in memory twice while it is made."""
_PROBES: Final = 4
"""Tasks of one call each that are under way while it is not known how long calls take, or twice as many as run."""
_LOOK_NS: Final = SECOND
"""Without a result for this long, the module is asked how many of these tasks run: calls may be long."""
_FILLING_NS: Final = SECOND // 5
"""How long short calls wait for others that share their task, while other tasks are under way."""
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

    A task that waits for its machine shows that more tasks would wait, too: until the first result no more tasks are
    made while some have not begun. `start_ns` is the shortest time that a task took beside its calls. Instants are
    monotonic nanoseconds.
    """

    chunks: deque[Chunk] = field(default_factory=deque)
    mean_ns: float | None = None
    start_ns: int | None = None
    under_way: int = 0
    begun: int = 0
    looked_at: int | None = None
    slots: int | None = None
    """Tasks that ran while others waited for a machine, when the module was asked last; None if none waited."""
    filling_since: int | None = None

    def note_result(self, took_ns: int) -> None:
        """Count how long a call took."""
        self.mean_ns = took_ns if self.mean_ns is None else self.mean_ns + _LATEST_WEIGHT * (took_ns - self.mean_ns)

    def note_start(self, took_ns: int) -> None:
        """Note how long a task took beside its calls: its interpreter started, and it imported what they need."""
        self.start_ns = max(0, took_ns if self.start_ns is None else min(took_ns, self.start_ns))

    def note_begun(self, begun: int, now: int, *, others_wait: bool) -> None:
        """Note how many of the tasks under way have begun at their machines, and whether there are others."""
        self.begun, self.looked_at = begun, now
        self.slots = begun if begun and others_wait else None

    def next_batches(self, now: int, room: int) -> list[list[Call]]:
        """Take the calls of at most `room` tasks from the queue, as many as one submit may have."""
        if self.mean_ns is None:
            room = min(room, max(_PROBES, 2 * self.begun) - self.under_way)
        elif room > 0 and self._is_filling(now):
            return []
        batches: list[list[Call]] = []
        size, size_bytes = self._shared_size(), 0
        while len(batches) < room and size_bytes < _FULL_BYTES and (batch := self._batch(size)):
            batches.append(batch)
            size_bytes += sum(len(call.packed) for call in batch)
        self.under_way += len(batches)
        if batches:
            # They have the whole time to begin.
            self.looked_at = now
        return batches

    def look_in(self, now: int) -> int | None:
        """Return in how many nanoseconds `note_begun` is due; None if no call waits for that."""
        if not self.chunks or self.mean_ns is not None or self.looked_at is None:
            return None
        return max(0, self.looked_at + _LOOK_NS - now)

    def filled_in(self, now: int) -> int | None:
        """Return in how many nanoseconds calls are sent that wait for others; None if none do."""
        return None if self.filling_since is None else max(0, self.filling_since + _FILLING_NS - now)

    def _is_filling(self, now: int) -> bool:
        """Whether the calls that wait are to wait for more of them."""
        if not self.chunks or not self.under_way or len(self.chunks) >= self._size() or self.filled_in(now) == 0:
            self.filling_since = None
        elif self.filling_since is None:
            self.filling_since = now
        return self.filling_since is not None

    @property
    def is_busy(self) -> bool:
        """Whether calls wait or are under way."""
        return bool(self.chunks or self.under_way)

    def _batch(self, size: int) -> list[Call]:
        """Take about so many calls for one task from the queue; empty if none wait that are not cancelled."""
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

    def _size(self) -> int:
        """Return how many calls a task may have."""
        together_ns = min(LONGEST_BATCH_NS, max(BATCH_NS, self.start_ns or 0))
        return 1 if self.mean_ns is None else int(min(MOST_CALLS, max(1, together_ns // max(1, self.mean_ns))))

    def _shared_size(self) -> int:
        """Return how many calls a task may have while others wait for a machine: more, so that fewer tasks start.

        The calls are divided evenly among as few tasks for each slot as their limits allow.
        """
        size, calls = self._size(), len(self.chunks)
        if self.mean_ns is None or self.slots is None or not self.start_ns:
            return size
        together_ns = min(LONGEST_BATCH_NS, _STARTS * self.start_ns)
        most = int(min(MOST_CALLS, max(size, together_ns // max(1, self.mean_ns))))
        rounds = -(-calls // (self.slots * most))
        return max(size, -(-calls // (self.slots * max(1, rounds))))
