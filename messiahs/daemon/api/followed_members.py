"""The output of the members of an array while they write it, of many at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

from messiahs.channel.jobs import Jobs
from messiahs.core import queries
from messiahs.core.interface.messages import Substate
from messiahs.core.model.ids import TaskId
from messiahs.daemon.api.logs import Logs
from messiahs.daemon.api.paced_handlers import paced
from messiahs.daemon.api.task_search import Found, Tasks
from messiahs.daemon.host.endings import EndedPage
from messiahs.daemon.host.host import Host
from messiahs.errors import ChannelError

AT_ONCE: Final = 64
"""Members that are followed while they run; what others write is shown when one of them has ended, or they have."""
_WAITING_PIECES: Final = 4
_LOOK_SECONDS: Final = 0.2
_LOOKED_AT: Final = 100
"""Members that are looked at before other work is let in."""


class FollowedMembers:
    """Those who follow one array for one user (mutable). A piece is the number of its member and bytes.

    The pieces of a member are in their order, and an empty one is its end; those of several members are mixed.
    """

    def __init__(self, host: Host, logs: Logs, found: Found, *, name: str, uid: int) -> None:
        self._host, self._logs, self._found, self._name, self._uid = host, logs, found, name, uid
        self._tasks = Tasks(host)
        self._pieces: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(_WAITING_PIECES)
        self._followed: dict[int, asyncio.Task[None]] = {}
        # A byte for each member: an array may have a million.
        self._is_awaited = bytearray(found.submission.members + 1)
        self._jobs = Jobs()
        self._is_over = False
        """Whether nobody takes pieces any more."""

    async def pieces(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield all pieces until the last member has ended."""
        self._jobs.begin(paced(self._read_all(), self._uid, turns=self._host.driver.users))
        try:
            while (piece := await self._pieces.get()) is not None:
                yield piece
        finally:
            self._is_over = True
            await self._jobs.stop()

    async def _read_all(self) -> None:
        try:
            await self._read_each()
        finally:
            # There may be no room for more, and nobody takes them any more.
            if not self._is_over:
                await self._pieces.put(None)

    async def _read_each(self) -> None:
        page = await self._host.endings.after("", 0)
        async for member in self._tasks.members_of(self._found):
            if member.is_final:
                await self._read(member, follow=False)
            else:
                self._is_awaited[member.id.member] = True
        while any(self._is_awaited):
            self._follow_running()
            page = await self._host.endings.after(page.cursor, _LOOK_SECONDS)
            for looked, number in enumerate(self._perhaps_ended(page), start=1):
                now = await self._tasks.look_up(f"{self._found.id}.{number}")
                if now is None or now.is_final:
                    self._is_awaited[number] = False
                if now is not None and now.is_final and number not in self._followed:
                    await self._read(now, follow=False)
                if looked % _LOOKED_AT == 0:
                    await asyncio.sleep(0)
        if self._followed:
            await asyncio.wait(self._followed.values())

    def _follow_running(self) -> None:
        room = AT_ONCE - len(self._followed)
        progress = queries.array_progress(self._host.module.state, self._found.id) if room > 0 else None
        running = [row for row in progress.tried if row.substate is Substate.RUNNING] if progress is not None else []
        for row in [row for row in running if row.id.member not in self._followed][:room]:
            found = self._tasks.find(str(row.id))
            if found is not None and self._is_awaited[row.id.member]:
                self._followed[row.id.member] = self._jobs.begin(self._read_followed(found))

    async def _read_followed(self, member: Found) -> None:
        try:
            await self._read(member, follow=True)
        finally:
            self._is_awaited[member.id.member] = False
            del self._followed[member.id.member]

    async def _read(self, member: Found, *, follow: bool) -> None:
        number = member.id.member
        # The output of a task may be out of reach; that of others is shown.
        with suppress(ChannelError):
            async with aclosing(self._logs.read(member, self._name, offset=0, follow=follow)) as pieces:
                async for piece in pieces:
                    await self._pieces.put((number, piece))
        await self._pieces.put((number, b""))
        # A reader that is fast never waits, so other work is let in here.
        await asyncio.sleep(0)

    def _perhaps_ended(self, page: EndedPage) -> list[int]:
        return to_look_at(self._is_awaited, page, array=self._found.id)


def to_look_at(is_awaited: bytearray, page: EndedPage, *, array: TaskId) -> list[int]:
    """Return the members that may have ended; the array stands for many of them that were never tried."""
    if page.has_gap or array in page.tasks:
        return [number for number, awaited in enumerate(is_awaited) if awaited]
    ended = (task.member for task in page.tasks if task.submission == array)
    return [number for number in dict.fromkeys(ended) if is_awaited[number]]
