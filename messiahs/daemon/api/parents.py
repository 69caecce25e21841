"""The local API for the parents that this module gets while it runs."""

from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.channel.membership.tokens import TOKEN_LIMIT_BYTES, JoinToken
from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, PrimaryParentChanged
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import has_control
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal, status_of
from messiahs.daemon.host.host import Host
from messiahs.daemon.membership.parents import Parents
from messiahs.daemon.storage.documents import Document, time_document
from messiahs.errors import MessiahsError

_NAME_LIMIT, _TEXT_LIMIT = 255, 200
_NOT_THE_OWNER = "only root and the user of this module may change its parents"


class ParentBody(msgspec.Struct, forbid_unknown_fields=True):
    """The token of a module that is to become a parent."""

    token: Annotated[str, msgspec.Meta(max_length=TOKEN_LIMIT_BYTES)]


class PrimaryBody(msgspec.Struct, forbid_unknown_fields=True):
    """The parent that is to count this system, and the reason for the people of this site."""

    parent: Annotated[str, msgspec.Meta(max_length=_NAME_LIMIT)]
    reason: Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)] = ""


class ParentsApi:
    """Only root and the module's own user may change its parents."""

    def __init__(self, host: Host, parents: Parents) -> None:
        self._host, self._parents = host, parents

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.get("/v1/parents", self._show),
            web.post("/v1/parents", self._add),
            web.post("/v1/parents/primary", self._change_primary),
        ]

    async def _show(self, _: web.Request) -> web.Response:
        """Show the parents to anybody, and the last change of the primary one."""
        return web.json_response(self._document())

    async def _change_primary(self, request: web.Request) -> web.Response:
        """Let another parent count this system; the answer follows when that is stored."""
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        try:
            body = await body_of(request, PrimaryBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names no parent: {error}")
        if has_control(body.reason):
            return refusal(400, "the reason contains control characters")

        def changed(answer_to: AnswerTo) -> PrimaryParentChanged:
            return PrimaryParentChanged(answer_to=answer_to, parent=SystemId(body.parent), text=body.reason)

        answer = await self._host.ask(changed, caller_of(request))
        if answer.problem:
            return refusal(status_of(answer.problem, otherwise=409), answer.problem)
        return web.json_response(self._document())

    async def _add(self, request: web.Request) -> web.Response:
        """Ask the module of a token; a request that waits for an administrator there is to be repeated."""
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        try:
            token = JoinToken.from_text((await body_of(request, ParentBody)).token.encode())
            waits_for = await self._parents.join(token)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request contains no token: {error}")
        except MessiahsError as error:
            return refusal(409, str(error))
        return web.json_response({"parent": token.parent, "waits_for": waits_for})

    def _document(self) -> Document:
        parents = [each for each in queries.neighbors_of(self._host.module.state).values() if each.is_parent]
        handover = queries.handover_of(self._host.module.state)
        return {
            "parents": [each.system for each in parents],
            "primary": next((each.system for each in parents if each.is_primary_parent), None),
            "counted_at": queries.counted_at(self._host.module.state),
            "handover": None
            if handover is None
            else {
                "number": handover.number,
                "from": handover.old,
                "to": handover.new,
                "since": time_document(handover.since),
                "done": handover.is_done,
                "reason": handover.text,
            },
        }
