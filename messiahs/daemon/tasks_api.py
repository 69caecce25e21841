"""The local API's questions about tasks: submit, status, wait, logs, cancel."""

import asyncio
import pwd
import socket
import struct
from collections.abc import Mapping

import msgspec
from aiohttp import web

from messiahs.core.attributes import TASK_ATTRIBUTES, Kind, Value
from messiahs.core.descriptions import TDV, is_valid_value, sorted_pairs
from messiahs.core.events import AnswerTo, CancelRequested, Submitted
from messiahs.core.ids import ClientKey
from messiahs.core.instants import SECOND
from messiahs.core.messages import Command
from messiahs.daemon.host import Host
from messiahs.daemon.logs import Logs
from messiahs.daemon.looking import Found, Tasks
from messiahs.executor.contract import OUTPUT_NAMES

_LONGEST_WAIT_SECONDS = 300.0
_KEY_LIMIT = 64
_USER_STATED = ("mem", "disk", "cpus", "est_time", "comm_load", "priority")


class SubmitBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a submit; `tdv` is what the user states of one task, without `$`."""

    key: str
    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    tdv: dict[str, int | str] = msgspec.field(default_factory=dict)
    requirement: str = ""
    members: int = 0
    name: str = ""
    retries: int = 0
    waits: bool = True
    deadline_s: int | None = None


class TasksApi:
    """Handlers of `/v1/tasks`; every one may be repeated by a client that was cut off."""

    def __init__(self, host: Host, logs: Logs) -> None:
        self._host, self._logs, self._tasks = host, logs, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Give the paths and their handlers."""
        return [
            web.post("/v1/tasks", self._submit),
            web.get("/v1/tasks", self._status),
            web.get("/v1/tasks/{id}/wait", self._wait),
            web.get("/v1/tasks/{id}/logs", self._read_logs),
            web.post("/v1/tasks/{id}/cancel", self._cancel),
        ]

    async def _submit(self, request: web.Request) -> web.Response:
        try:
            body = msgspec.json.decode(await request.read(), type=SubmitBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"this is no submit: {error}")
        problem = _problem_of(body)
        if problem:
            return refusal(400, problem)
        tdv = self._tdv(body.tdv, user_of(request))

        def submitted(answer_to: AnswerTo) -> Submitted:
            return Submitted(
                answer_to=answer_to,
                key=ClientKey(body.key),
                tdv=tdv,
                requirement=body.requirement,
                command=Command(argv=body.argv, env=tuple(sorted(body.env.items()))),
                members=body.members,
                name=body.name,
                retries=body.retries,
                waits=body.waits,
                deadline_ns=body.deadline_s * SECOND if body.deadline_s is not None else None,
            )

        answer = await self._host.ask(submitted)
        if answer.problem:
            return refusal(507 if answer.problem.startswith("no_space") else 400, answer.problem)
        return web.json_response({"id": str(answer.task)})

    async def _status(self, request: web.Request) -> web.Response:
        asked = request.query.getall("id", [])
        found = {text: self._tasks.find(text) for text in asked}
        listed = [one for one in found.values() if one is not None] if asked else self._tasks.find_all()
        if request.query.get("members") == "1":
            listed = [member for one in listed for member in self._tasks.members_of(one)]
        return web.json_response(
            {
                "tasks": [self._tasks.document(one) for one in listed],
                "unknown": [text for text, one in found.items() if one is None],
            }
        )

    async def _wait(self, request: web.Request) -> web.Response:
        found = self._tasks.find(request.match_info["id"])
        if found is None:
            return _unknown(request)
        try:
            seconds = min(_LONGEST_WAIT_SECONDS, max(0.0, float(request.query.get("timeout", "30"))))
        except ValueError:
            return refusal(400, "timeout is a number of seconds")
        deadline = asyncio.get_running_loop().time() + seconds
        while not found.is_final and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await self._host.task_ended(found.id, left)
            found = self._tasks.find(str(found.id)) or found
        return web.json_response(self._tasks.document(found))

    async def _read_logs(self, request: web.Request) -> web.StreamResponse:
        found = self._tasks.find(request.match_info["id"])
        if found is None:
            return _unknown(request)
        if found.row is None:
            return refusal(400, f"{found.id} has {found.submission.members} tasks: name one, such as {found.id}.1")
        name, offset = request.query.get("stream", "stdout"), request.query.get("offset", "0")
        if name not in OUTPUT_NAMES or not offset.isdecimal():
            return refusal(400, "stream is stdout or stderr, offset a number of bytes")
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        await response.prepare(request)
        follow = request.query.get("follow") == "1"
        async for piece in self._logs.read(found, name, offset=int(offset), follow=follow):
            await response.write(piece)
        await response.write_eof()
        return response

    async def _cancel(self, request: web.Request) -> web.Response:
        found = self._tasks.find(request.match_info["id"])
        if found is None:
            return _unknown(request)
        if not _may_end(request, found):
            return refusal(403, f"{found.id} belongs to another user")
        task = found.id

        def cancel(answer_to: AnswerTo) -> CancelRequested:
            return CancelRequested(answer_to=answer_to, task=task)

        answer = await self._host.ask(cancel)
        return web.json_response({"id": str(answer.task)})

    def _tdv(self, stated: Mapping[str, Value], user: str) -> TDV:
        return TDV(sorted_pairs({"cpus": 1, **stated, "origin": self._host.module.state.system, "user": user}))


def refusal(status: int, text: str) -> web.Response:
    """Say no, and why."""
    return web.json_response({"error": text}, status=status)


def user_of(request: web.Request) -> str:
    """Name the user at the other end of the socket, as the kernel knows it."""
    uid = _uid_of(request)
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def _uid_of(request: web.Request) -> int:
    assert request.transport is not None
    peer: socket.socket = request.transport.get_extra_info("socket")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def _may_end(request: web.Request, found: Found) -> bool:
    return _uid_of(request) == 0 or found.submission.tdv.description()["user"] == user_of(request)


def _unknown(request: web.Request) -> web.Response:
    return refusal(404, f"no task {request.match_info['id']} is known here")


def _problem_of(body: SubmitBody) -> str:
    for name, value in body.tdv.items():
        if name not in _USER_STATED:
            return f"${name} is not for users to state; those are: {', '.join(_USER_STATED)}"
        if TASK_ATTRIBUTES[name].kind is Kind.INTEGER and not isinstance(value, int):
            return f"${name} is an integer"
        if not is_valid_value(value):
            return f"${name} is out of range"
    if any("\0" in word for word in (*body.argv, *body.env, *body.env.values())):
        return "a NUL byte cannot be passed to a program"
    if not body.key or len(body.key) > _KEY_LIMIT:
        return "the key of a submit has 1 to 64 characters"
    if any(not name or "=" in name for name in body.env):
        return "the name of an environment variable is empty or has a ="
    return ""
