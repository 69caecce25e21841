"""Handlers that go on in the turns of their users."""

import asyncio

import pytest

from messiahs.daemon.api.json_slices import Steps
from messiahs.daemon.api.paced_handlers import PacedHandler, in_slices, paced
from messiahs.daemon.host.turns import BURST_NS, QUANTUM_NS, Work
from messiahs.daemon.host.user_turns import SLICE_NS, UserTurns
from tests.unit.daemon.api.free_turns import free_turns

ANN, EVE = 1_001, 1_002


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


def test_between_slices_that_cost_much_another_user_is_served() -> None:
    seen: list[int] = []

    async def quick() -> None:
        seen.append(EVE)

    async def main() -> None:
        turns, asked = free_turns(), list[asyncio.Task[None]]()

        def steps() -> Steps[str]:
            for _ in range(10):
                yield 2 * QUANTUM_NS
                seen.append(ANN)
                # As if it had taken so long.
                turns.charge(ANN, 2 * QUANTUM_NS)
                if not asked:
                    asked.append(asyncio.create_task(paced(quick(), EVE, turns=turns)))
            return "done"

        many = [paced(in_slices(steps()), ANN, turns=turns) for _ in range(8)]
        assert await asyncio.gather(*many) == ["done"] * 8
        await asked[0]

    asyncio.run(main())
    assert seen.count(ANN) == 80
    assert seen.index(EVE) < 5


def test_work_that_costs_little_is_one_slice_with_what_follows() -> None:
    class Counted(UserTurns):
        slices = 0

        def turn_of(self, uid: int, *, cost_ns: int = SLICE_NS) -> Work[int] | None:
            self.slices += 1
            self.begin_step()
            return super().turn_of(uid, cost_ns=cost_ns)

    def steps(cost_ns: int) -> Steps[None]:
        for _ in range(20):
            yield cost_ns

    async def slices(cost_ns: int) -> int:
        turns = Counted(on_waiting=lambda: None, on_active=lambda: None)
        await paced(in_slices(steps(cost_ns)), ANN, turns=turns)
        return turns.slices

    assert asyncio.run(slices(SLICE_NS // 20)) == 1
    assert asyncio.run(slices(SLICE_NS // 2)) == 1 + 19 // 2
    assert asyncio.run(slices(SLICE_NS)) == 1 + 19
