"""The request for the output of all members of an array, answered in one stream of frames.

A frame is the number of a member and the length of a piece (4 bytes each, the highest first), and the piece. All
frames of a member are adjacent, unless members are followed while they run: then their frames are mixed, and an empty
one is the end of a member.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Final

from aiohttp import web

from messiahs.core.model.output_names import LOGS
from messiahs.core.origin.retry import has_failed
from messiahs.daemon.api.connection_limits import begin_long_answer
from messiahs.daemon.api.followed_members import FollowedMembers, to_look_at
from messiahs.daemon.api.logs import Logs
from messiahs.daemon.api.requests import own_task, refusal, uid_of
from messiahs.daemon.api.task_search import Found, Tasks
from messiahs.daemon.host.host import Host
from messiahs.errors import ChannelError

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
        found = await own_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        if found.row is not None:
            return refusal(400, f"{found.id} is no array")
        name, follow = request.query.get("stream", "stdout"), request.query.get("follow") == "1"
        if name not in LOGS:
            return refusal(400, "stream must be stdout or stderr")
        # Members may run for days, and what a client does not read waits in memory.
        begin_long_answer(request)
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        await response.prepare(request)
        failed = request.query.get("failed") == "1"
        if follow and not failed:
            following = FollowedMembers(self._host, self._logs, found, name=name, uid=uid_of(request))
            async with aclosing(following.pieces()) as pieces:
                async for number, piece in pieces:
                    await response.write(_framed(number, piece))
        else:
            async for member in self._members(found, follow=follow):
                if not failed or (member.is_final and _has_failed(member)):
                    await self._send(response, member, name)
        await response.write_eof()
        return response

    async def _send(self, response: web.StreamResponse, member: Found, name: str) -> None:
        # The output of a task that runs may be out of reach; that of others is shown.
        with suppress(ChannelError):
            async with aclosing(self._logs.read(member, name, offset=0, follow=False)) as pieces:
                async for piece in pieces:
                    await response.write(_framed(member.id.member, piece))
        # A write never waits for a client that reads fast, so other work is let in here.
        await asyncio.sleep(0)

    async def _members(self, found: Found, *, follow: bool) -> AsyncIterator[Found]:
        """Yield all members; with `follow` (those that have failed) each when it has ended, until the last one has."""
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
            for looked, number in enumerate(to_look_at(is_awaited, page, array=found.id), start=1):
                now = await self._tasks.look_up(f"{found.id}.{number}")
                if now is None or now.is_final:
                    is_awaited[number] = False
                if now is not None and now.is_final:
                    yield now
                if looked % _AT_ONCE == 0:
                    await asyncio.sleep(0)


def _framed(member: int, piece: bytes) -> bytes:
    return member.to_bytes(_NUMBER_BYTES) + len(piece).to_bytes(_NUMBER_BYTES) + piece


def _has_failed(member: Found) -> bool:
    return member.row is not None and has_failed(member.row)
