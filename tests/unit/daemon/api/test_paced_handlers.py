"""Handlers that go on in the turns of their users."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from messiahs.daemon.api.json_slices import Steps
from messiahs.daemon.api.paced_handlers import InThread, PacedHandler, in_slices, paced
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


class Held:
    """What a handler has in memory."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Let nothing but its last reference free memory within the block."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def failing() -> "asyncio.Future[None]":
    """Return what fails soon, as a write does whose client has hung up."""
    waiting = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waiting.set_exception, ConnectionResetError())
    return waiting


def cancel_soon() -> None:
    """Cancel the present task when it waits."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)


async def cut_off() -> None:
    """Fail while waiting."""
    await failing()


async def failed_thread() -> None:
    """Fail in a thread."""

    def fail() -> None:
        raise ConnectionResetError

    await InThread(fail)


async def cancelled() -> None:
    """Be cancelled while waiting."""
    cancel_soon()
    await asyncio.Event().wait()


async def waiting_for_a_turn() -> None:
    """Be cancelled while waiting for a turn."""
    cancel_soon()
    await in_slices(step for step in (2 * QUANTUM_NS, 2 * QUANTUM_NS))


@pytest.mark.parametrize("fail", [cut_off, failed_thread, cancelled, waiting_for_a_turn])
def test_what_a_failed_handler_had_in_memory_is_freed_at_once(fail: Callable[[], Awaitable[None]]) -> None:
    held: list[weakref.ref[Held]] = []

    async def handler() -> None:
        had = Held()
        held.append(weakref.ref(had))
        await fail()

    async def main() -> None:
        turns = free_turns()
        with without_collection():
            ended = await asyncio.gather(paced(handler(), ANN, turns=turns), return_exceptions=True)
            assert isinstance(ended[0], ConnectionResetError | asyncio.CancelledError)
            del ended
            # The task of the handler goes with its last callback.
            await asyncio.sleep(0)
            assert [each() for each in held] == [None]

    asyncio.run(main())
