"""Inputs that tasks of other systems have named here: once those have ended, nobody waits for them."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from messiahs.daemon.storage.files import PRESSURE_SECONDS
from messiahs.daemon.transfer.input_room import Spent

_STORING_SECONDS: Final = 10.0
"""Within so long, the attempts of tasks that have arrived are stored, and their inputs in use."""
_LIMIT: Final = 65_536


class NamedInputs:
    """When tasks last named which inputs, in the last minutes (mutable); belongs to the event loop."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._named: dict[bytes, float] = {}

    def note(self, hashes: Iterable[bytes]) -> None:
        """Note that tasks which have arrived name these inputs."""
        now = self._clock()
        for sha256 in hashes:
            # The latest last.
            self._named.pop(sha256, None)
            self._named[sha256] = now
        # What was unused for longer may go in any case.
        while self._named:
            oldest = next(iter(self._named))
            if len(self._named) <= _LIMIT and self._named[oldest] >= now - PRESSURE_SECONDS:
                break
            del self._named[oldest]

    def spent(self) -> Spent:
        """Return those that are not needed unless they are in use, or were used again."""
        before = self._clock() - _STORING_SECONDS
        return {sha256: at for sha256, at in self._named.items() if at < before}
