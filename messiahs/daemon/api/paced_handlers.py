"""Handlers of the local API that go on only in the turns of their users, and whose cost these bear."""

import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
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
        # The traceback of an error has this frame. So this frame drops errors, and what has them, before it goes on:
        # otherwise all that the handler has would stay in memory until all garbage is collected.
        sent: object = None
        thrown: BaseException | None = None
        cost_ns = SLICE_NS
        has_failed = False
        while True:
            turn = None if has_failed else self._turns.turn_of(self._uid, cost_ns=cost_ns)
            if turn is not None:
                try:
                    yield from turn.done
                except BaseException as error:  # noqa: BLE001 - the handler gets whatever it is
                    thrown = error
            began_at = time.monotonic_ns()
            try:
                awaited = self._handler.send(sent) if thrown is None else self._handler.throw(thrown)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                sent = thrown = None
                self._turns.charge(self._uid, time.monotonic_ns() - began_at, turn=turn)
            cost_ns, has_failed = SLICE_NS, False
            if isinstance(awaited, NextSlice):
                cost_ns = awaited.cost_ns
                continue
            try:
                if isinstance(awaited, InThread):
                    sent = yield from self._turns.in_thread(self._uid, awaited.work).__await__()
                else:
                    sent = yield awaited
            except BaseException as error:  # noqa: BLE001 - as above
                thrown, has_failed = error, True
            finally:
                del awaited


async def paced(handler: Awaitable[T], uid: int, *, turns: UserTurns) -> T:
    """Run a handler, or a job that it begins, in the turns of a user."""
    return await PacedHandler(handler, uid, turns)
