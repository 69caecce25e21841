"""The local API for attempts on this machine, of all submitters: listing them, and revoking them by hand."""

from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, RevokeRequested
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.texts import has_control
from messiahs.core.queries import LocalAttempt
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, assigned_document, time_document

REASON_LIMIT = 200
"""Longest reason that people give, in characters."""
_NOT_THE_OWNER = "only root and the user of this module may see and revoke what runs on its machine"


class RevokeBody(msgspec.Struct, forbid_unknown_fields=True):
    """What to revoke, an attempt, a task or an array as `/v1/attempts` names it, and the reason."""

    id: Annotated[str, msgspec.Meta(max_length=REASON_LIMIT)]
    kill: bool = False
    reason: Annotated[str, msgspec.Meta(max_length=REASON_LIMIT)] = ""


class AttemptsApi:
    """Attempts on this module's machine; only root and the module's own user may use it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [web.get("/v1/attempts", self._list), web.post("/v1/attempts/revoke", self._revoke)]

    async def _list(self, request: web.Request) -> web.Response:
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        attempts = queries.local_attempts(self._host.module.state)
        return web.json_response({"attempts": [_document(attempt) for attempt in attempts]})

    async def _revoke(self, request: web.Request) -> web.Response:
        """Revoke every attempt that the id names; the answer follows when the revocation is stored."""
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        try:
            body = await body_of(request, RevokeBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names nothing to revoke: {error}")
        if has_control(body.reason):
            return refusal(400, "the reason contains control characters")
        attempts = tuple(each.row.id for each in attempts_named(self._host, body.id))
        if not attempts:
            return refusal(404, f"nothing of {body.id} runs on this machine")
        problem = await revoke_attempts(self._host, attempts, kills=body.kill, text=body.reason, by=caller_of(request))
        if problem:
            return refusal(507, problem)
        return web.json_response({"revoked": [str(attempt) for attempt in attempts]})


def attempts_named(host: Host, name: str) -> list[LocalAttempt]:
    """Return what runs or waits on the own machine of an attempt, a task or an array."""
    return [one for one in queries.local_attempts(host.module.state) if name in _names_of(one.row.id)]


async def revoke_attempts(
    host: Host, attempts: tuple[AttemptId, ...], *, kills: bool = False, text: str, by: Caller
) -> str:
    """Take attempts off the own machine, and return why that could not be stored; empty once it is."""

    def revoke(answer_to: AnswerTo) -> RevokeRequested:
        return RevokeRequested(answer_to=answer_to, attempts=attempts, kills=kills, text=text)

    return (await host.ask(revoke, by)).problem


def _names_of(attempt: AttemptId) -> tuple[str, str, str]:
    return str(attempt), str(attempt.task), str(attempt.task.submission)


def _document(attempt: LocalAttempt) -> Document:
    row, claim = attempt.row, attempt.claim
    stated = claim.tdv.description()
    return {
        "attempt": str(row.id),
        "task": str(row.id.task),
        "origin": claim.origin,
        "via": claim.via,
        "user": stated.get("user"),
        "claim": str(claim.id),
        "slots": attempt.slots,
        "assigned": assigned_document(row.status.assigned),
        "substate": row.status.substate.value if row.status.substate is not None else None,
        "text": row.status.text,
        "taken_at": time_document(attempt.taken_at),
        "started_at": time_document(attempt.started_at),
        "lease_until": time_document(claim.lease_until),
    }
