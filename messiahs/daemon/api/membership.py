"""The local API for the administrator who drains this module, removes a neighbor, or leaves a parent."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web

from messiahs.core import queries
from messiahs.core.closing import Remaining
from messiahs.core.interface.events import AnswerTo, DrainRequested, LeaveRequested, MemberRemoved
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.texts import has_control
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal, status_of, why_not_coming
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document

_TEXT_LIMIT = 200
_LONGEST_DEADLINE_SECONDS = 366 * 24 * 3_600
_NOT_THE_OWNER = "only root and the user of this module may drain it and change its neighbors"

_Text = Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)]


class DrainBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether to drain, for how many seconds running tasks may go on (None: until they end), and the reason.

    `begins` is when it begins, in seconds since 1970 by the clock of this host (None: now).
    """

    on: bool
    deadline_s: Annotated[int, msgspec.Meta(ge=0, le=_LONGEST_DEADLINE_SECONDS)] | None = None
    reason: _Text = ""
    begins: Annotated[int, msgspec.Meta(ge=0, le=2**40)] | None = None


class RemoveBody(msgspec.Struct, forbid_unknown_fields=True):
    """A neighbor to remove, whether claims are closed at once, and the reason, which it gets."""

    neighbor: _Text
    now: bool = False
    reason: _Text = ""


class LeaveBody(msgspec.Struct, forbid_unknown_fields=True):
    """A parent to leave, and the reason, which it gets."""

    parent: _Text
    reason: _Text = ""


_Body = TypeVar("_Body", DrainBody, RemoveBody, LeaveBody)


class MembershipApi:
    """Acts of the administrator on this module and its neighbors; only root and the module's own user may."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.get("/v1/drain", self._drain_state),
            web.post("/v1/drain", self._drain),
            web.post("/v1/neighbors/remove", self._remove),
            web.post("/v1/neighbors/leave", self._leave),
        ]

    async def _drain_state(self, _: web.Request) -> web.Response:
        return web.json_response(self._drained())

    async def _drain(self, request: web.Request) -> web.Response:
        body = await _checked(request, DrainBody)
        if isinstance(body, web.Response):
            return body
        deadline_ns = None if body.deadline_s is None else body.deadline_s * SECOND
        if body.begins is not None and (problem := why_not_coming("--from", body.begins)):
            return refusal(400, problem)
        begins = None if body.begins is None else self._host.clock.instant_of(body.begins)

        def drain(answer_to: AnswerTo) -> DrainRequested:
            return DrainRequested(
                answer_to=answer_to, is_on=body.on, deadline_ns=deadline_ns, text=body.reason, begins=begins
            )

        return await self._asked(request, drain, failed=409)

    async def _remove(self, request: web.Request) -> web.Response:
        body = await _checked(request, RemoveBody)
        if isinstance(body, web.Response):
            return body

        def remove(answer_to: AnswerTo) -> MemberRemoved:
            system = SystemId(body.neighbor)
            return MemberRemoved(answer_to=answer_to, system=system, is_forced=body.now, text=body.reason)

        return await self._asked(request, remove, failed=404)

    async def _leave(self, request: web.Request) -> web.Response:
        body = await _checked(request, LeaveBody)
        if isinstance(body, web.Response):
            return body

        def leave(answer_to: AnswerTo) -> LeaveRequested:
            return LeaveRequested(answer_to=answer_to, parent=SystemId(body.parent), text=body.reason)

        return await self._asked(request, leave, failed=404)

    async def _asked(
        self,
        request: web.Request,
        make: Callable[[AnswerTo], DrainRequested | MemberRemoved | LeaveRequested],
        *,
        failed: int,
    ) -> web.Response:
        """Answer when the act is stored; `failed` is the status of a problem."""
        answer = await self._host.ask(make, caller_of(request))
        if answer.problem:
            return refusal(status_of(answer.problem, otherwise=failed), answer.problem)
        return web.json_response(self._drained())

    def _drained(self) -> Document:
        return {
            "name": self._host.system,
            "drain": drain_document(self._host),
            "maintenance": maintenance_document(self._host),
        }


def maintenance_document(host: Host) -> Document | None:
    """Describe an announced drain: when it begins, its deadline, and the reason; None if there is none."""
    announced = queries.announced_of(host.module.state)
    if announced is None:
        return None
    return {
        "begins": time_document(announced.begins),
        "deadline": time_document(announced.deadline),
        "reason": announced.text,
    }


def drain_document(host: Host) -> Document | None:
    """Describe the drain of a module, what is left, and how many tasks its users still have; None if it takes work."""
    drain = queries.drain_of(host.module.state)
    if drain is None:
        return None
    left = queries.remaining(host.module.state)
    return {
        "since": time_document(drain.since),
        "deadline": time_document(drain.deadline),
        "reason": drain.text,
        "left": remaining_document(left),
        "empty": left.is_empty,
        "own_tasks": queries.own_tasks(host.module.state),
    }


def remaining_document(left: Remaining) -> Document:
    """Count what is open: attempts here, claims granted to others and passed on, and claims of the own users."""
    return {"attempts": left.attempts, "granted": left.granted, "passed": left.passed, "held": left.held}


async def _checked(request: web.Request, kind: type[_Body]) -> _Body | web.Response:
    """Return the body of a request, or a refusal."""
    if not is_owner(request):
        return refusal(403, _NOT_THE_OWNER)
    try:
        body = await body_of(request, kind)
    except msgspec.MsgspecError as error:
        return refusal(400, f"the request is malformed: {error}")
    if has_control(body.reason):
        return refusal(400, "the reason contains control characters")
    return body
