"""Timeouts that fire in one order everywhere: by deadline, then kind, then key (MESSIAHS 6.1)."""

import heapq
from collections.abc import Iterator
from enum import IntEnum

from messiahs.core.model.ids import ClaimId, MessageId, SystemId, TaskId
from messiahs.core.model.instants import Instant


class TimerKind(IntEnum):
    """What a timeout is for; its key is of the type that the comment names."""

    OUTPUT = 1  # SystemId, the own one: advertise to every neighbor (an output timeout)
    CHANGE = 2  # SystemId, the own one: advertise what changed
    INPUT = 3  # SystemId: a neighbor was silent for too long (an input timeout)
    SEARCH = 4  # MessageId of our ask: the neighbor that we asked is silent
    SEEN = 5  # SearchId: a search is over wherever it still may be
    ROUND = 6  # int, the number of a shape: look again for places
    DEADLINE = 7  # TaskId of a submission: what still waits is denied
    HELD_LEASE = 8  # ClaimId at the origin: its attempts are lost
    FETCH = 9  # TaskId at the origin: try again to bring outputs home
    RESEND = 10  # ClaimId at the origin: send tasks again that may not have arrived
    RENEWAL = 11  # ClaimId at the executor: renew the lease
    GRANTED_LEASE = 12  # ClaimId at the executor: its attempts must end
    IDLE = 13  # ClaimId at the executor: places that nobody uses
    STATUS = 14  # ClaimId at the executor: report what has started
    QUERY = 15  # ClaimId at the origin: ask what has become of it
    LOOK = 16  # SystemId, the own one: look what the owner's rules want of the tasks that run
    ASK = 17  # int, the place of an ask in the policy: consider to ask others for tasks
    OFFER = 18  # SearchId of a task_request: tasks that were offered to its sender and still run here stay
    KILL = 22  # ClaimId at the origin: kill again what was cancelled
    LIMIT = 23  # TaskId at the origin: it should have ended by its time limit
    TELL = 19  # SystemId, the own one: tell further children what is new
    RESERVATION = 20  # SystemId, the own one: see whether a reservation was used, or is over


TimerKey = SystemId | MessageId | TaskId | ClaimId | int | bytes


class Timers:
    """A mutable set of timeouts: at most one for each kind and key."""

    def __init__(self) -> None:
        self._deadlines: dict[tuple[TimerKind, TimerKey], Instant] = {}
        # Superseded entries stay in the heap until they surface or outnumber the live ones.
        self._heap: list[tuple[Instant, TimerKind, TimerKey]] = []

    def set(self, kind: TimerKind, key: TimerKey, /, at: Instant) -> None:
        """Fire at `at`, in place of an earlier deadline of the same kind and key."""
        if self._deadlines.get((kind, key)) == at:
            return
        self._deadlines[kind, key] = at
        heapq.heappush(self._heap, (at, kind, key))
        if len(self._heap) > 2 * len(self._deadlines) + 64:
            self._heap = [(deadline, *place) for place, deadline in self._deadlines.items()]
            heapq.heapify(self._heap)

    def is_set(self, kind: TimerKind, key: TimerKey, /) -> bool:
        """Say whether a timeout waits."""
        return (kind, key) in self._deadlines

    def deadline_of(self, kind: TimerKind, key: TimerKey, /) -> Instant | None:
        """Give when a timeout fires; None if there is none."""
        return self._deadlines.get((kind, key))

    def cancel(self, kind: TimerKind, key: TimerKey, /) -> None:
        """Forget a timeout, if there is one."""
        self._deadlines.pop((kind, key), None)

    def waiting(self) -> Iterator[tuple[TimerKind, TimerKey, Instant]]:
        """Give every timeout with its deadline; the order says nothing."""
        return ((kind, key, deadline) for (kind, key), deadline in self._deadlines.items())

    def next_deadline(self) -> Instant | None:
        """Give the earliest deadline."""
        self._drop_superseded()
        return self._heap[0][0] if self._heap else None

    def due(self, now: Instant) -> Iterator[tuple[TimerKind, TimerKey]]:
        """Take out each timeout due by `now`, in order; those that are set meanwhile are included."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, kind, key = heapq.heappop(self._heap)
            del self._deadlines[kind, key]
            yield kind, key

    def _drop_superseded(self) -> None:
        while self._heap:
            deadline, kind, key = self._heap[0]
            if self._deadlines.get((kind, key)) == deadline:
                return
            heapq.heappop(self._heap)
