"""Requests of the local API about tasks: submit, status, wait, logs, cancel, retry."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec
from aiohttp import web

from messiahs.core.interface.dependencies import Predecessor
from messiahs.core.interface.events import AnswerTo, CancelRequested, RetryRequested, Submitted
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId, part_key
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.output_names import LOGS
from messiahs.core.model.task_files import InputFile
from messiahs.core.origin.member_runs import Run
from messiahs.core.origin.retry import failed_in, failed_untried_in, with_inputs
from messiahs.daemon.api.connection_limits import end_with_client, have_alone
from messiahs.daemon.api.explanations import Explanations
from messiahs.daemon.api.files import finding_missing, upload_first
from messiahs.daemon.api.logs import Logs
from messiahs.daemon.api.notifying import as_seen_by
from messiahs.daemon.api.paced_handlers import InThread, in_slices
from messiahs.daemon.api.pieces import Pieces
from messiahs.daemon.api.planning import PlansApi
from messiahs.daemon.api.predecessors import (
    DependencyError,
    Ends,
    conditions_of_retry,
    ends_awaited,
    predecessors_of,
    predecessors_stated,
)
from messiahs.daemon.api.requests import (
    ask_stored,
    body_of,
    caller_of,
    each_named,
    known_task,
    offset_of,
    own_single_task,
    own_task,
    refusal,
    status_of,
    supplier_at,
    user_of,
)
from messiahs.daemon.api.same_key import difference
from messiahs.daemon.api.submit_body import LISTS, RetryBody, hashes_in, own_key
from messiahs.daemon.api.submit_checks import replacing
from messiahs.daemon.api.submitted import predecessors_for, refused_dependency, refused_submit, submit_of, submitted_by
from messiahs.daemon.api.task_search import Found, Tasks, each_of, in_turn, states_of
from messiahs.daemon.host.host import Host
from messiahs.errors import ChannelError

_LONGEST_WAIT_SECONDS = 300.0
_SECONDS = re.compile("[0-9]{1,12}")


class _Wanted(NamedTuple):
    """Which tasks a listing has: those of one user (None: of all) that ended since then (0: all), or have not ended."""

    user: str | None
    ended_since: Instant
    only_active: bool

    def may_have(self, one: Found) -> bool:
        """Whether it has a task, or perhaps some members of an array."""
        is_over = one.is_final and (self.only_active or one.ended_at < self.ended_since)
        return not is_over and self.user in (None, one.submission.user)

    def has(self, one: Found) -> bool:
        """Whether it has a task, of those that it `may_have`, or an array as a whole."""
        if one.is_final:
            return not self.only_active and one.ended_at >= self.ended_since
        return not self.ended_since


class TasksApi:
    """Handlers of `/v1/tasks`; a client may repeat every request after an interruption."""

    def __init__(self, host: Host, logs: Logs) -> None:
        self._host, self._logs, self._tasks = host, logs, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.post("/v1/tasks", self._submit),
            web.get("/v1/tasks", self._status),
            web.get("/v1/endings", self._endings),
            web.get("/v1/keys", self._has_key),
            web.get("/v1/tasks/{id}/wait", self._wait),
            web.get("/v1/tasks/{id}/logs", self._read_logs),
            web.post("/v1/tasks/{id}/cancel", self._cancel),
            web.post("/v1/tasks/{id}/retry", self._retry),
            *PlansApi(self._host).routes(),
        ]

    async def _submit(self, request: web.Request) -> web.Response:
        body = await submit_of(request)
        if isinstance(body, web.Response):
            return body
        alone = await submitted_by(request, body, self._host, self._tasks)
        if isinstance(alone, web.Response):
            return alone
        missing = await in_slices(finding_missing(self._host.files, hashes_in(body), of=supplier_at(request)))
        if missing:
            return refusal(409, upload_first(missing))
        asked: list[Submitted] = []

        async def submit() -> Callable[[AnswerTo], Submitted]:
            if self._tasks.has_key(alone.key):
                after = predecessors_stated(body.after, self._tasks)
            else:
                after = await predecessors_for(request, body, self._host, self._tasks)
            asked.append(replace(alone, after=after))
            return lambda answer_to: replace(asked[-1], answer_to=answer_to)

        try:
            answer = await ask_stored(self._host, submit, request)
        except DependencyError as error:
            return refused_dependency(error)
        if answer.problem or answer.task is None:
            return refused_submit(answer.problem)
        # An earlier submit may have used the same key.
        found = await self._tasks.look_up(str(answer.task))
        other = "" if found is None else difference(found.submission, asked[-1])
        if other:
            return refusal(409, f"the key `{body.key}` is that of {answer.task}, {other}; use another key")
        return web.json_response({"id": str(answer.task)})

    async def _has_key(self, request: web.Request) -> web.Response:
        """Answer whether a key of the user is that of a stored submit, or (`file`) of a file of tasks."""
        key = own_key(user_of(request), request.query.get("key", ""))
        is_known = self._tasks.has_key(part_key(key, 0) if request.query.get("file") == "1" else key)
        return web.json_response({"known": is_known})

    async def _status(self, request: web.Request) -> web.StreamResponse:
        """Answer with one document, written piece by piece, so that other work continues in between."""
        asked = dict.fromkeys(request.query.getall("id", []))
        is_explained = _is_set(request, "explain")
        if len(asked) > 1 or is_explained:
            await have_alone(request)
        found = [(text, None if one is None else one.id) async for text, one in each_named(asked, self._tasks)]
        unknown = [text for text, one in found if one is None]
        known = {text: one for text, one in found if one is not None} if asked else None
        since = request.query.get("ended_since", "0")
        if not _SECONDS.fullmatch(since):
            return refusal(400, "ended_since must be a number of seconds since 1970")
        response = web.StreamResponse(headers={"Content-Type": "application/json; charset=utf-8"})
        await response.prepare(request)
        pieces, unfolds = Pieces(response, '{"tasks": ['), _is_set(request, "members")
        wanted = _Wanted(request.query.get("user"), Instant(int(since) * SECOND), _is_set(request, "active"))
        describing = Explanations(self._host, self._tasks) if is_explained else self._tasks
        listed = self._tasks.find_all() if known is None else self._present(known, unknown)
        async for one in self._unfolded(listed, unfolds=unfolds, wanted=wanted):
            await pieces.add(json.dumps(as_seen_by(request, await describing.document(one))))
        gone = await self._tasks.why_each_unknown(unknown)
        await pieces.end(f', "unknown": {json.dumps(unknown)}, "forgotten": {json.dumps(gone)}}}')
        return response

    async def _present(self, known: Mapping[str, TaskId], unknown: list[str]) -> AsyncIterator[Found]:
        """Look up again what was found, one after the other: large arrays are not in memory together."""
        async for text in in_turn(known):
            found = await self._tasks.look_up(str(known[text]))
            if found is None:
                # It was cleaned up since.
                unknown.append(text)
            else:
                yield found

    async def _unfolded(self, listed: AsyncIterator[Found], *, unfolds: bool, wanted: _Wanted) -> AsyncIterator[Found]:
        async for one in listed:
            if not wanted.may_have(one):
                continue
            async for member in self._tasks.members_of(one) if unfolds else each_of([one]):
                if wanted.has(member):
                    yield member

    async def _wait(self, request: web.Request) -> web.Response:
        found = await known_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        seconds = _held_seconds(request)
        if seconds is None:
            return refusal(400, "timeout must be a number of seconds")
        deadline = asyncio.get_running_loop().time() + seconds
        while not found.is_final and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await self._host.task_ended(found.id, left)
            found = await self._tasks.look_up(str(found.id)) or found
        return web.json_response(as_seen_by(request, await self._tasks.document(found)))

    async def _endings(self, request: web.Request) -> web.Response:
        """Answer with the ids of the tasks that ended after a cursor (`Endings.after`)."""
        seconds = _held_seconds(request)
        if seconds is None:
            return refusal(400, "timeout must be a number of seconds")
        page = await self._host.endings.after(request.query.get("after", ""), seconds)
        return web.json_response({"ids": [str(task) for task in page.tasks], "after": page.cursor, "gap": page.has_gap})

    async def _read_logs(self, request: web.Request) -> web.StreamResponse:
        found = await own_single_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        name, offset = request.query.get("stream", "stdout"), offset_of(request)
        if name not in LOGS or offset is None:
            return refusal(400, "stream must be stdout or stderr, offset a number of bytes")
        follow = request.query.get("follow") == "1"
        # A task may print nothing for days.
        end_with_client(request)
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        try:
            async with aclosing(self._logs.read(found, name, offset=offset, follow=follow)) as pieces:
                # Who follows learns at once that this module answers.
                first = b"" if follow else await anext(pieces, b"")
                await response.prepare(request)
                await response.write(first)
                async for piece in pieces:
                    await response.write(piece)
        except ChannelError as error:
            if not response.prepared:
                return refusal(502, str(error))
            # The client reads on, and then gets the error.
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError from error
        await response.write_eof()
        return response

    async def _cancel(self, request: web.Request) -> web.Response:
        found = await own_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        task, members = found.id, found.submission.members if found.row is None else 1
        if found.is_final:
            ended = {"has_ended": True, "states": states_of(found)}
            return web.json_response({"id": str(task), **ended, "cancelled": 0, "members": members})

        cancelled = 0
        async for page in self._tasks.pages_of(found):
            answer = await self._host.ask(partial(_cancel_of, task, page), caller_of(request))
            cancelled += answer.count
        return web.json_response({"id": str(task), "cancelled": cancelled, "members": members})

    async def _retry(self, request: web.Request) -> web.Response:
        # First of all: tasks may end before the whole body has arrived.
        try:
            body = await body_of(request, RetryBody, LISTS) if request.can_read_body else RetryBody()
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request is not a retry: {error}")
        found = await own_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        if found.submission.command.takes_stdin:
            return refusal(409, f"the standard input of {found.id} is gone: run it again")
        inputs = await in_slices(replacing(body, found.submission, member=found.id.member))
        if isinstance(inputs, str):
            return refusal(400, inputs)
        missing = await in_slices(finding_missing(self._host.files, hashes_in(body), of=supplier_at(request)))
        if missing:
            return refusal(409, upload_first(missing))
        pages = [page async for page in self._tasks.pages_of(found)]
        members = (found.id.member,) * 2 if found.id.member else (1, found.submission.members)
        present = with_inputs(found.submission, inputs, members=members)
        for page in pages if present.command.inputs or present.member_inputs else ():
            if await InThread(partial(self._lacks_inputs, present, page, is_of_killed=body.killed)):
                return refusal(409, f"inputs of {found.id} are no longer stored: submit it again")
        ends = await ends_awaited(found.submission, self._tasks)
        retried = 0
        for page in pages:
            retry = partial(self._retrying, found, page, ends, is_of_killed=body.killed, inputs=inputs)
            answer = await ask_stored(self._host, retry, request)
            if answer.problem:
                return refusal(status_of(answer.problem, otherwise=409), answer.problem)
            retried += answer.count
        return web.json_response({"id": str(found.id), "retried": retried})

    def _lacks_inputs(self, submission: SubmissionRow, members: Run, *, is_of_killed: bool) -> bool:
        """Return whether some that would run again have inputs that are gone."""
        stored = self._tasks.stored_in(submission, members)
        failed = [row.id.member for row in failed_in(stored, is_of_killed=is_of_killed)]
        known = (row.id.member for row in stored)
        untried = failed_untried_in(submission, members, stored=known, is_of_killed=is_of_killed)
        inputs = list(submission.command.inputs) if failed or untried else []
        if submission.member_inputs:
            for member in chain(failed, *(range(end.first, end.last + 1) for end in untried)):
                inputs.extend(submission.member_inputs[member - 1])
        return bool(self._host.files.missing(file.sha256 for file in inputs if file.is_file))

    async def _retrying(
        self, found: Found, page: Run, ends: Ends, /, *, is_of_killed: bool, inputs: tuple[InputFile, ...]
    ) -> Callable[[AnswerTo], RetryRequested]:
        after = await predecessors_of(found.submission, self._tasks, ends=ends)
        return partial(self._retry_of, found, page, after, is_of_killed=is_of_killed, inputs=inputs)

    def _retry_of(
        self,
        found: Found,
        members: Run,
        after: tuple[Predecessor, ...],
        answer_to: AnswerTo,
        /,
        *,
        is_of_killed: bool,
        inputs: tuple[InputFile, ...],
    ) -> RetryRequested:
        present = self._tasks.find(str(found.submission.id))
        submission = found.submission if present is None else present.submission
        # Those of an earlier release have no counts of how their members have ended.
        is_counted = submission.ended_at is None or bool(submission.endings)
        tried = self._tasks.stored_in(submission, members) if is_counted else self._tasks.stored(submission)
        stated = set(conditions_of_retry(submission))
        return RetryRequested(
            answer_to=answer_to,
            submission=submission,
            members=members,
            tried=tuple(tried),
            is_of_killed=is_of_killed,
            inputs=inputs,
            after=tuple(each for each in after if each.dependency in stated),
        )


def _cancel_of(task: TaskId, members: Run, answer_to: AnswerTo, /) -> CancelRequested:
    return CancelRequested(answer_to=answer_to, task=task, members=members)


def _held_seconds(request: web.Request) -> float | None:
    """Return for how long an answer may be held back; None if that is no number."""
    try:
        return min(_LONGEST_WAIT_SECONDS, max(0.0, float(request.query.get("timeout", "30"))))
    except ValueError:
        return None


def _is_set(request: web.Request, name: str) -> bool:
    return request.query.get(name) == "1"
