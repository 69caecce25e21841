"""The request of the local API that submits several submissions together: all are stored, or none."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core.interface.dependencies import DEPENDENCY_LIMIT, EACH_LIMIT, Dependency, WantedOutput, When
from messiahs.core.interface.events import AnswerTo, Submitted, WorkflowSubmitted
from messiahs.core.interface.limits import WORKFLOW_LIMIT
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import TaskId, part_key
from messiahs.core.model.instants import MICROSECOND
from messiahs.core.model.output_names import why_never_left
from messiahs.daemon.api.files import finding_missing, upload_first
from messiahs.daemon.api.json_slices import SKIP_NS, SMALL_BYTES, Elements, Steps, decoded, decoding, decoding_list
from messiahs.daemon.api.notifying import notification_of
from messiahs.daemon.api.paced_handlers import NextSlice, in_slices
from messiahs.daemon.api.predecessors import (
    DependencyError,
    Ends,
    OutputBody,
    ends_named,
    predecessors_named,
    predecessors_stated,
    why_not_each,
)
from messiahs.daemon.api.requests import ask_stored, content_of, refusal, status_of, supplier_at, user_of
from messiahs.daemon.api.same_key import difference
from messiahs.daemon.api.submit_body import LISTS, TasksBody, hashes_in, own_key, submitting
from messiahs.daemon.api.submit_checks import ONLY_OF_GOOD_ENDS, TOO_MANY_DEPENDENCIES, checking, problem_of_key
from messiahs.daemon.api.submit_room import why_no_room
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host
from messiahs.errors import MessiahsError

_PART_NS, _DEPENDENCY_NS = 50 * MICROSECOND, 1 * MICROSECOND
"""What a submission and a dependency on another one are expected to cost."""


class WithinBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A submission of the same workflow, by its place from 0, and what has to have happened to it."""

    place: Annotated[int, msgspec.Meta(ge=0)]
    when: When
    outputs: tuple[OutputBody, ...] = ()


class PartBody(TasksBody, forbid_unknown_fields=True, kw_only=True):
    """One submission of a workflow; it may depend on earlier ones."""

    within: tuple[WithinBody, ...] = ()


class WorkflowBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a workflow, which has one key."""

    key: str
    submissions: Annotated[tuple[PartBody, ...], msgspec.Meta(min_length=1, max_length=WORKFLOW_LIMIT)]


class _EnvelopeBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a large workflow, whose submissions are decoded one by one."""

    key: str
    submissions: msgspec.Raw


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
            body = await in_slices(decoding_workflow(await content_of(request)))
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request is not a workflow: {error}")
        if problem := problem_of_key(body.key):
            return refusal(400, problem)
        user = user_of(request)
        is_known = self._tasks.has_key(part_key(own_key(user, body.key), 0))
        if why := why_no_room(self._host.store, user, is_known=is_known):
            return refusal(507, why)
        try:
            submitted = await in_slices(self._checking(body, request))
            return await self._answered(body, submitted, request)
        except PartError as error:
            document = {"error": str(error), "place": error.place}
            return web.json_response(document, status=400)

    def _checking(self, body: WorkflowBody, request: web.Request) -> Steps[list[Submitted]]:
        """Return the submissions without their dependencies."""
        user, supplier = user_of(request), supplier_at(request)
        key, looked_up = own_key(user, body.key), set[bytes]()
        submitted: list[Submitted] = []
        for place, part in enumerate(body.submissions):
            yield _PART_NS + len(part.within) * _DEPENDENCY_NS
            taken = [output.to for each in part.within for output in each.outputs]
            if problem := _problem_within(body.submissions, place) or (yield from checking(part, taken=taken)):
                raise PartError(place, problem)
            hashes = set(hashes_in(part)) - looked_up
            if missing := (yield from finding_missing(self._host.files, hashes, of=supplier)):
                raise PartError(place, upload_first(missing))
            looked_up |= hashes
            tdv = TDV(sorted_pairs({"cpus": 1, **part.tdv, "origin": self._host.system, "user": user}))
            notification = notification_of(part, request, self._host)
            if isinstance(notification, str):
                raise PartError(place, notification)
            submitted.append((yield from submitting(part, tdv, key=key, notification=notification)))
        return submitted

    async def _answered(self, body: WorkflowBody, submitted: list[Submitted], request: web.Request) -> web.Response:
        user, parts = user_of(request), body.submissions
        others = ((place, each) for place, part in enumerate(parts) for each in part.after)
        each_member = [(place, each) for place, each in others if each.when == When.EACH]
        if len(each_member) > EACH_LIMIT:
            text = f"a workflow can wait, member by member, for at most {EACH_LIMIT} arrays that are not in it"
            raise PartError(each_member[EACH_LIMIT][0], text)
        within = await in_slices(_earlier(parts))
        outputs = _wanted(parts)
        key = own_key(user, body.key)

        async def prepare() -> Callable[[AnswerTo], WorkflowSubmitted]:
            ends = await ends_named((each for _, each in each_member), self._tasks)
            await self._add_predecessors(submitted, body, user=user, ends=ends)
            return lambda answer_to: WorkflowSubmitted(
                answer_to=answer_to, key=key, submissions=tuple(submitted), within=within, outputs=outputs
            )

        answer = await ask_stored(self._host, prepare, request)
        if answer.problem.startswith(("no_space", "no_files")):
            return refusal(status_of(answer.problem, otherwise=400), answer.problem)
        if answer.problem or answer.task is None:
            raise PartError(max(0, answer.count - 1), answer.problem)
        ids = [answer.task._replace(number=answer.task.number + place) for place in range(len(parts))]
        await in_slices(self._comparing(body, submitted, ids))
        return web.json_response({"ids": [str(task) for task in ids]})

    async def _add_predecessors(self, submitted: list[Submitted], body: WorkflowBody, *, user: str, ends: Ends) -> None:
        here, is_repeated = self._host.system, self._tasks.has_key(part_key(own_key(user, body.key), 0))
        for place, part in enumerate(body.submissions):
            if not part.after:
                continue
            await NextSlice()
            try:
                after = (
                    predecessors_stated(part.after, self._tasks)
                    if is_repeated
                    else await predecessors_named(
                        part.after, self._tasks, ends=ends, members=part.members, user=user, here=here
                    )
                )
            except DependencyError as error:
                raise PartError(place, str(error)) from error
            submitted[place] = replace(submitted[place], after=after)

    def _comparing(self, body: WorkflowBody, submitted: list[Submitted], ids: list[TaskId]) -> Steps[None]:
        """Raise a `PartError` if other submissions are stored under the key: an earlier request may have used it.

        The core has compared how many there are, and that all are known.
        """
        for place, (part, asked, task) in enumerate(zip(body.submissions, submitted, ids, strict=True)):
            yield _PART_NS + len(part.within) * _DEPENDENCY_NS
            found = self._tasks.find(str(task))
            if found is None:
                # It was known when the core answered, and was cleaned up since.
                continue
            within = (
                Dependency(on=ids[each.place], when=each.when.value, outputs=tuple(one.wanted for one in each.outputs))
                for each in part.within
            )
            if other := difference(found.submission, asked, within=within):
                raise PartError(place, f"the key `{body.key}` is that of {task}, {other}; use another key")


def decoding_workflow(content: bytes) -> Steps[WorkflowBody]:
    """Decode the body of a workflow, one submission after the other if it is large; errors as of `decoding`."""
    if len(content) <= SMALL_BYTES:
        return (yield from decoding(content, WorkflowBody, {}))
    yield len(content) * SKIP_NS
    envelope = decoded(content, _EnvelopeBody)
    raws = yield from decoding_list(
        memoryview(envelope.submissions), msgspec.Raw, Elements.OBJECTS, name="submissions", most=WORKFLOW_LIMIT
    )
    if not raws:
        raise msgspec.ValidationError("Expected `array` of length >= 1 - at `$.submissions`")
    parts = []
    for place, raw in enumerate(raws):
        try:
            parts.append((yield from decoding(memoryview(raw), PartBody, LISTS)))
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(_in_part(str(error), place)) from None
    return WorkflowBody(key=envelope.key, submissions=tuple(parts))


def _in_part(text: str, place: int) -> str:
    at = f"`$.submissions[{place}]"
    return text.replace("`$", at) if "`$" in text else f"{text} - at {at}`"


def _earlier(parts: tuple[PartBody, ...]) -> Steps[tuple[tuple[tuple[int, str], ...], ...]]:
    """Return the dependencies of each on earlier ones, each once."""
    within = []
    for part in parts:
        yield len(part.within) * _DEPENDENCY_NS
        within.append(tuple(dict.fromkeys((each.place, each.when.value) for each in part.within)))
    return tuple(within)


def _wanted(parts: tuple[PartBody, ...]) -> tuple[tuple[tuple[int, WantedOutput], ...], ...]:
    """Return the outputs that each takes of earlier ones; nothing if none does."""
    wanted = tuple(
        tuple((each.place, output.wanted) for each in part.within for output in each.outputs) for part in parts
    )
    return wanted if any(wanted) else ()


def _problem_within(parts: tuple[PartBody, ...], place: int) -> str:
    part = parts[place]
    if part.stdin:
        return "a task of a workflow has no standard input"
    if part.terminal is not None:
        return "a task of a workflow has no terminal"
    if len(part.after) + len(part.within) > DEPENDENCY_LIMIT:
        return TOO_MANY_DEPENDENCIES
    if any(each.place >= place for each in part.within):
        return "a task of a workflow can wait only for earlier ones of it"
    taking = ((parts[each.place], each) for each in part.within if each.outputs)
    if why := next(filter(None, (_why_not_taken(earlier, each) for earlier, each in taking)), ""):
        return why
    others = (parts[each.place] for each in part.within if each.when == When.EACH)
    return next(filter(None, (why_not_each(part.members, one.members, on=f"`{one.name}`") for one in others)), "")


def _why_not_taken(part: PartBody, within: WithinBody) -> str:
    if within.when != When.OK:
        return ONLY_OF_GOOD_ENDS
    if part.members:
        return f"`{part.name}` has {part.members} tasks, and outputs are taken of single ones"
    names = (why_never_left(part.outputs, output.name, of=f"`{part.name}`") for output in within.outputs)
    return next(filter(None, names), "")
