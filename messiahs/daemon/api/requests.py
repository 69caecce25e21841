"""Common steps of requests to the local API: the user, the named task, and refusals."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

from aiohttp import web

from messiahs.core.interface.actions import Answer
from messiahs.core.interface.events import AnswerTo
from messiahs.core.origin.submission import NOT_STORED
from messiahs.daemon.api.connection_limits import have_alone, uid_at, user_at
from messiahs.daemon.api.json_slices import SMALL_BYTES, Elements, decoding
from messiahs.daemon.api.paced_handlers import in_slices
from messiahs.daemon.api.task_search import AttemptError, Found, Tasks, in_turn
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.host.host import Host
from messiahs.daemon.host.questions import Question
from messiahs.daemon.storage.suppliers import USER_PREFIX

_Body = TypeVar("_Body")
_LONGEST_SECONDS: Final = 366 * 24 * 3_600
_READINGS: Final = 3
"""Times that the tasks for which others wait are read: some may end while others are read."""
_OFFSET: Final = re.compile(r"[0-9]{1,18}")


def refusal(status: int, text: str, *, unknown_task: str = "") -> web.Response:
    """Return a refusal with its reason, and the id that names no task if that is the reason."""
    return web.json_response({"error": text, **({"unknown_task": unknown_task} if unknown_task else {})}, status=status)


def status_of(problem: str, *, otherwise: int) -> int:
    """Return the status for a problem of an answer: 507 without space on the disk, and 503 without files.

    Clients repeat a request that is refused with 503.
    """
    return {"no_space": 507, "no_files": 503}.get(problem.partition(":")[0], otherwise)


async def unknown_task(name: str, tasks: Tasks) -> web.Response:
    """Return the refusal of a request about a task that is not known, which names it (`unknown_task`)."""
    return refusal(404, await tasks.why_unknown(name) or f"no task {name} is known here", unknown_task=name)


async def body_of(request: web.Request, kind: type[_Body], lists: Mapping[str, Elements] | None = None, /) -> _Body:
    """Decode the JSON body of a request in slices (`decoding`).

    `msgspec.MsgspecError` if it is malformed or does not match. Of the large requests of a user, one is handled after
    the other from here on.
    """
    return await in_slices(decoding(await content_of(request), kind, lists or {}))


async def content_of(request: web.Request) -> bytes:
    """Return the body of a request; if it is large, once no other large request of the same user is handled."""
    content = await request.read()
    if len(content) > SMALL_BYTES:
        await have_alone(request)
    return content


async def ask_stored(
    host: Host, prepare: Callable[[], Awaitable[Callable[[AnswerTo], Question]]], request: web.Request, /
) -> Answer:
    """Ask the core what is prepared; prepare it and ask anew, while it answers that something read is not stored yet.

    Three times in all.
    """
    for _ in range(_READINGS):
        answer = await host.ask(await prepare(), caller_of(request))
        if not answer.problem.endswith(NOT_STORED):
            break
    return answer


def offset_of(request: web.Request) -> int | None:
    """Return the requested offset in bytes, by default 0; None if it is not a number of bytes."""
    text = request.query.get("offset", "0")
    return int(text) if _OFFSET.fullmatch(text) else None


def user_of(request: web.Request) -> str:
    """Return the name of the user at the other end, `uid-N` without an account; errors as of `uid_of`."""
    if request.transport is None:
        raise ConnectionResetError
    return user_at(request.transport)


def supplier_at(request: web.Request) -> str:
    """Return the user at the other end of the socket as a supplier of files."""
    return f"{USER_PREFIX}{user_of(request)}"


async def task_named(name: str, tasks: Tasks) -> Found | None:
    """Return the task, or all tasks of a submission, that a user named; answers with 409 for an attempt of the past."""
    try:
        return await tasks.look_up(name)
    except AttemptError as error:
        raise web.HTTPConflict(text=refusal(409, str(error)).text, content_type="application/json") from error


async def each_named(names: Iterable[str], tasks: Tasks) -> AsyncIterator[tuple[str, Found | None]]:
    """Yield what `task_named` returns for each of many names; other requests are handled in between."""
    async for name in in_turn(names):
        yield name, await task_named(name, tasks)


async def known_task(request: web.Request, tasks: Tasks) -> Found | web.Response:
    """Return the task, or all tasks of a submission, that a request names, or a refusal."""
    found = await task_named(request.match_info["id"], tasks)
    return found if found is not None else await unknown_task(request.match_info["id"], tasks)


async def own_task(request: web.Request, tasks: Tasks) -> Found | web.Response:
    """Return the task that a request names if the user may see it: root may see all."""
    found = await known_task(request, tasks)
    if isinstance(found, Found) and uid_of(request) and found.submission.tdv.description()["user"] != user_of(request):
        return refusal(403, f"{found.id} belongs to another user")
    return found


async def own_single_task(request: web.Request, tasks: Tasks) -> Found | web.Response:
    """Return a single task of the user, not an array, or a refusal."""
    found = await own_task(request, tasks)
    if isinstance(found, Found) and found.row is None:
        return refusal(400, f"{found.id} has {found.submission.members} tasks: name one, such as {found.id}.1")
    return found


def caller_of(request: web.Request) -> Caller:
    """Return the user at the other end of the socket, as the author of a decision."""
    return Caller(user_of(request), uid_of(request))


def uid_of(request: web.Request) -> int:
    """Return the uid at the other end, as known to the kernel; `ConnectionResetError` if the client has left."""
    if request.transport is None:
        # While the handler waited for its turn, the client left.
        raise ConnectionResetError
    return uid_at(request.transport)


def why_not_coming(name: str, wall_seconds: int) -> str:
    """Return why a time, in seconds since 1970, cannot be that of something that is to come; empty if it can."""
    left_seconds = wall_seconds - time.time()
    if left_seconds <= 0:
        return f"{name}: this time has passed"
    return "" if left_seconds <= _LONGEST_SECONDS else f"{name}: at most a year from now"
