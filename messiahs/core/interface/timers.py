"""Timeouts, which fire in one order on every host: by deadline, then kind, then key (MESSIAHS 6.1).

Rounds of searching fire last of those that are due: users may have caused thousands of them, and the timeouts of the
module itself do not wait for these.
"""

import heapq
from collections.abc import Iterator
from enum import IntEnum
from typing import Literal, cast, overload

from messiahs.core.model.ids import ClaimId, MessageId, SearchId, SystemId, TaskId
from messiahs.core.model.instants import Instant


class TimerKind(IntEnum):
    """The purpose of a timeout, and the subject of its key; `Timeout` gives the type of the key."""

    OUTPUT = 1  # the own system: advertise to every neighbor (an output timeout)
    CHANGE = 2  # the own system: advertise what changed
    INPUT = 3  # a neighbor that was silent for too long (an input timeout)
    SEARCH = 4  # a forwarded request: the neighbor has not answered
    SEEN = 5  # a search that has ended everywhere by now
    ROUND = 6  # the number of a shape: start another round
    DEADLINE = 7  # a submission: tasks still waiting are denied
    HELD_LEASE = 8  # a claim at the origin: its attempts are lost
    FETCH = 9  # a task at the origin: try again to fetch outputs
    RESEND = 10  # a claim at the origin: send tasks again that may not have arrived
    RENEWAL = 11  # a claim at the executor: renew the lease
    GRANTED_LEASE = 12  # a claim at the executor: its attempts must end
    IDLE = 13  # a claim at the executor: free places that stay unused
    STATUS = 14  # a claim at the executor: report attempts that started or ended
    QUERY = 15  # a claim at the origin: ask for its status
    OWNER_RULES = 16  # the own system: evaluate the owner rules over running tasks
    ASK = 17  # the index of an `ask` rule of the policy: evaluate it
    OFFER = 18  # a task_request: withdraw the offers that were not taken
    SUM = 19  # the own system: continue a sum, or sending it to children
    RESERVATION = 20  # the own system: check whether a reservation was used, or has expired
    KILL = 22  # a claim at the origin: repeat the kill of cancelled tasks
    LIMIT = 23  # a task at the origin: it should have ended by its time limit
    AVOIDED = 24  # the own system: an executor is no longer avoided
    AUDIT = 25  # the own system: store rows of the audit log
    LEAVING = 26  # a neighbor whose link ends: it has not answered that it is done
    DRAIN = 27  # the own system: revoke what still runs
    POLL = 28  # a neighbor: its last vectors are old enough to ask for new ones
    HANDOVER = 29  # the own system: the parent that counted it has not answered
    CYCLE = 30  # the own system: look for cycles of parents
    SIBLING_HELD = 31  # an assigned sibling that has left: it may be assigned again
    SIBLING_ASKED = 32  # a child that has asked for siblings: it may ask again
    SIBLING_ASSIGNED = 33  # a parent that has assigned siblings: it may do so again
    LEDGER = 34  # the own system: enter and report what claims have used
    RETENTION = 35  # the own system: forget tasks that ended long ago
    LENDING = 36  # the own system: the position of the owner's dial ends


_OfSystem = Literal[
    TimerKind.OUTPUT,
    TimerKind.CHANGE,
    TimerKind.INPUT,
    TimerKind.OWNER_RULES,
    TimerKind.SUM,
    TimerKind.RESERVATION,
    TimerKind.AVOIDED,
    TimerKind.AUDIT,
    TimerKind.LEAVING,
    TimerKind.DRAIN,
    TimerKind.POLL,
    TimerKind.HANDOVER,
    TimerKind.CYCLE,
    TimerKind.SIBLING_HELD,
    TimerKind.SIBLING_ASKED,
    TimerKind.SIBLING_ASSIGNED,
    TimerKind.LEDGER,
    TimerKind.RETENTION,
    TimerKind.LENDING,
]
_OfMessage = Literal[TimerKind.SEARCH]
_OfSearch = Literal[TimerKind.SEEN, TimerKind.OFFER]
_OfNumber = Literal[TimerKind.ROUND, TimerKind.ASK]
_OfTask = Literal[TimerKind.DEADLINE, TimerKind.FETCH, TimerKind.LIMIT]
_OfClaim = Literal[
    TimerKind.HELD_LEASE,
    TimerKind.RESEND,
    TimerKind.RENEWAL,
    TimerKind.GRANTED_LEASE,
    TimerKind.IDLE,
    TimerKind.STATUS,
    TimerKind.QUERY,
    TimerKind.KILL,
]
Timeout = (
    tuple[_OfSystem, SystemId]
    | tuple[_OfMessage, MessageId]
    | tuple[_OfSearch, SearchId]
    | tuple[_OfNumber, int]
    | tuple[_OfTask, TaskId]
    | tuple[_OfClaim, ClaimId]
)
"""A kind with a key of its type."""

TimerKey = SystemId | MessageId | TaskId | ClaimId | int | bytes


class _Heap(list[tuple[Instant, TimerKind, TimerKey]]):
    """Deadlines of timeouts (mutable); superseded ones stay until they surface or outnumber the live ones."""


class Timers:
    """A mutable set of timeouts: at most one for each kind and key."""

    def __init__(self) -> None:
        self._deadlines: dict[tuple[TimerKind, TimerKey], Instant] = {}
        self._own, self._rounds = _Heap(), _Heap()

    @overload
    def set(self, kind: _OfSystem, key: SystemId, /, at: Instant) -> None: ...
    @overload
    def set(self, kind: _OfMessage, key: MessageId, /, at: Instant) -> None: ...
    @overload
    def set(self, kind: _OfSearch, key: SearchId, /, at: Instant) -> None: ...
    @overload
    def set(self, kind: _OfNumber, key: int, /, at: Instant) -> None: ...
    @overload
    def set(self, kind: _OfTask, key: TaskId, /, at: Instant) -> None: ...
    @overload
    def set(self, kind: _OfClaim, key: ClaimId, /, at: Instant) -> None: ...
    def set(self, kind: TimerKind, key: TimerKey, /, at: Instant) -> None:
        """Set a timeout for `at`, in place of an earlier deadline of the same kind and key."""
        if self._deadlines.get((kind, key)) == at:
            return
        self._deadlines[kind, key] = at
        heap = self._heap_of(kind)
        heapq.heappush(heap, (at, kind, key))
        if len(heap) > 2 * len(self._deadlines) + 64:
            live = self._deadlines.items()
            heap[:] = [(deadline, *place) for place, deadline in live if self._heap_of(place[0]) is heap]
            heapq.heapify(heap)

    def is_set(self, kind: TimerKind, key: TimerKey, /) -> bool:
        """Return whether a timeout is set."""
        return (kind, key) in self._deadlines

    def deadline_of(self, kind: TimerKind, key: TimerKey, /) -> Instant | None:
        """Return when a timeout fires; None if it is not set."""
        return self._deadlines.get((kind, key))

    def cancel(self, kind: TimerKind, key: TimerKey, /) -> None:
        """Remove a timeout, if it is set."""
        self._deadlines.pop((kind, key), None)

    def waiting(self) -> Iterator[tuple[TimerKind, TimerKey, Instant]]:
        """Yield every timeout with its deadline, in no particular order."""
        return ((kind, key, deadline) for (kind, key), deadline in self._deadlines.items())

    def next_deadline(self) -> Instant | None:
        """Return the earliest deadline; None without timeouts."""
        return min((heap[0][0] for heap in self._heaps() if heap), default=None)

    def first_due(self, now: Instant) -> Timeout | None:
        """Return the timeout that fires next of those that are due by `now`; None if there is none."""
        heap = self._due(now)
        # `set` accepts no other combination.
        return None if heap is None else cast("Timeout", heap[0][1:])

    def take_due(self, now: Instant) -> Timeout | None:
        """Remove and return what `first_due` returns."""
        heap = self._due(now)
        if heap is None:
            return None
        _, kind, key = heapq.heappop(heap)
        del self._deadlines[kind, key]
        return cast("Timeout", (kind, key))

    def _due(self, now: Instant) -> _Heap | None:
        return next((heap for heap in self._heaps() if heap and heap[0][0] <= now), None)

    def _heap_of(self, kind: TimerKind) -> _Heap:
        return self._rounds if kind is TimerKind.ROUND else self._own

    def _heaps(self) -> tuple[_Heap, _Heap]:
        """Return both, with a live entry first in each."""
        for heap in (self._own, self._rounds):
            while heap and self._deadlines.get(heap[0][1:]) != heap[0][0]:
                heapq.heappop(heap)
        return self._own, self._rounds
