"""How many bytes other systems may move through a module: streams at once, bytes in a second, and bytes in a day.

A rate slows streams down; what exceeds another bound is refused with a text that names this module and the bound. Among
streams of running tasks, the user who holds most gives way to others of the same neighbor (`stream_shares.py`).
"""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from messiahs.config.quantities import SIZES
from messiahs.config.settings import ByteSettings
from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer.stream_shares import Kind, Share, giving_way
from messiahs.errors import DeclinedError

PIECE_BYTES: Final = 64 << 10
"""With a rate, bytes move in pieces of at most this size, so that many streams share it evenly."""
_DAY_SECONDS: Final = 86_400.0
_SAVES_A_DAY: Final = 64
_PEERS: Final = 1_024
STALLED_SECONDS: Final = 10.0
"""A stream that gave way, and whose peer takes nothing of it, ends after this time."""


class Moved(StrEnum):
    """Which way bytes of other systems go: from here, to here, or through here on connections that are not read."""

    SENT = "sent"
    RECEIVED = "received"
    PASSED = "passed"


_WAYS: Final = {Kind.FOLLOWER: Moved.SENT, Kind.INPUT: Moved.RECEIVED, Kind.CONNECTION: Moved.PASSED}


class BudgetError(DeclinedError):
    """A system has used up what it may move through this module."""


@dataclass(slots=True)
class _Use:
    """What one system has used (mutable): bytes since `since` (by the wall clock), and streams that are open now."""

    since: float
    moved_bytes: int = 0
    unsaved_bytes: int = 0
    files: int = 0
    running: dict["Stream", Share] = field(default_factory=dict)
    """The streams of running tasks, the oldest first."""
    free_at: float = 0.0
    """When its next bytes may move (by the monotonic clock)."""


class Budgets:
    """The bounds of one module, and what others have used of them; methods can be called in any thread.

    Bytes of the day are stored in a file, of which a crash loses at most a small share.
    """

    def __init__(
        self,
        limits: ByteSettings,
        *,
        own: SystemId,
        file: Path,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._limits, self._own, self._file, self._wall_clock = limits, own, file, wall_clock
        self._lock = threading.Lock()
        self._uses: dict[SystemId, _Use] = {}
        self._moved: Counter[tuple[SystemId, Moved]] = Counter()
        with suppress(OSError, ValueError, TypeError, AttributeError):
            for peer, (since, moved) in json.loads(file.read_bytes()).items():
                self._uses[SystemId(peer)] = _Use(since=float(since), moved_bytes=int(moved))

    @property
    def piece_bytes(self) -> int | None:
        """How many bytes may move at once; None: any number."""
        return None if self._limits.rate_bytes is None else PIECE_BYTES

    @property
    def moved_bytes(self) -> dict[tuple[SystemId, Moved], int]:
        """The bytes that each system has moved since the start; of many, the latest ones count under an empty name."""
        with self._lock:
            return dict(self._moved)

    def open(self, peer: SystemId, way: Moved, /) -> "Stream":
        """Count a stream of files until it is closed; `BudgetError` if the system has too many."""
        with self._lock:
            use = self._use_of(peer)
            if use.files >= self._limits.streams:
                raise self._too_many(peer, use.files, "files")
            self._check_day(peer, use, 1)
            use.files += 1
        return Stream(self, peer, way)

    def open_running(self, peer: SystemId, share: Share) -> "Stream":
        """Count a stream of a running task until it is closed or has to give way to another one; `BudgetError`.

        It counts among its like only: it may be open for days, and must not keep files from moving. It belongs to the
        event loop and to the present task there.
        """
        stream, ended = Stream(self, peer, _WAYS[share.kind], is_running=True), None
        with self._lock:
            use = self._use_of(peer)
            self._check_day(peer, use, 1)
            if len(use.running) >= self._limits.streams:
                ended = giving_way(use.running, to=share)
                if ended is None:
                    raise self._too_many(peer, len(use.running), "running tasks")
                del use.running[ended]
            use.running[stream] = share
        if ended is not None:
            ended.give_way()
        return stream

    def check(self, peer: SystemId, size_bytes: int) -> None:
        """Raise a `BudgetError` if a system may not move so many bytes today."""
        with self._lock:
            self._check_day(peer, self._use_of(peer), size_bytes)

    def count(self, peer: SystemId, size_bytes: int, *, way: Moved) -> float:
        """Count bytes that a system moves, and return in how many seconds the next may follow; `BudgetError`."""
        with self._lock:
            use = self._use_of(peer)
            self._check_day(peer, use, size_bytes)
            known = peer if (peer, way) in self._moved or len(self._moved) < _PEERS else SystemId("")
            self._moved[known, way] += size_bytes
            use.moved_bytes += size_bytes
            use.unsaved_bytes += size_bytes
            if self._limits.daily_bytes is not None and use.unsaved_bytes > self._limits.daily_bytes // _SAVES_A_DAY:
                self._save()
            if self._limits.rate_bytes is None:
                return 0.0
            now = time.monotonic()
            use.free_at = max(use.free_at, now) + size_bytes / self._limits.rate_bytes
            return use.free_at - now

    async def wait_in_loop(self, peer: SystemId, size_bytes: int) -> None:
        """Count bytes that come without a stream, and wait in the event loop until they may move; `BudgetError`."""
        await asyncio.sleep(self.count(peer, size_bytes, way=Moved.RECEIVED))

    def close(self, peer: SystemId, stream: "Stream", *, is_running: bool) -> None:
        """Count a stream no more."""
        with self._lock:
            use = self._use_of(peer)
            if is_running:
                use.running.pop(stream, None)
            else:
                use.files -= 1
            if self._limits.daily_bytes is not None and use.unsaved_bytes:
                self._save()

    def given_way(self, peer: SystemId) -> BudgetError:
        """Return the reason of a stream that gave way."""
        text = f"{self._own}: a stream of {peer} ended, because streams of running tasks are short and another user"
        return BudgetError(f"{text} holds fewer", is_brief=True)

    def _too_many(self, peer: SystemId, count: int, kind: str) -> BudgetError:
        return BudgetError(f"{self._own}: {peer} has {count} streams of {kind} open, as many as it may", is_brief=True)

    def _use_of(self, peer: SystemId) -> _Use:
        now = self._wall_clock()
        use = self._uses.get(peer)
        if use is None:
            if len(self._uses) >= _PEERS:
                idle = [each for each, found in self._uses.items() if not (found.files or found.running)]
                for each in sorted(idle, key=lambda other: self._uses[other].moved_bytes)[: _PEERS // 2]:
                    del self._uses[each]
            use = self._uses[peer] = _Use(since=now)
        elif not use.since <= now < use.since + _DAY_SECONDS:
            use.since, use.moved_bytes = now, 0
        return use

    def _check_day(self, peer: SystemId, use: _Use, size_bytes: int) -> None:
        daily = self._limits.daily_bytes
        if daily is not None and use.moved_bytes + size_bytes > daily:
            hours = (use.since + _DAY_SECONDS - self._wall_clock()) / 3_600
            # In the unit of the topology.
            step, unit = max((step, unit) for unit, step in SIZES.items() if daily % step == 0)
            moved = f"{use.moved_bytes / step:.1f}".removesuffix(".0")
            raise BudgetError(
                f"{self._own}: {peer} may move {daily // step}{unit} in a day, and has moved {moved}{unit}; "
                f"it can continue in {hours:.1f} h"
            )

    def _save(self) -> None:
        for use in self._uses.values():
            use.unsaved_bytes = 0
        known = {peer: (use.since, use.moved_bytes) for peer, use in self._uses.items() if use.moved_bytes}
        with suppress(OSError):
            write_whole(self._file, json.dumps(known).encode(), mode=0o600)


class Stream:
    """One stream of a system (mutable); must be closed. One of a running task may have to give way to another one."""

    def __init__(self, budgets: Budgets, peer: SystemId, way: Moved, *, is_running: bool = False) -> None:
        self._budgets, self._peer, self._way, self._is_running = budgets, peer, way, is_running
        self._closed = threading.Event()
        self._has_given_way = False
        self._waits: asyncio.Timeout | None = None
        self._served_by = asyncio.current_task() if is_running else None

    @property
    def piece_bytes(self) -> int | None:
        """How many bytes may move at once; None: any number."""
        return self._budgets.piece_bytes

    def announce(self, size_bytes: int) -> None:
        """Raise a `BudgetError` at once if so many bytes may not move."""
        self._budgets.check(self._peer, size_bytes)

    def wait_for(self, size_bytes: int) -> None:
        """Count bytes, and wait in this thread until they may move, or the stream is closed; `BudgetError`."""
        delay_seconds = self.count(size_bytes)
        if delay_seconds > 0:
            self._closed.wait(delay_seconds)

    def count(self, size_bytes: int) -> float:
        """Count bytes, and return in how many seconds the next may follow; `BudgetError`."""
        return self._budgets.count(self._peer, size_bytes, way=self._way)

    async def wait_in_loop(self, size_bytes: int) -> None:
        """Count bytes, and wait in the event loop until they may move; `BudgetError`."""
        await asyncio.sleep(self.count(size_bytes))

    @asynccontextmanager
    async def unless_it_gives_way(self) -> AsyncIterator[None]:
        """Run a block to its end, or until the stream gives way: then a `BudgetError`. One block runs at a time."""
        if self._has_given_way:
            raise self._budgets.given_way(self._peer)
        try:
            async with asyncio.timeout(None) as self._waits:
                yield
        except TimeoutError as error:
            if self._has_given_way:
                raise self._budgets.given_way(self._peer) from error
            raise
        finally:
            self._waits = None

    def give_way(self) -> None:
        """End what waits in a block; whoever serves the stream must close it, or is cancelled, with the reason."""
        self._has_given_way = True
        loop = asyncio.get_running_loop()
        if self._waits is not None:
            self._waits.reschedule(loop.time())
        loop.call_later(STALLED_SECONDS, self._cut)

    def close(self) -> None:
        """End the stream; repeated calls are allowed."""
        if not self._closed.is_set():
            self._closed.set()
            self._budgets.close(self._peer, self, is_running=self._is_running)

    def _cut(self) -> None:
        if not self._closed.is_set() and self._served_by is not None:
            # With the text, which the peer learns.
            self._served_by.cancel(str(self._budgets.given_way(self._peer)))
