"""The local API for the audit log of decisions: its lines, filtered, and on request those that follow."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from messiahs.daemon.api.connection_limits import begin_long_answer
from messiahs.daemon.api.paced_handlers import InThread
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import refusal, uid_of, user_of
from messiahs.daemon.audit.reading import Filter, Reading
from messiahs.daemon.host.host import Host

_FOLLOW_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.05
"""Time before each read of a follower, one after the other: with many of one account each gets its lines later."""
_TIME: Final = re.compile(r"[0-9:TZ.-]{0,32}")


class Looks:
    """Turns of readers of the log (mutable): those of one account look one after the other, each after its pause."""

    def __init__(self) -> None:
        self._of_one: dict[int, asyncio.Lock] = {}
        """By account; kept once an account has used it."""

    @asynccontextmanager
    async def turn(self, uid: int, *, pause_seconds: float) -> AsyncIterator[None]:
        """Wait until an account may look within the block; other accounts do not wait for its pauses."""
        async with self._of_one.setdefault(uid, asyncio.Lock()):
            await asyncio.sleep(pause_seconds)
            yield


class DecisionsApi:
    """Decisions about tasks, policies and members. Other users than root and the module's own read of their tasks."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._host, self._folder = host, folder
        self._looks = Looks()

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.get("/v1/audit/decisions", self._lines)]

    async def _lines(self, request: web.Request) -> web.StreamResponse:
        """Answer with JSON lines in the order of time; with `follow`, until the client closes the connection."""
        asked = request.query
        since = asked.get("since", "")
        if not _TIME.fullmatch(since):
            return refusal(400, "`since` is no time such as 2026-01-31T12:00:00Z")
        wanted = Filter(
            since=since,
            task=asked.get("task", ""),
            neighbor=asked.get("neighbor", ""),
            user=asked.get("user", ""),
            kind=asked.get("kind", ""),
            own_user=None if is_owner(request) else user_of(request),
            own=self._host.system,
        )
        reading, uid = Reading(self._folder, wanted), uid_of(request)
        begin_long_answer(request)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson; charset=utf-8"})
        await response.prepare(request)
        await self._write_all(reading, uid, response)
        while asked.get("follow") == "1":
            await asyncio.sleep(_FOLLOW_SECONDS)
            await self._write_all(reading, uid, response, pause_seconds=_LOOK_SECONDS)
        await response.write_eof()
        return response

    async def _write_all(
        self, reading: Reading, uid: int, response: web.StreamResponse, *, pause_seconds: float = 0.0
    ) -> None:
        is_last = False
        while not is_last:
            async with self._looks.turn(uid, pause_seconds=pause_seconds):
                piece, is_last = await InThread(reading.piece)
            if piece:
                await response.write(piece)
