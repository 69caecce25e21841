"""Whose work is done next, by what it costs: of several neighbors, or of several local users (MESSIAHS 2: autonomy).

Those who share, the *sources*, do so by deficit round robin (Shreedhar and Varghese, 1995). The cost of an event is
known only afterwards, so a source that has used more than its quantum pays with its next turns. The same cost is taken
from a bucket of tokens. A source whose bucket is empty waits while others are active who are within theirs: it is
*throttled*.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, TypeVar

from messiahs.core.interface.events import Event
from messiahs.core.model.instants import MICROSECOND, MILLISECOND, SECOND
from messiahs.daemon.audit.entries import Caller

QUANTUM_NS: Final = 1 * MILLISECOND
"""What one source may use in a round."""
REFILL_SHARE: Final = 4
"""What was taken from a bucket returns in this multiple of the time."""
BURST_NS: Final = 250 * MILLISECOND
"""A full bucket."""
DEBT_NS: Final = 100 * MILLISECOND
"""The most that a source owes, however much it has used while nobody else was active; only one message costs more."""
COSTLY_NS: Final = 1 * SECOND
"""The most that a source owes for one message, such as one that thousands of rows follow from."""
ACTIVE_NS: Final = 250 * MILLISECOND
"""Somebody counts as active for so long after a message or a request."""
NAMED_NS: Final = 1 * SECOND
"""A source that is throttled for so long is reported."""
_MESSAGE_NS: Final = 100 * MICROSECOND
_NS_OF_1_KIB: Final = 5 * MICROSECOND
"""What receiving costs outside of the event loop, and in it before anything is decoded."""
_ACCOUNTS: Final = 64

S = TypeVar("S", bound=Hashable)


class Users(Enum):
    """Stands for all local users, as somebody who is active, among neighbors."""

    LOCAL = "local users"


@dataclass(slots=True, kw_only=True, eq=False)
class Work(Generic[S]):
    """The events of one message, decoded one by one when their turn comes (None: a part that is no event).

    `done` is set when the last one is handled. `by` is the local user who causes them. Work that begins only then is
    expected to cost `begun_ns`.
    """

    source: S
    events: Iterator[Event | None]
    done: asyncio.Future[None]
    by: Caller | None = None
    begun_ns: int = 0


@dataclass(slots=True, kw_only=True)
class _Account(Generic[S]):
    """What waits of a source, and what it has used (mutable)."""

    works: deque[Work[S]] = field(default_factory=deque)
    deficit_ns: int = 0
    bucket_ns: int = BURST_NS
    filled_at: int
    throttled_at: int | None = None
    """Since when it has been made to wait; None once its bucket is full again."""
    is_named: bool = False


class Turns(Generic[S]):
    """The works of all sources that wait to be done (mutable). Instants are monotonic nanoseconds.

    Works of one source are done in their order. Belongs to the event loop.
    """

    def __init__(self, on_throttled: Callable[[S], None]) -> None:
        """Report a source that is throttled for long, once until its bucket is full again."""
        self._on_throttled = on_throttled
        self._accounts: dict[S, _Account[S]] = {}
        self._ring: deque[S] = deque()
        """Sources of which something waits; the turn is the first one's."""
        self._active: dict[S | Users, int] = {}
        """The latest two of those who are within their buckets, and when they were last active."""
        self._tidy_above = _ACCOUNTS

    def add_message(self, work: Work[S], now: int, *, size_bytes: int) -> None:
        """Queue a message behind those of its source that wait, and charge its bytes."""
        self.add(work, now)
        self.charge(work.source, _MESSAGE_NS + size_bytes * _NS_OF_1_KIB // 1024, now)

    def add(self, work: Work[S], now: int) -> None:
        """Queue a work behind those of its source that wait."""
        account = self._account(work.source, now)
        if account.bucket_ns > 0:
            self.note_active(work.source, now)
        if not account.works:
            self._ring.append(work.source)
        account.works.append(work)

    def charge(self, source: S, cost_ns: int, now: int) -> None:
        """Take what a source has used from its deficit and its bucket; what was charged too much returns (negative)."""
        account = self._account(source, now)
        account.deficit_ns = min(QUANTUM_NS, max(-DEBT_NS, account.deficit_ns - cost_ns))
        least_ns = min(account.bucket_ns, -max(DEBT_NS, min(COSTLY_NS, cost_ns)))
        account.bucket_ns = min(BURST_NS, max(least_ns, account.bucket_ns - cost_ns))

    def may_pass(self, source: S, now: int) -> bool:
        """Return whether a source need not queue: nothing waits, and it is not throttled. It counts as active."""
        if self._ring or not self._may_go(source, now):
            return False
        if self._accounts[source].bucket_ns > 0:
            self.note_active(source, now)
        return True

    def next(self, now: int) -> Work[S] | None:
        """Return the work whose turn it is, which stays in its queue; None if nothing waits that may be done now."""
        while True:
            for _ in range(len(self._ring)):
                account = self._accounts[self._ring[0]]
                if account.deficit_ns > 0 and self._may_go(self._ring[0], now):
                    return account.works[0]
                self._ring.rotate(-1)
            waiting = [self._accounts[each] for each in self._ring if self._may_go(each, now)]
            if not waiting:
                return None
            # Several rounds at once, if all of them owe more than their quantum.
            rounds = min(1 - each.deficit_ns // QUANTUM_NS for each in waiting)
            for each in waiting:
                each.deficit_ns = min(QUANTUM_NS, each.deficit_ns + rounds * QUANTUM_NS)

    def finish(self, work: Work[S], error: Exception | None = None) -> None:
        """Remove the first work of its source: its last event was handled, or reading it failed."""
        account = self._accounts[work.source]
        assert account.works[0] is work
        account.works.popleft()
        if not account.works:
            self._ring.remove(work.source)
            # Unused parts of turns are not saved; what was used too much stays.
            account.deficit_ns = min(account.deficit_ns, 0)
        if work.done.done():
            return
        if error is None:
            work.done.set_result(None)
        else:
            work.done.set_exception(error)

    def ready_in(self, now: int) -> int | None:
        """Return in how many nanoseconds some work may be done: 0 for now, None if nothing waits."""
        return min((self._wait_ns(each, now) for each in self._ring), default=None)

    def note_active(self, source: S | Users, now: int) -> None:
        """Let those wait whose buckets are empty: somebody else who is within theirs is active."""
        self._active.pop(source, None)
        self._active[source] = now
        if len(self._active) > 2:  # noqa: PLR2004 - for each source, one of the latest two is somebody else
            del self._active[next(iter(self._active))]

    def throttled_at(self, source: S, now: int) -> int | None:
        """Return since when a source has been throttled; None if its bucket has been full since."""
        return self._account(source, now).throttled_at if source in self._accounts else None

    @property
    def known(self) -> int:
        """The number of sources whose use is remembered."""
        return len(self._accounts)

    def _may_go(self, source: S, now: int) -> bool:
        if self._wait_ns(source, now) == 0:
            return True
        account = self._accounts[source]
        if account.throttled_at is None:
            account.throttled_at = now
        if now - account.throttled_at >= NAMED_NS and not account.is_named:
            account.is_named = True
            self._on_throttled(source)
        return False

    def _wait_ns(self, source: S, now: int) -> int:
        """Return how long a source has to wait: until its bucket is not empty, or nobody else is active."""
        account = self._account(source, now)
        if account.bucket_ns > 0:
            return 0
        active_at = max((at for each, at in self._active.items() if each != source), default=now - ACTIVE_NS)
        return max(0, min(active_at + ACTIVE_NS - now, (1 - account.bucket_ns) * REFILL_SHARE))

    def _account(self, source: S, now: int) -> _Account[S]:
        """Return the account of a source, its bucket filled up to now."""
        account = self._accounts.get(source)
        if account is None:
            self._tidy(now)
            account = self._accounts[source] = _Account(filled_at=now)
        filled = (now - account.filled_at) // REFILL_SHARE
        account.bucket_ns += filled
        account.filled_at += filled * REFILL_SHARE
        if account.bucket_ns >= BURST_NS:
            account.bucket_ns, account.throttled_at, account.is_named = BURST_NS, None, False
        return account

    def _tidy(self, now: int) -> None:
        """Forget sources that would begin anew as they are, whenever twice as many are known as before."""
        if len(self._accounts) < self._tidy_above:
            return
        for source in list(self._accounts):
            account = self._account(source, now)
            if not account.works and account.bucket_ns == BURST_NS:
                del self._accounts[source]
        self._tidy_above = max(_ACCOUNTS, 2 * len(self._accounts))
