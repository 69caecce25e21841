"""Turns of requests that read much in a thread: threads share the interpreter with the event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager


class ReadingTurns:
    """Turns of requests that read (mutable): one reads at a time, and accounts alternate."""

    def __init__(self) -> None:
        self._of_all = asyncio.Lock()
        self._of_one: dict[int, asyncio.Lock] = {}
        """By account; kept once an account has used it."""

    @asynccontextmanager
    async def turn(self, uid: int, *, first: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Wait until an account may read within the block; what comes `first` delays only its own next requests."""
        async with self._of_one.setdefault(uid, asyncio.Lock()):
            await first()
            async with self._of_all:
                yield
