"""Connections that this module passes on unread, as they count for its core (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import Callable
from typing import Final

from messiahs.core.interface.events import Event
from messiahs.core.interface.spliced_bytes import BytesSpliced
from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer.budgets import Stream

_REPORT_SECONDS: Final = 1.0


class PassedConnection:
    """One connection: its bytes are reported after a second with new ones, and when it is closed (mutable).

    `ends` are the neighbors toward the origin and toward the executor of its claim.
    """

    def __init__(
        self, stream: Stream, ends: tuple[SystemId, SystemId], /, *, on_event: Callable[[Event], None]
    ) -> None:
        self._stream, self._ends, self._on_event = stream, ends, on_event
        self._forth_bytes = self._back_bytes = 0
        self._is_new = True
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for(self, forth_bytes: int, back_bytes: int) -> None:
        """Count bytes toward the executor and toward the origin, and wait until they may move; `BudgetError`."""
        await self._stream.wait_in_loop(forth_bytes + back_bytes)
        self._forth_bytes += forth_bytes
        self._back_bytes += back_bytes
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_REPORT_SECONDS, self._report)

    def close(self) -> None:
        """End the connection."""
        self._stream.close()
        if self._timer is not None:
            self._timer.cancel()
            self._report()

    def _report(self) -> None:
        self._timer = None
        toward_origin, toward_executor = self._ends
        event = BytesSpliced(
            toward_origin=toward_origin,
            toward_executor=toward_executor,
            connections=int(self._is_new),
            forth_bytes=self._forth_bytes,
            back_bytes=self._back_bytes,
        )
        self._forth_bytes = self._back_bytes = 0
        self._is_new = False
        self._on_event(event)
