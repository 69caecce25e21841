"""Handlers of the local API that go on only in the turns of their users, and whose cost these bear."""

import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from messiahs.daemon.api.json_slices import Steps
from messiahs.daemon.host.user_turns import SLICE_NS, UserTurns

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NextSlice:
    """Awaited by a handler that begins another slice, with what that is expected to cost."""

    cost_ns: int = SLICE_NS

    def __await__(self) -> Generator[object, None, None]:
        """Wait for the turn of the user: `PacedHandler` does."""
        yield self


async def in_slices(steps: Steps[T]) -> T:
    """Do work in slices of the handler that awaits it, and return its result; what costs little is no slice."""
    spent_ns = 0
    while True:
        try:
            cost_ns = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        spent_ns += cost_ns
        if spent_ns > SLICE_NS:
            await NextSlice(max(SLICE_NS, cost_ns))
            spent_ns = cost_ns


@dataclass(frozen=True, slots=True)
class InThread(Generic[T]):
    """Awaited by a handler for the result of work in a thread, in the turns of its user (`UserTurns.in_thread`)."""

    work: Callable[[], T]

    def __await__(self) -> Generator[object, Any, T]:
        """Wait for the result, which `PacedHandler` sends."""
        result: T = yield self
        return result


class PacedHandler(Generic[T]):
    """A handler to be awaited once (mutable): each of its slices waits for the turn of its user.

    A slice is what the handler does between two waits. What ends a wait with an error, such as a timeout or the end of
    this process, is passed on at once.
    """

    def __init__(self, handler: Awaitable[T], uid: int, turns: UserTurns) -> None:
        self._handler, self._uid, self._turns = handler.__await__(), uid, turns

    def __await__(self) -> Generator[object, None, T]:
        """Run the handler to its end, and return its result."""
        resume: Callable[[], object] = partial(self._handler.send, None)
        has_failed, cost_ns = False, SLICE_NS
        while True:
            turn = None if has_failed else self._turns.turn_of(self._uid, cost_ns=cost_ns)
            if turn is not None:
                try:
                    yield from turn.done
                except BaseException as error:  # noqa: BLE001 - the handler gets whatever it is
                    resume = partial(self._handler.throw, error)
            began_at = time.monotonic_ns()
            try:
                awaited = resume()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._turns.charge(self._uid, time.monotonic_ns() - began_at, turn=turn)
            cost_ns = SLICE_NS
            if isinstance(awaited, NextSlice):
                resume, has_failed, cost_ns = partial(self._handler.send, None), False, awaited.cost_ns
                continue
            try:
                result_of_wait = yield from self._wait_for(awaited)
            except BaseException as error:  # noqa: BLE001 - as above
                resume, has_failed = partial(self._handler.throw, error), True
            else:
                resume, has_failed = partial(self._handler.send, result_of_wait), False

    def _wait_for(self, awaited: object) -> Generator[object, None, object]:
        if isinstance(awaited, InThread):
            return (yield from self._turns.in_thread(self._uid, awaited.work).__await__())
        return (yield awaited)


async def paced(handler: Awaitable[T], uid: int, *, turns: UserTurns) -> T:
    """Run a handler, or a job that it begins, in the turns of a user."""
    return await PacedHandler(handler, uid, turns)
