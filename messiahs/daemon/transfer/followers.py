"""Followers of what attempts on this machine write: one check for all finds those whose attempt has ended."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

from messiahs.executor.contract import Changing

_CHECK_SECONDS: Final = 0.05
"""The interval between checks for ended attempts."""
_SHARE_SECONDS: Final = 0.0001
"""The interval grows by so much for each follower; checking one takes a few hundredths of it."""
_ALL_SECONDS: Final = 5.0
"""The interval at which all read their files again: a write through a mapping wakes nobody."""


class Followers:
    """All who wait for more at the end of a file (mutable); belongs to the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Changing, Callable[[], bool]] = {}
        self._checking: asyncio.Task[None] | None = None

    async def changed(self, watch: Changing, has_ended: Callable[[], bool]) -> None:
        """Wait until a file has grown, or its attempt `has_ended`."""
        self._waiting[watch] = has_ended
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())
        try:
            await watch.changed()
        finally:
            del self._waiting[watch]

    async def _check(self) -> None:
        all_woken_at = monotonic()
        while self._waiting:
            await asyncio.sleep(max(_CHECK_SECONDS, len(self._waiting) * _SHARE_SECONDS))
            wakes_all = monotonic() - all_woken_at >= _ALL_SECONDS
            if wakes_all:
                all_woken_at = monotonic()
            for watch, has_ended in self._waiting.items():
                if wakes_all or has_ended():
                    watch.wake()
