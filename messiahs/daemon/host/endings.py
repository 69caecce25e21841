"""Which tasks ended last: a feed for clients that wait for any of thousands of tasks."""

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Final

from messiahs.core.model.ids import TaskId

REMEMBERED: Final = 65_536
PAGE: Final = 8_192
_EPOCH_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPage:
    """Tasks that ended after a cursor, oldest first, and the cursor behind the last of them.

    An array (`member` 0) stands for any of its members, since those that never ran end together. With `has_gap` others
    ended before them, or may have: whoever waits asks for the state of every task.
    """

    tasks: tuple[TaskId, ...]
    cursor: str
    has_gap: bool


class Endings:
    """The latest endings of a module's own tasks in their order (mutable).

    Nothing is stored: a cursor of an earlier process is answered with a gap. Belongs to the event loop.
    """

    def __init__(self) -> None:
        self._epoch = os.urandom(_EPOCH_BYTES).hex()
        self._tasks: deque[TaskId] = deque(maxlen=REMEMBERED)
        self._count = 0
        self._next = asyncio.Event()

    def note(self, task: TaskId) -> None:
        """Append an ending, and wake all who wait for the next one."""
        self._tasks.append(task)
        self._count += 1
        self._next.set()
        self._next = asyncio.Event()

    async def after(self, cursor: str, seconds: float) -> EndedPage:
        """Return what ended after a cursor; if nothing has, what ends next, or nothing after some seconds.

        An empty cursor is answered at once with the present one, without tasks.
        """
        if not cursor:
            return self._page(self._count, self._count, has_gap=False)
        number = self._number_in(cursor)
        if number == self._count:
            try:
                async with asyncio.timeout(seconds):
                    await self._next.wait()
            except TimeoutError:
                pass
        oldest = self._count - len(self._tasks)
        if number is None or number < oldest:
            return self._page(self._count, self._count, has_gap=True)
        return self._page(number, min(number + PAGE, self._count), has_gap=False)

    def _page(self, first: int, last: int, *, has_gap: bool) -> EndedPage:
        oldest = self._count - len(self._tasks)
        tasks = tuple(islice(self._tasks, first - oldest, last - oldest))
        return EndedPage(tasks=tasks, cursor=f"{self._epoch}-{last}", has_gap=has_gap)

    def _number_in(self, cursor: str) -> int | None:
        """Return the number of endings up to a cursor; None if it is of another process, or no cursor."""
        epoch, _, number = cursor.partition("-")
        is_ours = epoch == self._epoch and number.isascii() and number.isdecimal() and len(number) < len(self._epoch)
        return int(number) if is_ours and int(number) <= self._count else None
