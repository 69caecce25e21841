"""Turns in which stored files are scanned because a neighbor wants room for more (MESSIAHS 5.3.3).

A neighbor chooses how many files it has here, and how often it asks. So its scans run one at a time, and take at most a
quarter of the time, or begin 10 s after the last one. Neighbors do not wait for each other's scans.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from messiahs.core.model.ids import SystemId

_PAUSES: Final = 3
"""A pause is so many times as long as the scan before it, up to `_LONGEST_PAUSE_SECONDS`."""
_LONGEST_PAUSE_SECONDS: Final = 10.0


@dataclass(slots=True)
class _Turns:
    """The scans of one neighbor (mutable)."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asking: int = 0
    free_at: float = 0.0
    """When the next scan may begin, in seconds of `monotonic`."""


class ScanTurns:
    """One scan at a time for each neighbor, with pauses between them. Belongs to the event loop."""

    def __init__(self) -> None:
        self._turns: dict[SystemId, _Turns] = {}

    @asynccontextmanager
    async def turn(self, neighbor: SystemId) -> AsyncIterator[None]:
        """Wait until a neighbor may scan within the block; the turn ends without an await."""
        now = monotonic()
        for name in [name for name, each in self._turns.items() if not each.asking and each.free_at <= now]:
            del self._turns[name]
        turns = self._turns.setdefault(neighbor, _Turns())
        turns.asking += 1
        try:
            async with turns.lock:
                await asyncio.sleep(turns.free_at - monotonic())
                begun, pause = monotonic(), 0.0
                try:
                    yield
                except asyncio.CancelledError:
                    # Its thread may not have ended.
                    pause = _LONGEST_PAUSE_SECONDS
                    raise
                finally:
                    ended = monotonic()
                    pause = max(pause, _PAUSES * (ended - begun))
                    turns.free_at = ended + min(pause, _LONGEST_PAUSE_SECONDS)
        finally:
            turns.asking -= 1
