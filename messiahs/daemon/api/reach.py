"""The local API for reach: each neighbor with a link is asked to dial this module, and what its clock shows."""

import asyncio

from aiohttp import web

from messiahs.channel.reach_exchange import ReachExchange
from messiahs.core import queries
from messiahs.core.model.ids import SystemId
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import refusal
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document
from messiahs.errors import MessiahsError, ProtocolError

_NOT_THE_OWNER = "only root and the user of this module may have its neighbors dial it"


class ReachApi:
    """What neighbors answer. Only root and the module's own user may ask them."""

    def __init__(self, host: Host, reach: ReachExchange) -> None:
        self._host, self._reach = host, reach

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/reach", self._ask)]

    async def _ask(self, request: web.Request) -> web.Response:
        """Ask all neighbors with a link at once; each has some seconds to answer."""
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        linked = queries.summary_of(self._host.module.state).linked
        return web.json_response({"neighbors": await asyncio.gather(*map(self._document, linked))})

    async def _document(self, neighbor: SystemId) -> Document:
        """Describe an answer; `result` is `unknown` for a neighbor that does not know the question."""
        try:
            heard = await self._reach.ask(neighbor)
        except MessiahsError as error:
            result = "unknown" if isinstance(error, ProtocolError) else "no_answer"
            return {"name": neighbor, "result": result, "address": "", "text": str(error), "clock_ahead_ns": None}
        answer = heard.answer
        return {
            "name": neighbor,
            "result": answer.result.value,
            "address": answer.address,
            "text": answer.text,
            "clock_ahead_ns": heard.clock_ahead_ns,
        }
