"""The local API for acts by hand on tasks: revoke, move, hold, release; at their origin, or where they run."""

from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.events import AnswerTo, HandRequested
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.texts import has_control
from messiahs.daemon.api.attempts import REASON_LIMIT, attempts_named, revoke_attempts
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal, status_of, task_named, unknown_task, user_of
from messiahs.daemon.api.task_search import Found, Tasks, system_in
from messiahs.daemon.host.host import Host


class HandBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is done with a task, and the reason for its user."""

    act: HandAct
    reason: Annotated[str, msgspec.Meta(max_length=REASON_LIMIT)] = ""


class ByHandApi:
    """Acts on a task or an array: of its own user at its origin, of root and the module's user also where it runs."""

    def __init__(self, host: Host) -> None:
        self._host, self._tasks = host, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/tasks/{id}/by-hand", self._act)]

    async def _act(self, request: web.Request) -> web.Response:
        """Act on a task of this origin, or on its attempts here; the answer follows when that is stored."""
        try:
            body = await body_of(request, HandBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names no act: {error}")
        if has_control(body.reason):
            return refusal(400, "the reason contains control characters")
        found = await task_named(request.match_info["id"], self._tasks)
        if found is not None:
            return await self._at_origin(request, found, body)
        return await self._at_executor(request, request.match_info["id"], body)

    async def _at_origin(self, request: web.Request, found: Found, body: HandBody) -> web.Response:
        user, owner = user_of(request), found.submission.tdv.description()["user"]
        if user != owner and not is_owner(request):
            named = dict.fromkeys((str(owner), "root"))
            text = (
                f"{found.id} belongs to another user: only {', '.join(named)} and the user of this module may do this"
            )
            return refusal(403, text)
        # Who did it is of interest where it was not the task's own user.
        text = body.reason if user == owner else f"{user}: {body.reason}".removesuffix(": ")
        running = tuple(queries.revocable(self._host.module.state, found.id))

        def act(answer_to: AnswerTo) -> HandRequested:
            return HandRequested(answer_to=answer_to, task=found.id, act=body.act, text=text)

        answer = await self._host.ask(act, caller_of(request))
        if answer.problem:
            return refusal(status_of(answer.problem, otherwise=409), answer.problem)
        return _done(str(found.id), running, is_origin=True)

    async def _at_executor(self, request: web.Request, name: str, body: HandBody) -> web.Response:
        here, origin = self._host.system, system_in(name)
        if origin in ("", here):
            return await unknown_task(name, self._tasks)
        if not is_owner(request):
            text = f"{name} is a task of {origin}: enter this there. Here only root and the user of {here} may do this"
            return refusal(403, text)
        if body.act in (HandAct.HOLD, HandAct.RELEASE):
            return refusal(409, f"tasks are held and released at their origin: enter this at {origin}")
        attempts = tuple(each.row.id for each in attempts_named(self._host, name))
        if not attempts:
            where = f"at {origin}, its origin, or where it runs: `messiahs status {name}` at {origin} says where"
            return refusal(404, f"nothing of {name} runs on the machine of {here}: enter this {where}")
        problem = await revoke_attempts(self._host, attempts, text=body.reason, by=caller_of(request))
        return refusal(507, problem) if problem else _done(name, attempts, is_origin=False)


def _done(name: str, attempts: tuple[AttemptId, ...], *, is_origin: bool) -> web.Response:
    at = "origin" if is_origin else "executor"
    return web.json_response({"id": name, "at": at, "attempts": [str(attempt) for attempt in attempts]})
