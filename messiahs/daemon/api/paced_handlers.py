"""Handlers of the local API that go on only in the turns of their users, and whose cost these bear."""

import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Generic, TypeVar

from messiahs.daemon.host.user_turns import UserTurns

T = TypeVar("T")


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
        has_failed = False
        while True:
            turn = None if has_failed else self._turns.turn_of(self._uid)
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
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - as above
                resume, has_failed = partial(self._handler.throw, error), True
            else:
                resume, has_failed = partial(self._handler.send, None), False
