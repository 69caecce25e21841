"""The local API for links with neighbors: their state, shutting a neighbor off, and readmitting one."""

from collections.abc import Callable, Iterator
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, MemberAdded, ShutOffRequested
from messiahs.core.interface.membership_rows import RemovedRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.texts import has_control
from messiahs.daemon.api.membership import remaining_document
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal, status_of
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document

Listed = tuple[Neighbor, str]
_TEXT_LIMIT = 200
_NOT_THE_OWNER = "only root and the user of this module may shut off and readmit its neighbors"


class ShutOffBody(msgspec.Struct, forbid_unknown_fields=True):
    """A neighbor to shut off or to readmit, and the reason for the people of this site."""

    neighbor: Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)]
    off: bool
    reason: Annotated[str, msgspec.Meta(max_length=_TEXT_LIMIT)] = ""


class NeighborsApi:
    """The links of this module. Everybody may see them; only root and the module's own user may change one."""

    def __init__(self, host: Host, listed: Callable[[SystemId], Listed | None]) -> None:
        """Serve a module; `listed` has the neighbors of the topology file in force, with where it dials them."""
        self._host, self._listed = host, listed

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [web.get("/v1/neighbors", self._list), web.post("/v1/neighbors", self._change)]

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"neighbors": list(self._documents()), "removed": list(self._removed())})

    async def _change(self, request: web.Request) -> web.Response:
        """Shut a neighbor off, or readmit it; the answer follows when that is stored."""
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        try:
            body = await body_of(request, ShutOffBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names no neighbor to shut off or readmit: {error}")
        if has_control(body.reason):
            return refusal(400, "the reason contains control characters")
        neighbor, known = SystemId(body.neighbor), queries.neighbors_of(self._host.module.state)
        removed = queries.removed_from(self._host.module.state).get(neighbor)
        if (
            removed is not None
            and not body.off
            and neighbor not in queries.summary_of(self._host.module.state).shut_off
        ):
            return await self._bring_back(removed, reason=body.reason, by=caller_of(request))
        if neighbor not in known and neighbor not in queries.summary_of(self._host.module.state).shut_off:
            return refusal(404, f"{neighbor} is no neighbor of {self._host.system}, which has {', '.join(known)}")

        def change(answer_to: AnswerTo) -> ShutOffRequested:
            return ShutOffRequested(answer_to=answer_to, neighbor=neighbor, is_off=body.off, text=body.reason)

        answer = await self._host.ask(change, caller_of(request))
        if answer.problem:
            return refusal(status_of(answer.problem, otherwise=507), answer.problem)
        return web.json_response({"neighbors": list(self._documents())})

    async def _bring_back(self, removed: RemovedRow, *, reason: str, by: Caller) -> web.Response:
        """Add a removed neighbor again as the topology file lists it; others join with a token."""
        listed = self._listed(removed.system)
        if not removed.is_ended:
            text = f"the link with {removed.system} is being ended; repeat this command when it has ended"
            return refusal(409, text)
        if listed is None:
            text = f"{removed.system} was removed, and the topology file does not list it: let it join with a token"
            return refusal(404, f"{text} (`messiahs join token`)")
        neighbor, address = listed

        def add(answer_to: AnswerTo) -> MemberAdded:
            text = reason or "it was readmitted"
            return MemberAdded(answer_to=answer_to, neighbor=neighbor, address=address, text=text, is_by_file=True)

        answer = await self._host.ask(add, by)
        if answer.problem:
            return refusal(status_of(answer.problem, otherwise=507), answer.problem)
        return web.json_response({"neighbors": list(self._documents())})

    def _documents(self) -> Iterator[Document]:
        module = self._host.module
        known, shut_off = queries.neighbors_of(module.state), queries.summary_of(module.state).shut_off
        linked, unlinked = queries.summary_of(module.state).linked, queries.why_unlinked(module.state)
        for name in (*known, *(each for each in shut_off if each not in known)):
            row = shut_off.get(name)
            yield {
                "name": name,
                "relation": known[name].relation.value if name in known else None,
                "dialed_at": self._dialed_at(name),
                "state": "shut_off" if row is not None else "linked" if name in linked else "down",
                "joined": self._joined(name),
                "leaving": self._leaving(name),
                "text": unlinked.get(name, ""),
                "throttled": self._host.driver.is_throttled(name),
                "shut_off_since": time_document(row.since) if row is not None else None,
                "reason": row.text if row is not None else "",
            }

    def _removed(self) -> Iterator[Document]:
        """Describe who was removed from the neighbors, and by whom (see `RemovalCause`)."""
        for name, row in queries.removed_from(self._host.module.state).items():
            if row.is_ended:
                yield {"name": name, "since": time_document(row.since), "by": row.cause.value, "reason": row.text}

    def _dialed_at(self, name: SystemId) -> str | None:
        """Return where this module dials a neighbor; None if the neighbor dials, or its link is being ended."""
        row, listed = queries.members_of(self._host.module.state).get(name), self._listed(name)
        if row is not None:
            return row.address or None
        return (listed[1] or None) if listed is not None else None

    def _joined(self, name: SystemId) -> Document | None:
        """Describe a neighbor that joined, or whose relations were changed, at run time; None for others."""
        row = queries.members_of(self._host.module.state).get(name)
        return None if row is None else {"since": time_document(row.since), "reason": row.text}

    def _leaving(self, name: SystemId) -> Document | None:
        """Describe the end of a link that still has claims; None for others."""
        row = queries.removed_from(self._host.module.state).get(name)
        if row is None or row.is_ended:
            return None
        left = remaining_document(queries.remaining_with(self._host.module.state, name))
        return {"since": time_document(row.since), "reason": row.text, "left": left}
