"""Requests that read much: many of one account keep no other account waiting."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest

from messiahs.daemon.api.paced_handlers import InThread, paced
from messiahs.daemon.host.reading_turns import ReadingTurns
from messiahs.daemon.host.turns import QUANTUM_NS
from messiahs.daemon.host.user_turns import UserTurns
from tests.unit.daemon.api.free_turns import free_turns

ANN, EVE = 1_001, 1_002
T = TypeVar("T")


class Reads:
    """Reads in threads that end once `may_end` is set (mutable)."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.has_begun = threading.Event()
        self.begun: list[int] = []
        """By whom, in their order."""
        self.most = 0
        """The most at once."""
        self._now = 0
        self._lock = threading.Lock()

    def of(self, uid: int) -> int:
        """Read as a user."""
        with self._lock:
            self.begun.append(uid)
            self._now += 1
            self.most = max(self.most, self._now)
        self.has_begun.set()
        self.may_end.wait()
        with self._lock:
            self._now -= 1
        return uid


def run(scene: Coroutine[None, None, T]) -> T:
    """Run with a thread for each read, in which those begin that need not wait."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(ThreadPoolExecutor(64))
        return runner.run(scene)


async def until_others_have_begun() -> None:
    """Wait until all handlers have gone on, and the threads that these have begun."""
    for _ in range(50):
        await asyncio.sleep(0)
    await asyncio.to_thread(int)


async def reading(uid: int, reads: Reads) -> int:
    return await InThread(partial(reads.of, uid))


def test_beside_many_readers_of_one_account_another_one_has_the_turn_after_the_next() -> None:
    async def scene() -> list[str]:
        turns, had = ReadingTurns(), []

        async def read(name: str, uid: int, *, pieces: int) -> None:
            for _ in range(pieces):
                async with turns.turn(uid, first=partial(asyncio.sleep, 0)):
                    had.append(name)
                    await asyncio.sleep(0)

        many = [asyncio.create_task(read("many", 1, pieces=1)) for _ in range(1_000)]
        await asyncio.sleep(0)
        await read("other", 2, pieces=3)
        begun = had.copy()
        await asyncio.gather(*many)
        assert had.count("many") == 1_000
        return begun

    begun = asyncio.run(scene())
    assert begun.count("other") == 3
    assert begun.count("many") <= 8


def test_nobody_else_waits_for_what_an_account_waits_for_first() -> None:
    async def scene() -> None:
        turns, had = ReadingTurns(), []

        async def look(uid: int, pause_seconds: float) -> None:
            async with turns.turn(uid, first=partial(asyncio.sleep, pause_seconds)):
                had.append(uid)

        waiting = [asyncio.create_task(look(1, 3_600.0)) for _ in range(10)]
        await asyncio.sleep(0)
        for _ in range(5):
            await look(2, 0.0)
        assert had == [2] * 5
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(scene())


def test_however_many_requests_read_there_is_one_thread_and_accounts_alternate() -> None:
    async def scene(reads: Reads) -> list[int]:
        turns = free_turns()
        uids = [ANN] * 20 + [EVE] * 3
        handlers = [asyncio.create_task(paced(reading(uid, reads), uid, turns=turns)) for uid in uids]
        await asyncio.to_thread(reads.has_begun.wait)
        await until_others_have_begun()
        begun = reads.begun.copy()
        reads.may_end.set()
        assert await asyncio.gather(*handlers) == uids
        return begun

    reads = Reads()
    assert run(scene(reads)) == [ANN]
    assert reads.most == 1
    assert reads.begun[:7].count(EVE) == 3


def test_a_request_that_is_cancelled_keeps_its_turn_until_its_thread_has_ended_and_pays() -> None:
    paid: list[int] = []

    class Noted(UserTurns):
        def charge_outside(self, uid: int, cost_ns: int) -> None:
            paid.append(uid)
            super().charge_outside(uid, cost_ns)

    async def scene(reads: Reads) -> None:
        turns = free_turns(Noted)
        left = asyncio.create_task(paced(reading(ANN, reads), ANN, turns=turns))
        await asyncio.to_thread(reads.has_begun.wait)
        left.cancel()
        others = [asyncio.create_task(paced(reading(uid, reads), uid, turns=turns)) for uid in (ANN, EVE)]
        await until_others_have_begun()
        begun = reads.begun.copy()
        reads.may_end.set()
        await asyncio.gather(*others)
        with pytest.raises(asyncio.CancelledError):
            await left
        assert begun == [ANN]

    run(scene(Reads()))
    assert sorted(paid) == [ANN, ANN, EVE]


def test_a_thread_begins_in_a_turn_of_its_user() -> None:
    async def scene(reads: Reads) -> None:
        turns = UserTurns(on_waiting=lambda: None, on_active=lambda: None)
        reads.may_end.set()
        assert await turns.in_thread(ANN, partial(reads.of, ANN)) == ANN
        # Nobody goes on before the next step.
        turns.charge(ANN, QUANTUM_NS)
        second = asyncio.create_task(turns.in_thread(ANN, partial(reads.of, ANN)))
        await until_others_have_begun()
        assert reads.begun == [ANN]
        work = turns.queue.next(time.monotonic_ns())
        assert work is not None
        turns.queue.finish(work)
        assert await second == ANN

    run(scene(Reads()))
