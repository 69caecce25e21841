"""Scans of many files on behalf of neighbors: one at a time for each neighbor."""

import asyncio
from contextlib import suppress

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer import scan_turns
from messiahs.daemon.transfer.scan_turns import ScanTurns

EVE, ADA = SystemId("eve"), SystemId("ada")


def test_scans_of_one_neighbor_run_one_at_a_time_and_those_of_another_do_not_wait() -> None:
    async def act() -> None:
        turns, under_way, go_on = ScanTurns(), list[SystemId](), asyncio.Event()

        async def scan(neighbor: SystemId) -> None:
            async with turns.turn(neighbor):
                assert neighbor not in under_way
                under_way.append(neighbor)
                await go_on.wait()
                under_way.remove(neighbor)

        first = [asyncio.create_task(scan(EVE)) for _ in range(4)]
        while not under_way:
            await asyncio.wait(first, timeout=0)
        others = asyncio.create_task(scan(ADA))
        while ADA not in under_way:
            await asyncio.wait({others}, timeout=0)
        assert sorted(under_way) == [ADA, EVE]
        # A stream that ends while it waits leaves the turn to the others.
        first.pop().cancel()
        go_on.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*first, others)

    asyncio.run(act())


def test_a_pause_is_three_times_as_long_as_the_scan_and_at_most_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [100.0], ScanTurns()
    monkeypatch.setattr(scan_turns, "monotonic", lambda: now[0])

    async def pause_after(seconds: float, *, is_cancelled: bool = False) -> float:
        """Return how long the neighbor waits after a scan; it begins when the pause before it has ended."""
        with suppress(asyncio.CancelledError):
            async with turns.turn(EVE):
                now[0] += seconds
                if is_cancelled:
                    raise asyncio.CancelledError
        pause = turns._turns[EVE].free_at - now[0]
        now[0] += pause
        return pause

    async def act() -> list[float]:
        return [await pause_after(2), await pause_after(60), await pause_after(0, is_cancelled=True)]

    assert asyncio.run(act()) == [6, 10, 10]
