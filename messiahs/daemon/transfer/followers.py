"""Followers of what attempts on this machine write: one look for all finds whose attempt has ended."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

from messiahs.executor.contract import Changing

_LOOK_SECONDS: Final = 0.05
"""For so long an attempt may have ended unseen by who follows it."""
_SHARE_SECONDS: Final = 0.0001
"""With many followers looks are further apart: by so much for each, of which a look takes a few hundredths."""

_ALL_SECONDS: Final = 5.0
"""So often all look at their files: what is written through a mapping wakes nobody."""


class Followers:
    """All who wait for more at the end of a file (mutable); belongs to the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Changing, Callable[[], bool]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def changed(self, watch: Changing, has_ended: Callable[[], bool]) -> None:
        """Wait until a file has grown, or its attempt `has_ended`."""
        self._waiting[watch] = has_ended
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await watch.changed()
        finally:
            del self._waiting[watch]

    async def _look(self) -> None:
        all_woken_at = monotonic()
        while self._waiting:
            await asyncio.sleep(max(_LOOK_SECONDS, len(self._waiting) * _SHARE_SECONDS))
            wakes_all = monotonic() - all_woken_at >= _ALL_SECONDS
            if wakes_all:
                all_woken_at = monotonic()
            for watch, has_ended in self._waiting.items():
                if wakes_all or has_ended():
                    watch.wake()
