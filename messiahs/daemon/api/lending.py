"""The local API for the owner's dial: `lend on` and `lend off` (MESSIAHS 2: autonomy)."""

from typing import Annotated, Final

import msgspec
from aiohttp import web

from messiahs.config.settings import MachineSettings
from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, LendRequested
from messiahs.core.interface.lending import Lent
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal, status_of, uid_of, why_not_coming
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document
from messiahs.probe.console_owners import console_owners

_NOT_THE_OWNER: Final = "only root, the user of this module, and the account at the console of its machine may lend it"
_NO_MACHINE: Final = "this module has no machine that could be lent"


class LendBody(msgspec.Struct, forbid_unknown_fields=True):
    """The position of the dial, and until when, in seconds since 1970 by the clock of this host (None: no end)."""

    lend: Lent
    until: Annotated[int, msgspec.Meta(ge=0, le=2**40)] | None = None


class LendingApi:
    """The dial; everybody may see it, and the owner may turn it."""

    def __init__(self, host: Host, machine: MachineSettings | None) -> None:
        self._host, self._machine = host, machine

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [web.get("/v1/lend", self._state), web.post("/v1/lend", self._turn)]

    async def _state(self, _: web.Request) -> web.Response:
        return web.json_response(self._document())

    async def _turn(self, request: web.Request) -> web.Response:
        """Turn the dial; answered when that is stored."""
        if self._machine is None:
            return refusal(409, _NO_MACHINE)
        if not is_owner(request) and uid_of(request) not in console_owners(self._machine.console_file):
            return refusal(403, _NOT_THE_OWNER)
        try:
            body = await body_of(request, LendBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request is malformed: {error}")
        if problem := _why_not_until(body):
            return refusal(400, problem)
        until = None if body.until is None else self._host.clock.instant_of(body.until)
        by = caller_of(request)

        def lend(answer_to: AnswerTo) -> LendRequested:
            return LendRequested(answer_to=answer_to, lent=body.lend, until=until, by=by.user)

        answer = await self._host.ask(lend, by)
        if answer.problem:
            return refusal(status_of(answer.problem, otherwise=507), answer.problem)
        return web.json_response(self._document())

    def _document(self) -> Document:
        return {"name": self._host.system, "lend": lend_document(self._host)}


def lend_document(host: Host) -> Document:
    """Describe the position of the dial, since when, by whom, and until when (None: no end, or never turned)."""
    row = queries.lending_of(host.module.state)
    if row is None:
        return {"position": Lent.POLICY.value, "since": None, "until": None, "by": ""}
    position = Lent.ON if row.is_on else Lent.OFF
    since, until = time_document(row.since), time_document(row.until)
    return {"position": position.value, "since": since, "until": until, "by": row.by}


def _why_not_until(body: LendBody) -> str:
    if body.until is None:
        return ""
    if body.lend is Lent.POLICY:
        return "`policy` has no end: it is what `on` and `off` end in"
    return why_not_coming("--until", body.until)
