"""Standard input of the tasks of `messiahs run`, which comes in pieces."""

import re
from typing import Final

from aiohttp import web

from messiahs.daemon.api.requests import offset_of, own_single_task, refusal
from messiahs.daemon.api.stdin_sources import InputState, Sources
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host
from messiahs.wire.codec import FEED_PIECE_BYTES

_ATTEMPT: Final = re.compile(r"[0-9]{1,9}")
_HELD_SECONDS: Final = 10.0
"""How long a piece waits for room before the answer that nothing of it was taken."""


class StdinApi:
    """Handler of `/v1/tasks/ID/stdin`; a client may repeat every request after an interruption."""

    def __init__(self, host: Host, sources: Sources) -> None:
        self._tasks, self._sources = Tasks(host), sources

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/tasks/{id}/stdin", self._feed)]

    async def _feed(self, request: web.Request) -> web.Response:
        found = await own_single_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        assert found.row is not None, "own_single_task returns single tasks"
        if not found.submission.command.takes_stdin:
            return refusal(409, f"{found.id} takes no standard input")
        attempt, offset, content = request.query.get("attempt", "0"), offset_of(request), await request.read()
        if offset is None or not _ATTEMPT.fullmatch(attempt):
            return refusal(400, "offset is a number of bytes, attempt the number of an attempt")
        if len(content) > FEED_PIECE_BYTES:
            return refusal(400, f"a piece of standard input has at most {FEED_PIECE_BYTES} bytes")
        if found.is_final:
            state = InputState(attempt=found.row.attempt, is_closed=True, has_ended=True)
        else:
            state = await self._sources.of_task(found.id).accept(
                content,
                attempt=int(attempt),
                offset_bytes=offset,
                is_end=request.query.get("end") == "1",
                seconds=_HELD_SECONDS,
            )
        return web.json_response(
            {
                "attempt": state.attempt,
                "taken": state.taken_bytes,
                "received": state.received_bytes,
                "closed": state.is_closed,
                "ended": state.has_ended,
                "problem": state.problem,
                "refusal": state.refusal,
            }
        )
