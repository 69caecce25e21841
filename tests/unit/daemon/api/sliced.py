"""A handler without turns of users, whose slices are noted."""

from collections.abc import Awaitable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from messiahs.daemon.api.paced_handlers import NextSlice

T = TypeVar("T")


@dataclass
class Sliced(Generic[T]):
    """Runs a handler without turns, and notes its slices (mutable)."""

    handler: Awaitable[T]
    slices: list[NextSlice] = field(default_factory=list)

    def __await__(self) -> Generator[object, None, T]:
        steps = self.handler.__await__()
        while True:
            try:
                awaited = steps.send(None)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(awaited, NextSlice):
                self.slices.append(awaited)
            else:
                yield awaited

    @property
    def in_threads(self) -> int:
        """Works that were done in threads."""
        return sum(each.spent_ns > 0 for each in self.slices)
