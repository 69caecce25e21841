"""Output of tasks for their users: from the executor while a task runs, from this module when it has ended."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

from messiahs.core import queries
from messiahs.core.interface.messages import Substate
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import AttemptId
from messiahs.daemon.api.bound_reads import BoundReads
from messiahs.daemon.api.task_search import Found, Tasks
from messiahs.daemon.host.host import Host
from messiahs.daemon.transfer.output_arrivals import Outputs
from messiahs.daemon.transfer.output_sources import PIECE_BYTES
from messiahs.errors import BeyondError, ChannelError, RefusedError
from messiahs.wire.codec import ReadRequest

_FIRST_LOOK_SECONDS = 0.02
_LOOK_SECONDS = 0.2
"""Looks at a task that does not run, or cannot be read, are so far apart; at first less, since it may start soon."""
_BETWEEN_SECONDS = 0.2
"""A user's requests that a module refuses, such as for lack of a stream, are tried again so far apart, all together."""


class Logs:
    """Reads the output of tasks wherever it is stored."""

    def __init__(self, host: Host, outputs: Outputs) -> None:
        self._host, self._outputs = host, outputs
        self._tasks, self._reads = Tasks(host), BoundReads(host)
        self._refused: Counter[str] = Counter()
        """How many requests each user has that wait after a refusal."""

    async def read(self, found: Found, name: str, *, offset: int, follow: bool) -> AsyncGenerator[bytes, None]:
        """Yield the output from `offset` on; with `follow` until the task has ended and everything was sent.

        After an attempt was lost, the output of the next one follows from its beginning. Without `follow`, raises
        `ChannelError` if the output of a task that still runs cannot be read now.
        """
        attempt = found.row.attempt if found.row is not None else 0
        pause = _FIRST_LOOK_SECONDS
        while True:
            is_refused = False
            now = self._tasks.find(str(found.id))
            if now is None or now.row is None:
                return
            if now.row.attempt != attempt:
                attempt, offset = now.row.attempt, 0
            if now.is_final:
                while piece := self._outputs.read(found.id, name, offset=offset, limit=PIECE_BYTES):
                    offset += len(piece)
                    yield piece
                return
            try:
                async with aclosing(self._from_executor(now.row, name, offset, follow=follow)) as pieces:
                    async for piece in pieces:
                        offset += len(piece)
                        yield piece
            except (ChannelError, FileNotFoundError, PermissionError) as error:
                if not follow and self._is_still(now.row):
                    raise ChannelError(f"the output of {found.id} cannot be read now: {error}") from error
                is_refused = isinstance(error, RefusedError | BeyondError)
            else:
                if not follow:
                    return
            if is_refused:
                await self._wait_after_refusal(found)
                continue
            await self._host.task_ended(found.id, pause)
            pause = min(2 * pause, _LOOK_SECONDS)

    async def _wait_after_refusal(self, found: Found) -> None:
        """Wait until the task has ended, or for a time that grows with the number of the user's requests that wait."""
        user = found.submission.user
        self._refused[user] += 1
        try:
            await self._host.task_ended(found.id, self._refused[user] * _BETWEEN_SECONDS)
        finally:
            self._refused[user] -= 1
            if not self._refused[user]:
                del self._refused[user]

    async def _from_executor(
        self, row: TaskRow, name: str, offset: int, *, follow: bool
    ) -> AsyncGenerator[bytes, None]:
        leg = queries.present_leg(self._host.module.state, row.claim) if row.claim is not None else None
        if row.claim is None or leg is None or row.substate is not Substate.RUNNING:
            return
        request = ReadRequest(
            claim=row.claim,
            ticket=leg.ticket,
            attempt=AttemptId(row.id, row.attempt),
            name=name,
            offset_bytes=offset,
            follow=follow,
        )
        async with aclosing(self._reads.pieces(row, leg, request)) as pieces:
            async for piece in pieces:
                yield piece

    def _is_still(self, row: TaskRow) -> bool:
        """Whether a task still runs as the same attempt."""
        now = queries.live_task(self._host.module.state, row.id)
        return now is not None and (now.attempt, now.substate) == (row.attempt, row.substate)
