"""Handlers that go on in the turns of their users."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from messiahs.daemon.api.paced_handlers import PacedHandler
from messiahs.daemon.host.turns import BURST_NS, QUANTUM_NS
from messiahs.daemon.host.user_turns import UserTurns
from tests.unit.daemon.api.free_turns import free_turns

ANN, EVE = 1_001, 1_002
T = TypeVar("T")


async def paced(handler: Awaitable[T], uid: int, *, turns: UserTurns) -> T:
    return await PacedHandler(handler, uid, turns)


def test_slices_of_two_users_alternate_however_many_handlers_one_of_them_has() -> None:
    seen: list[int] = []

    async def handler(turns: UserTurns, uid: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append(uid)
            # As if it had taken so long.
            turns.charge(uid, QUANTUM_NS)

    async def main() -> None:
        turns = free_turns()
        many = [paced(handler(turns, ANN), ANN, turns=turns) for _ in range(100)]
        await asyncio.gather(*many, paced(handler(turns, EVE), EVE, turns=turns))

    asyncio.run(main())
    assert seen.count(ANN) == 300
    assert max(position for position, uid in enumerate(seen) if uid == EVE) < 100


def test_the_result_and_the_errors_of_a_handler_are_those_of_the_pace() -> None:
    async def good() -> str:
        await asyncio.sleep(0)
        return "done"

    async def bad() -> str:
        raise ValueError("bad")

    async def main() -> None:
        turns = free_turns()
        assert await PacedHandler(good(), ANN, turns) == "done"
        with pytest.raises(ValueError, match="bad"):
            await PacedHandler(bad(), ANN, turns)

    asyncio.run(main())


def test_timeouts_and_cancellation_reach_a_handler_without_a_turn() -> None:
    ends: list[str] = []
    timed_out = asyncio.Event()

    async def handler() -> None:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            ends.append("timeout")
            timed_out.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")

    async def main() -> None:
        turns = UserTurns(on_waiting=lambda: None, on_active=lambda: None)
        task = asyncio.create_task(paced(handler(), ANN, turns=turns))
        await timed_out.wait()
        # From now on nobody gets a turn.
        turns.charge(ANN, BURST_NS)
        waiting = asyncio.create_task(paced(handler(), ANN, turns=turns))
        await asyncio.sleep(0)
        for each in (task, waiting):
            each.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)

    asyncio.run(main())
    assert ends == ["timeout", "cancelled"]
