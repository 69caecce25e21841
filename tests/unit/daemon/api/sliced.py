"""A handler without turns of users, whose slices are noted."""

import asyncio
from collections.abc import Awaitable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from messiahs.daemon.api.paced_handlers import InThread, NextSlice

T = TypeVar("T")


@dataclass
class Sliced(Generic[T]):
    """Runs a handler without turns, and notes its slices (mutable)."""

    handler: Awaitable[T]
    slices: list[NextSlice] = field(default_factory=list)
    in_threads: int = 0
    """Works that were done in threads."""

    def __await__(self) -> Generator[object, None, T]:
        steps, answer = self.handler.__await__(), None
        while True:
            try:
                awaited = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = None
            if isinstance(awaited, NextSlice):
                self.slices.append(awaited)
            elif isinstance(awaited, InThread):
                self.in_threads += 1
                answer = yield from asyncio.to_thread(awaited.work).__await__()
            else:
                yield awaited
