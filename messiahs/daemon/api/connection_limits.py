"""Limits on connections to the local API, and on the time that a request may take to arrive.

Users do not block each other: connections are counted by account, and one without a complete request makes room for a
new one. Large bodies that are kept in memory are read a few at a time for each account. Handlers go on in the turns of
their users, who bear the cost.
"""

import asyncio
import json
import logging
import resource
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Container
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_server import Server

from messiahs.core.model.instants import MICROSECOND
from messiahs.daemon.api.malformed_requests import as_user
from messiahs.daemon.api.paced_handlers import paced
from messiahs.daemon.api.user_names import UserNames
from messiahs.daemon.host.user_turns import UserTurns

_LOG = logging.getLogger(__name__)
_CREDENTIALS = struct.Struct("3i")
HEAD_SECONDS: Final = 10.0
"""Maximum time until the head of a request has arrived, and until the first byte on a new connection."""
BODY_SECONDS: Final = 30.0
"""Maximum time without any bytes of a body."""
ACCEPT_NS: Final = 100 * MICROSECOND
"""What a connection costs before its user is known, and when it ends."""
_REFUSED_SECONDS = 1.0
_SMALL_BODY_BYTES: Final = 64 << 10
_SHARE_OF_ALL, _SHARE_OF_ONE = 4, 16
_MOST_FILES = 65_536
_MOST_OF_ALL, _MOST_OF_ONE = 4_096, 1_024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on connections, of one account and of all accounts except root, and on their silence.

    `bodies` is how many bodies above 64 KiB one account may have in memory, and `long_answers` how many of its
    connections may have an answer of which a piece is in memory until the client reads it.
    """

    of_one: int
    of_all: int
    bodies: int = 8
    long_answers: int = 64
    head_seconds: float = HEAD_SECONDS
    body_seconds: float = BODY_SECONDS


def raise_file_limit() -> int:
    """Raise this process's limit of open files to the maximum; return the earlier limit, which its tasks keep."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, _MOST_FILES)), hard))
    return soft


def limits_of_this_process() -> Limits:
    """Derive limits that leave most of this process's files to neighbors, tasks and the disk."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Limits(of_one=min(_MOST_OF_ONE, files // _SHARE_OF_ONE), of_all=min(_MOST_OF_ALL, files // _SHARE_OF_ALL))


class ConnectionGate:
    """Creates the protocol of each new connection (mutable); its `middleware` records when requests arrive.

    The accounts `task_uids` run tasks, which are no users of the module.
    """

    def __init__(self, limits: Limits, turns: UserTurns, *, names: UserNames, task_uids: Container[int] = ()) -> None:
        self.limits, self.turns = limits, turns
        self._names = names
        self.task_uids = task_uids
        self.server: Server | None = None
        self.refused = 0
        """Refused connections that are still read."""
        self._connections: dict[RequestHandler, _Connection] = {}
        self._of_one: dict[int, dict[_Connection, None]] = {}
        """The same ones by account, the earliest first."""
        self._bodies: dict[int, asyncio.Semaphore] = {}
        """By account; kept once an account has used it."""
        self._alone: dict[int, asyncio.Lock] = {}
        """Of the large request of each account that is handled; kept as above."""

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        assert self.server is not None, "connections arrive only after the server exists"
        return _Connection(self, self.server())

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Record that the head of a request has arrived, and that the request was answered; pace its handler.

        The name of the user is asked for before: no turn of the user passes while a directory service is slow.
        """
        connection = self._connections.get(request.protocol)
        if connection is None:
            # It was closed before.
            raise ConnectionResetError
        self.turns.note_request()
        connection.begin(request)
        try:
            connection.user = await self._name_of(connection.uid)
            async with self._memory_for(request, connection.uid):
                return await paced(handler(request), connection.uid, turns=self.turns)
        finally:
            connection.end()

    def admit(self, connection: "_Connection") -> bool:
        """Whether a connection may stay; an idle one of the same account makes room for it."""
        of_one = self._of_one.get(connection.uid, {})
        is_too_many = len(of_one) >= self.limits.of_one
        if not is_too_many and len(self._connections) < self.limits.of_all:
            return True
        idle = next((each for each in of_one if each.request is None), None)
        if idle is not None:
            idle.abort("it makes room for another one")
            return True
        # Other accounts never keep root out.
        return not is_too_many and not connection.uid

    async def _name_of(self, uid: int) -> str:
        """Return the name of a user; while accounts cannot be read, the answer is 503, so that clients repeat it."""
        try:
            return await self._names.name_of(uid)
        except OSError as error:
            text = f"this module cannot look up your account ({error.strerror}: {error.filename}); try again later"
            raise web.HTTPServiceUnavailable(text=_refusal(text), content_type="application/json") from error

    def _memory_for(self, request: web.Request, uid: int) -> AbstractAsyncContextManager[object]:
        """Wait until the account may have one more large body in memory; until then little of it is read."""
        length = request.content_length if request.can_read_body else 0
        # A single file goes to the disk as it arrives.
        if "sha256" in request.match_info or (length is not None and length <= _SMALL_BODY_BYTES):
            return nullcontext()
        return self._bodies.setdefault(uid, asyncio.Semaphore(self.limits.bodies))

    def alone(self, uid: int) -> asyncio.Lock:
        """Return what the large request of an account has that is handled."""
        return self._alone.setdefault(uid, asyncio.Lock())

    def may_answer_long(self, uid: int) -> bool:
        """Whether one more connection of an account may have a long answer."""
        return sum(each.is_long for each in self._of_one.get(uid, {})) < self.limits.long_answers

    def enter(self, connection: "_Connection") -> None:
        """Count a connection."""
        self._connections[connection.handler] = connection
        self._of_one.setdefault(connection.uid, {})[connection] = None

    def leave(self, connection: "_Connection") -> None:
        """Stop counting a connection."""
        if self._connections.pop(connection.handler, None) is None:
            return
        of_one = self._of_one[connection.uid]
        del of_one[connection]
        if not of_one:
            del self._of_one[connection.uid]


class _Connection(asyncio.Protocol):
    """A connection of a local user (mutable); its data goes to aiohttp's handler."""

    def __init__(self, gate: ConnectionGate, handler: RequestHandler) -> None:
        self.handler = handler
        self.request: web.Request | None = None
        self.uid = -1
        self.user = ""
        """Name of the account, once a request has arrived."""
        self.ends_with_client = False
        """Whether the present handler is cancelled when the client closes the connection."""
        self.is_long = False
        """Whether the present answer is one of those of which an account has few at once."""
        self._alone: asyncio.Lock | None = None
        """What the present request has until it is answered, if it is a large one."""
        self._gate = gate
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since: float | None = None
        """When the current request began to arrive; None while it is answered, and between requests."""
        self._heard_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the user, or report that there are too many connections; the user pays for it."""
        assert isinstance(transport, asyncio.Transport)
        began_at = time.monotonic_ns()
        self._transport = transport
        self.uid = uid_at(transport)
        self._enter(transport)
        self._gate.turns.charge(self.uid, ACCEPT_NS + time.monotonic_ns() - began_at)

    def _enter(self, transport: asyncio.Transport) -> None:
        if self.uid in self._gate.task_uids:
            _LOG.warning("uid %s: a task tried to use the module, and was refused", self.uid)
            self._refuse(transport, _OF_TASKS)
            return
        if not self._gate.admit(self):
            _LOG.warning("uid %s: too many connections, another one was refused", self.uid)
            self._refuse(transport, _TOO_MANY)
            return
        self._gate.enter(self)
        as_user(self.uid, partial(self.handler.connection_made, transport))
        self._since = self._heard_at = asyncio.get_running_loop().time()
        self._check_later(self._gate.limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Forward received data."""
        self._heard_at = asyncio.get_running_loop().time()
        if self.request is None and self._since is None:
            self._since = self._heard_at
        if self._timer is not None:
            began_at = time.monotonic_ns()
            self.handler.data_received(data)
            self._gate.turns.charge(self.uid, time.monotonic_ns() - began_at)

    def eof_received(self) -> None:
        """Forward the end of received data."""
        if self._timer is not None:
            self.handler.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Forward the end of the connection, which counts until its request has been handled."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self.request is None:
                self._gate.leave(self)
            elif self.ends_with_client:
                self.request.task.cancel()
            self.handler.connection_lost(error)

    def pause_writing(self) -> None:
        """Forward that the user does not read."""
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        """Forward that the user reads again."""
        self.handler.resume_writing()

    def begin(self, request: web.Request) -> None:
        """Record that the head of a request has arrived."""
        self.request, self._since, self.ends_with_client = request, None, False

    def begin_long(self) -> bool:
        """Count the present answer as a long one; False if the account has too many."""
        if not self.is_long and not self._gate.may_answer_long(self.uid):
            _LOG.warning("uid %s: too many long answers, another one was refused", self.uid)
            return False
        self.is_long = True
        return True

    def end(self) -> None:
        """Record that a request was answered, or that nobody waits for its answer any more."""
        if self._alone is not None:
            self._alone.release()
        self.request, self._alone, self.is_long = None, None, False
        if self._timer is None:
            self._gate.leave(self)

    async def have_alone(self) -> None:
        """Wait until no other large request of the account is handled: others wait until this one is answered."""
        if self._alone is not None:
            return
        alone = self._gate.alone(self.uid)
        await alone.acquire()
        self._alone = alone

    def abort(self, text: str) -> None:
        """Close the connection at once."""
        assert self._transport is not None
        _LOG.warning("uid %s: a connection was ended: %s", self.uid, text)
        self._gate.leave(self)
        self._transport.abort()

    def _refuse(self, transport: asyncio.Transport, answer: bytes) -> None:
        """Send the reason, and allow a moment to read it: closing while the client sends would hide it."""
        if self._gate.refused >= self._gate.limits.of_one:
            transport.abort()
            return
        transport.write(answer)
        transport.write_eof()
        self._gate.refused += 1
        asyncio.get_running_loop().call_later(_REFUSED_SECONDS, self._hang_up, transport)

    def _hang_up(self, transport: asyncio.Transport) -> None:
        self._gate.refused -= 1
        transport.abort()

    def _check_later(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        """Close the connection if its request takes too long to arrive."""
        assert self._transport is not None
        now, limits = asyncio.get_running_loop().time(), self._gate.limits
        if self._since is not None and now - self._since >= limits.head_seconds:
            self.abort(f"no whole request within {limits.head_seconds:g} s")
        elif self._waits_for_body() and now - self._heard_at >= limits.body_seconds:
            self.abort(f"nothing of a body for {limits.body_seconds:g} s")
        else:
            self._check_later(min(limits.head_seconds, limits.body_seconds) / 2)

    def _waits_for_body(self) -> bool:
        """Whether the body is delayed by the user, and not by this module."""
        assert self._transport is not None
        return self.request is not None and not self.request.content.is_eof() and self._transport.is_reading()


def end_with_client(request: web.Request) -> None:
    """Let the handler of a request be cancelled as soon as its client closes the connection.

    It is for handlers that change nothing and may wait for long: others go on to their end, and count until then.
    Raises `ConnectionResetError` if the connection was closed before.
    """
    if request.transport is None:
        raise ConnectionResetError
    _connection_at(request.transport).ends_with_client = True


def begin_long_answer(request: web.Request) -> None:
    """Count an answer whose pieces are in memory until the client reads them; it ends as `end_with_client` says.

    With too many of one account it is refused with 503, so that clients repeat the request.
    """
    end_with_client(request)
    assert request.transport is not None, "end_with_client has looked"
    if not _connection_at(request.transport).begin_long():
        raise web.HTTPServiceUnavailable(text=_refusal(_TOO_MANY_LONG), content_type="application/json")


async def have_alone(request: web.Request) -> None:
    """Wait until no other large request of the same user is handled; others wait until this one is answered.

    Raises `ConnectionResetError` if the connection was closed before.
    """
    if request.transport is None:
        raise ConnectionResetError
    await _connection_at(request.transport).have_alone()


def user_at(transport: asyncio.Transport) -> str:
    """Return the name of the user at the other end, who has sent a request; `uid-N` without an account."""
    return _connection_at(transport).user


def uid_at(transport: asyncio.BaseTransport) -> int:
    """Return the uid at the other end of a Unix socket, as known to the kernel."""
    peer: socket.socket = transport.get_extra_info("socket")
    _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def _connection_at(transport: asyncio.Transport) -> _Connection:
    connection = transport.get_protocol()
    assert isinstance(connection, _Connection), "the gate makes all connections"
    return connection


def _refusal(text: str) -> str:
    return json.dumps({"error": text})


def _answer(status: HTTPStatus, text: str) -> bytes:
    """Return a response before any request: aiohttp makes none for a connection that it does not get."""
    body = _refusal(text).encode()
    head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


_TOO_MANY: Final = _answer(HTTPStatus.SERVICE_UNAVAILABLE, "you have too many connections with this module: close some")
_TOO_MANY_LONG: Final = (
    "you have too many connections with this module that follow, or have not read what they asked for: close some"
)
_OF_TASKS: Final = _answer(HTTPStatus.FORBIDDEN, "tasks here run as your account, and tasks may not use a module")
