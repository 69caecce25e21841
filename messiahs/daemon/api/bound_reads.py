"""Reads of outputs of attempts while these are bound: a machine may keep its stream open for ever."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from messiahs.core import queries
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.routes import Leg
from messiahs.daemon.host.host import Host
from messiahs.errors import ChannelError
from messiahs.wire.codec import ReadRequest

_CHECK_SECONDS: Final = 0.5
"""The interval at which attempts are checked whose outputs are followed, all together."""
_SILENT_SECONDS: Final = 30.0
"""An output that is not followed is there already, and its pieces come within this time."""


class BoundReads:
    """Reads of one module (mutable); belongs to the event loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: dict[asyncio.Timeout, TaskRow] = {}
        self._checking: asyncio.Task[None] | None = None

    async def pieces(self, row: TaskRow, leg: Leg, /, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        """Yield an output until it ends, or until its attempt is bound no more; raises what `Host.read_output` raises.

        What an ended attempt wrote is at home then, or comes from the next attempt. A `ChannelError` if an output that
        is not followed does not come.
        """
        async with aclosing(self._host.read_output(leg, request)) as pieces:
            while True:
                limit = asyncio.timeout(None if request.follow else _SILENT_SECONDS)
                try:
                    async with limit:
                        piece = await self._next(pieces, row, limit=limit if request.follow else None)
                except TimeoutError as error:
                    if request.follow and limit.expired():
                        return
                    raise ChannelError(f"{leg.system} does not send the output") from error
                if piece is None:
                    return
                yield piece

    async def _next(
        self, pieces: AsyncGenerator[bytes, None], row: TaskRow, *, limit: asyncio.Timeout | None
    ) -> bytes | None:
        """Return the next piece, or None; a limit expires when the attempt of the row is bound no more."""
        if limit is None:
            return await anext(pieces, None)
        self._waiting[limit] = row
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())
        try:
            return await anext(pieces, None)
        finally:
            del self._waiting[limit]

    async def _check(self) -> None:
        while self._waiting:
            await asyncio.sleep(_CHECK_SECONDS)
            for limit, row in self._waiting.items():
                now = queries.live_task(self._host.module.state, row.id)
                is_bound = now is not None and (now.attempt, now.claim) == (row.attempt, row.claim)
                if not is_bound and limit.when() is None:
                    limit.reschedule(asyncio.get_running_loop().time())
