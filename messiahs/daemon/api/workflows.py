"""The request of the local API that submits several submissions together: all are stored, or none."""

import asyncio
from dataclasses import replace
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core.interface.dependencies import DEPENDENCY_LIMIT, EACH_LIMIT, Dependency, When
from messiahs.core.interface.events import AnswerTo, Submitted, WorkflowSubmitted
from messiahs.core.interface.limits import WORKFLOW_LIMIT
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import TaskId
from messiahs.daemon.api.notifying import notification_of
from messiahs.daemon.api.predecessors import DependencyError, Ends, ends_named, predecessors_named, why_not_each
from messiahs.daemon.api.requests import ask_stored, body_of, refusal, supplier_at, user_of
from messiahs.daemon.api.same_key import difference
from messiahs.daemon.api.submit_body import (
    TOO_MANY_DEPENDENCIES,
    TasksBody,
    hashes_in,
    own_key,
    problem_of,
    problem_of_key,
    submitted_by,
)
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host
from messiahs.errors import MessiahsError

_SLICE_TASKS = 64
"""Submissions that are looked at before other work is let in."""


class WithinBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A submission of the same workflow, by its place from 0, and what has to have happened to it."""

    place: Annotated[int, msgspec.Meta(ge=0)]
    when: When


class PartBody(TasksBody, forbid_unknown_fields=True, kw_only=True):
    """One submission of a workflow; it may depend on earlier ones."""

    within: tuple[WithinBody, ...] = ()


class WorkflowBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a workflow, which has one key."""

    key: str
    submissions: Annotated[tuple[PartBody, ...], msgspec.Meta(min_length=1, max_length=WORKFLOW_LIMIT)]


class PartError(MessiahsError):
    """A submission of a workflow, at its `place` from 0, is refused, so all are; the text says why."""

    def __init__(self, place: int, text: str) -> None:
        super().__init__(text)
        self.place = place


class WorkflowsApi:
    """Handler of `/v1/workflows`; a client may repeat the request after an interruption."""

    def __init__(self, host: Host) -> None:
        self._host, self._tasks = host, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/workflows", self._submit)]

    async def _submit(self, request: web.Request) -> web.Response:
        """Answer with the ids in the order of the submissions; a refusal has the `place` of the one at fault."""
        try:
            body = await body_of(request, WorkflowBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request is not a workflow: {error}")
        if problem := problem_of_key(body.key):
            return refusal(400, problem)
        if not self._host.store.has_room():
            return refusal(507, "no_space: the disk of this module is full; nothing was submitted")
        try:
            submitted = await self._checked(body, request)
            return await self._answered(body, submitted, request)
        except PartError as error:
            document = {"error": str(error), "place": error.place}
            return web.json_response(document, status=400)

    async def _checked(self, body: WorkflowBody, request: web.Request) -> list[Submitted]:
        """Return the submissions without their dependencies; the work is done in slices."""
        user, supplier = user_of(request), supplier_at(request)
        key, looked_up = own_key(user, body.key), set[bytes]()
        submitted: list[Submitted] = []
        for place, part in enumerate(body.submissions):
            if place % _SLICE_TASKS == 0:
                await asyncio.sleep(0)
            if problem := problem_of(part) or _problem_within(body.submissions, place):
                raise PartError(place, problem)
            hashes = set(hashes_in(part)) - looked_up
            if missing := self._host.files.missing(hashes, of=supplier):
                raise PartError(place, f"upload first: {', '.join(sha256.hex() for sha256 in missing)}")
            looked_up |= hashes
            tdv = TDV(sorted_pairs({"cpus": 1, **part.tdv, "origin": self._host.system, "user": user}))
            notification = notification_of(part, request, self._host)
            if isinstance(notification, str):
                raise PartError(place, notification)
            submitted.append(submitted_by(part, tdv, key=key, answer_to=AnswerTo(0), notification=notification))
        return submitted

    async def _answered(self, body: WorkflowBody, submitted: list[Submitted], request: web.Request) -> web.Response:
        user, parts = user_of(request), body.submissions
        after = [each for part in parts for each in part.after]
        each_member = [place for place, part in enumerate(parts) for each in part.after if each.when == When.EACH]
        if len(each_member) > EACH_LIMIT:
            text = f"a workflow can wait, member by member, for at most {EACH_LIMIT} arrays that are not in it"
            raise PartError(each_member[EACH_LIMIT], text)
        ends = await ends_named(after, self._tasks)

        def submit(answer_to: AnswerTo) -> WorkflowSubmitted:
            for place, part in enumerate(parts):
                if part.after:
                    submitted[place] = self._with_predecessors(submitted[place], part, place, user, ends)
            within = tuple(
                tuple((each.place, each.when.value) for each in dict.fromkeys(part.within)) for part in parts
            )
            key = own_key(user, body.key)
            return WorkflowSubmitted(answer_to=answer_to, key=key, submissions=tuple(submitted), within=within)

        answer = await ask_stored(self._host, submit, request)
        if answer.problem.startswith("no_space"):
            return refusal(507, answer.problem)
        if answer.problem or answer.task is None:
            raise PartError(max(0, answer.count - 1), answer.problem)
        ids = [answer.task._replace(number=answer.task.number + place) for place in range(len(parts))]
        await self._compare(body, submitted, ids)
        return web.json_response({"ids": [str(task) for task in ids]})

    def _with_predecessors(self, submitted: Submitted, part: PartBody, place: int, user: str, ends: Ends) -> Submitted:
        here = self._host.system
        try:
            after = predecessors_named(part.after, self._tasks, ends=ends, members=part.members, user=user, here=here)
        except DependencyError as error:
            raise PartError(place, str(error)) from error
        return replace(submitted, after=after)

    async def _compare(self, body: WorkflowBody, submitted: list[Submitted], ids: list[TaskId]) -> None:
        """Raise a `PartError` if other submissions are stored under the key: an earlier request may have used it.

        The core has compared how many there are, and that all are known.
        """
        for place, (part, asked, task) in enumerate(zip(body.submissions, submitted, ids, strict=True)):
            if place % _SLICE_TASKS == 0:
                await asyncio.sleep(0)
            found = self._tasks.find(str(task))
            if found is None:
                # It was known when the core answered, and was cleaned up since.
                continue
            within = (Dependency(on=ids[each.place], when=each.when.value) for each in part.within)
            if other := difference(found.submission, asked, within=within):
                raise PartError(place, f"the key `{body.key}` is that of {task}, {other}; use another key")


def _problem_within(parts: tuple[PartBody, ...], place: int) -> str:
    part = parts[place]
    if part.stdin:
        return "a task of a workflow has no standard input"
    if any(each.place >= place for each in part.within):
        return "a task of a workflow can wait only for earlier ones of it"
    if len(part.after) + len(part.within) > DEPENDENCY_LIMIT:
        return TOO_MANY_DEPENDENCIES
    others = (parts[each.place] for each in part.within if each.when == When.EACH)
    return next(filter(None, (why_not_each(part.members, one.members, on=f"`{one.name}`") for one in others)), "")
