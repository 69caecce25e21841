"""Requests of the local API to forget ended tasks before their retention is over."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, CleanRequested
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import SECOND
from messiahs.daemon.api.connection_limits import have_alone
from messiahs.daemon.api.paced_handlers import InThread
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, caller_of, refusal, status_of, user_of
from messiahs.daemon.api.task_search import AttemptError, Found, Tasks, each_of, in_turn
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document
from messiahs.daemon.transfer.output_arrivals import Outputs

IDS_LIMIT = 128
"""The most ids in one request, and about how many submissions one looks at."""


class CleanBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Ids, or else the user's own tasks that ended `older_than_s` ago or longer, behind the cursor `after`."""

    ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=IDS_LIMIT)] = ()
    older_than_s: Annotated[float, msgspec.Meta(ge=0, le=1e10)] | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=10**18)] = 0


class CleanApi:
    """Handler of `/v1/clean`; a client may repeat it."""

    def __init__(self, host: Host, outputs: Outputs) -> None:
        self._host, self._outputs, self._tasks = host, outputs, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/clean", self._clean)]

    async def _clean(self, request: web.Request) -> web.Response:
        """Forget ended tasks, and answer with their sizes, with those that are kept, and the next cursor (0: none)."""
        try:
            body = await body_of(request, CleanBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names no tasks: {error}")
        kept: list[Document] = []
        after = 0
        if body.ids:
            await have_alone(request)
            found = self._each_named(request, body.ids, kept)
        elif body.older_than_s is not None:
            page, after = await self._older(request, body.older_than_s, after=body.after)
            found = each_of(page)
        else:
            return refusal(400, "the request names no tasks, and does not say how old")
        # Not the arrays themselves: these may be large.
        members: dict[TaskId, int] = {}
        async for one in found:
            # For each, everything that has not ended may be looked at.
            await asyncio.sleep(0)
            if not self._is_kept(one, kept):
                members[one.id] = max(1, one.submission.members)
        memory = {task: self._host.store.sizes.of_submission(task) for task in members}
        sizes = {task: await asyncio.to_thread(self._outputs.stored_bytes, task) for task in members}

        def clean(answer_to: AnswerTo) -> CleanRequested:
            return CleanRequested(answer_to=answer_to, tasks=tuple(sizes))

        answer = await self._host.ask(clean, caller_of(request)) if sizes else None
        if answer is not None and answer.problem:
            return refusal(status_of(answer.problem, otherwise=507), answer.problem)
        # One may have been retried meanwhile.
        gone = [task for task in members if queries.is_forgotten(self._host.module.state, task)]
        cleaned = [
            {"id": str(task), "tasks": members[task], "bytes": sizes[task], "memory_bytes": memory[task]}
            for task in gone
        ]
        return web.json_response({"cleaned": cleaned, "kept": kept, "after": after})

    async def _each_named(
        self, request: web.Request, names: tuple[str, ...], kept: list[Document]
    ) -> AsyncIterator[Found]:
        """Yield what ids name, each once; those that are no tasks are noted together, at the end."""
        unknown: list[str] = []
        async for name in in_turn(dict.fromkeys(names)):
            found = await self._named(request, name, kept, unknown)
            if found is not None:
                yield found
        why = await self._tasks.why_each_unknown(unknown)
        kept.extend({"id": name, "error": why.get(name) or f"no task {name} is known here"} for name in unknown)

    async def _named(self, request: web.Request, name: str, kept: list[Document], unknown: list[str]) -> Found | None:
        """Return what an id names, if this user may clean it; else note why it is kept, or that it names no task."""
        try:
            found, why = await self._tasks.look_up(name), ""
            if found is None:
                unknown.append(name)
        except AttemptError as error:
            found, why = None, str(error)
        if found is not None:
            is_own = found.submission.tdv.description()["user"] == user_of(request)
            if not is_own and not is_owner(request):
                why = f"{found.id} belongs to another user"
            elif found.id.member:
                why = f"{found.id} is kept as long as its array: clean {found.id.submission}"
        if why:
            kept.append({"id": name, "error": why})
        return None if why else found

    async def _older(self, request: web.Request, seconds: float, *, after: int) -> tuple[list[Found], int]:
        """Return a page of the user's own submissions that ended so long ago, and the number of the last one read."""
        last = queries.submission_numbered(self._host.module.state, after) if after else None
        page = await InThread(partial(self._host.store.submissions, after=last))
        before = self._host.clock.now() - int(seconds * SECOND)
        mine = ((row, task) for row, task in page if row.user == user_of(request))
        read = ((row, task) for row, task in mine if row.ended_at is not None and row.ended_at <= before)
        ended = (self._tasks.as_it_is(row, task) for row, task in read)
        # A retry may have opened one since it was read, or the user may have cleaned it up.
        module = self._host.module
        found = [one for one in ended if one.is_final and not queries.is_forgotten(module.state, one.id)]
        return found, page[-1][0].id.number if page else 0

    def _is_kept(self, found: Found, kept: list[Document]) -> bool:
        """Return whether tasks have to be kept, and note why."""
        error = ""
        # One that is not live has ended, even if that was stored only after it was read.
        if not found.is_final and queries.live_submission(self._host.module.state, found.id) is not None:
            error = self._why_open(found.id)
        elif (other := queries.dependent_on(self._host.module.state, found.id)) is not None:
            error = f"{other} depends on {found.id}, and has not ended"
        if error:
            kept.append({"id": str(found.id), "error": error})
        return bool(error)

    def _why_open(self, submission: TaskId) -> str:
        """Return what a user can do about a submission that has not ended: nothing, if all of it is cancelled."""
        killed = queries.killed_but_open(self._host.module.state, submission)
        if not killed:
            return f"{submission} has not ended: `messiahs cancel {submission}` ends it"
        places = ", ".join(sorted({row.executed_on for row in killed}))
        limits = [queries.may_run_until(self._host.module.state, row) for row in killed]
        latest = max((limit for limit in limits if limit is not None), default=None)
        until = "" if latest is None else f" until {time_document(latest)}"
        return f"{submission} may run at {places}{until}: its end has not been reported"
