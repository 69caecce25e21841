"""The request for the output of all members of an array, answered in one stream of frames.

A frame is the number of a member and the length of a piece (4 bytes each, the highest first), and the piece. All
frames of a member are adjacent.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Final

from aiohttp import web

from messiahs.core.model.ids import TaskId
from messiahs.core.origin.retry import has_failed
from messiahs.daemon.api.connection_limits import end_with_client
from messiahs.daemon.api.logs import Logs
from messiahs.daemon.api.requests import own_task, refusal
from messiahs.daemon.api.task_search import Found, Tasks
from messiahs.daemon.host.endings import EndedPage
from messiahs.daemon.host.host import Host
from messiahs.errors import ChannelError
from messiahs.executor.contract import OUTPUT_NAMES

_NUMBER_BYTES: Final = 4
_LOOK_SECONDS: Final = 30.0
_AT_ONCE: Final = 100
"""Members that are looked at before other work is let in."""


class MemberLogsApi:
    """The handler of `/v1/tasks/{id}/member-logs`; a client may repeat the request after an interruption."""

    def __init__(self, host: Host, logs: Logs) -> None:
        self._host, self._logs, self._tasks = host, logs, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.get("/v1/tasks/{id}/member-logs", self._read)]

    async def _read(self, request: web.Request) -> web.StreamResponse:
        found = own_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        if found.row is not None:
            return refusal(400, f"{found.id} is no array")
        name, follow = request.query.get("stream", "stdout"), request.query.get("follow") == "1"
        if name not in OUTPUT_NAMES:
            return refusal(400, "stream must be stdout or stderr")
        # Members may run for days.
        end_with_client(request)
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        await response.prepare(request)
        async for member in self._members(found, follow=follow):
            if request.query.get("failed") == "1" and not (member.is_final and _has_failed(member)):
                continue
            await self._send(response, member, name)
        await response.write_eof()
        return response

    async def _send(self, response: web.StreamResponse, member: Found, name: str) -> None:
        number = member.id.member.to_bytes(_NUMBER_BYTES)
        # The output of a task that runs may be out of reach; that of others is shown.
        with suppress(ChannelError):
            async for piece in self._logs.read(member, name, offset=0, follow=False):
                await response.write(number + len(piece).to_bytes(_NUMBER_BYTES) + piece)
        # A write never waits for a client that reads fast, so other work is let in here.
        await asyncio.sleep(0)

    async def _members(self, found: Found, *, follow: bool) -> AsyncIterator[Found]:
        """Yield all members; with `follow` each only when it has ended, until the last one has."""
        page = await self._host.endings.after("", 0)
        # A byte for each member: an array may have a million.
        is_awaited = bytearray(found.submission.members + 1)
        async for member in self._tasks.members_of(found):
            if follow and not member.is_final:
                is_awaited[member.id.member] = True
            else:
                yield member
        while any(is_awaited):
            page = await self._host.endings.after(page.cursor, _LOOK_SECONDS)
            for looked, number in enumerate(_to_look_at(is_awaited, page, array=found.id), start=1):
                now = self._tasks.find(f"{found.id}.{number}")
                if now is None or now.is_final:
                    is_awaited[number] = False
                if now is not None and now.is_final:
                    yield now
                if looked % _AT_ONCE == 0:
                    await asyncio.sleep(0)


def _to_look_at(is_awaited: bytearray, page: EndedPage, *, array: TaskId) -> Iterable[int]:
    """Return the members that may have ended; the array stands for many of them that were never tried."""
    if page.has_gap or array in page.tasks:
        return (number for number, awaited in enumerate(is_awaited) if awaited)
    ended = (task.member for task in page.tasks if task.submission == array)
    return (number for number in dict.fromkeys(ended) if is_awaited[number])


def _has_failed(member: Found) -> bool:
    return member.row is not None and has_failed(member.row)
