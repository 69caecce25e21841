"""Who may keep how many connections with the local API, and how long a request may take to arrive.

A user's own requests wait for nobody else: connections are counted by account, and one that has not sent a whole
request makes room for one that may. Large bodies that are kept in memory are read a few at a time for each account.
"""

import asyncio
import json
import logging
import resource
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_server import Server

_LOG = logging.getLogger(__name__)
_CREDENTIALS = struct.Struct("3i")
HEAD_SECONDS: Final = 10.0
"""How long a request may take until its head has arrived, and a connection until its first one has."""
BODY_SECONDS: Final = 30.0
"""How long nothing of a body may arrive."""
_REFUSED_SECONDS = 1.0
_SMALL_BODY_BYTES: Final = 64 << 10
_SHARE_OF_ALL, _SHARE_OF_ONE = 4, 16
_MOST_FILES = 65_536
_MOST_OF_ALL, _MOST_OF_ONE = 4_096, 1_024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections there may be, of one account and of all but root, and how long they may be silent.

    `bodies` is how many bodies above 64 KiB one account may have in memory.
    """

    of_one: int
    of_all: int
    bodies: int = 8
    head_seconds: float = HEAD_SECONDS
    body_seconds: float = BODY_SECONDS


def raise_file_limit() -> int:
    """Let this process open as many files as it may, and give how many it could before: its tasks are to keep that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, _MOST_FILES)), hard))
    return soft


def limits_of_this_process() -> Limits:
    """Leave most of the files that this process may open to neighbors, tasks and the disk."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Limits(of_one=min(_MOST_OF_ONE, files // _SHARE_OF_ONE), of_all=min(_MOST_OF_ALL, files // _SHARE_OF_ALL))


class Door:
    """Makes the protocol of each new connection (mutable); its `middleware` tells it when a request has arrived."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.server: Server | None = None
        self.refused = 0
        """Connections that were refused and are still read from."""
        self._connections: dict[RequestHandler, _Connection] = {}
        self._bodies: dict[int, asyncio.Semaphore] = {}
        """By account; one that has asked once is kept."""

    def __call__(self) -> asyncio.Protocol:
        """Give the protocol of a new connection."""
        assert self.server is not None, "it listens only when the server is there"
        return _Connection(self, self.server())

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note that a request has arrived, as far as its head, and that it was answered."""
        connection = self._connections.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.begin(request)
        try:
            async with self._memory_for(request, connection.uid):
                return await handler(request)
        finally:
            connection.end()

    def admit(self, connection: "_Connection") -> bool:
        """Say whether a connection may stay; one of the same account that only waits makes room for it."""
        of_one = [each for each in self._connections.values() if each.uid == connection.uid]
        is_too_many = len(of_one) >= self.limits.of_one
        if not is_too_many and len(self._connections) < self.limits.of_all:
            return True
        idle = next((each for each in of_one if each.request is None), None)
        if idle is not None:
            idle.abort("it makes room for another one")
            return True
        # Root is never kept out by others.
        return not is_too_many and not connection.uid

    def _memory_for(self, request: web.Request, uid: int) -> AbstractAsyncContextManager[object]:
        """Wait until the account may have one more large body in memory; until then little of it is read."""
        length = request.content_length if request.can_read_body else 0
        # A single file goes to the disk as it comes.
        if "sha256" in request.match_info or (length is not None and length <= _SMALL_BODY_BYTES):
            return nullcontext()
        return self._bodies.setdefault(uid, asyncio.Semaphore(self.limits.bodies))

    def enter(self, connection: "_Connection") -> None:
        """Count a connection."""
        self._connections[connection.handler] = connection

    def leave(self, connection: "_Connection") -> None:
        """Count a connection no longer."""
        self._connections.pop(connection.handler, None)


class _Connection(asyncio.Protocol):
    """A connection of a local user (mutable); what arrives goes to aiohttp's handler."""

    def __init__(self, door: Door, handler: RequestHandler) -> None:
        self.handler = handler
        self.request: web.Request | None = None
        self.uid = -1
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since: float | None = None
        """When what is to become a request began; None while one is answered, and between two."""
        self._heard_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let a user in, or say that there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.uid = uid_at(transport)
        if not self._door.admit(self):
            _LOG.warning("uid %s: too many connections, another one was refused", self.uid)
            self._refuse(transport)
            return
        self._door.enter(self)
        self.handler.connection_made(transport)
        self._since = self._heard_at = asyncio.get_running_loop().time()
        self._look_again(self._door.limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Pass on what arrived."""
        self._heard_at = asyncio.get_running_loop().time()
        if self.request is None and self._since is None:
            self._since = self._heard_at
        if self._timer is not None:
            self.handler.data_received(data)

    def eof_received(self) -> None:
        """Pass on that no more arrives."""
        if self._timer is not None:
            self.handler.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Pass on that the connection is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._door.leave(self)
            self.handler.connection_lost(error)

    def pause_writing(self) -> None:
        """Pass on that the user does not read."""
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the user reads again."""
        self.handler.resume_writing()

    def begin(self, request: web.Request) -> None:
        """Note that the head of a request has arrived."""
        self.request, self._since = request, None

    def end(self) -> None:
        """Note that a request was answered."""
        self.request = None

    def abort(self, text: str) -> None:
        """End the connection at once."""
        assert self._transport is not None
        _LOG.warning("uid %s: a connection was ended: %s", self.uid, text)
        self._door.leave(self)
        self._transport.abort()

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Say why, and leave a moment to read it: who is hung up on while it sends sees only that."""
        if self._door.refused >= self._door.limits.of_one:
            transport.abort()
            return
        transport.write(_refusal())
        transport.write_eof()
        self._door.refused += 1
        asyncio.get_running_loop().call_later(_REFUSED_SECONDS, self._hang_up, transport)

    def _hang_up(self, transport: asyncio.Transport) -> None:
        self._door.refused -= 1
        transport.abort()

    def _look_again(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """End the connection if its request takes too long to arrive."""
        assert self._transport is not None
        now, limits = asyncio.get_running_loop().time(), self._door.limits
        if self._since is not None and now - self._since >= limits.head_seconds:
            self.abort(f"no whole request within {limits.head_seconds:g} s")
        elif self._waits_for_body() and now - self._heard_at >= limits.body_seconds:
            self.abort(f"nothing of a body for {limits.body_seconds:g} s")
        else:
            self._look_again(min(limits.head_seconds, limits.body_seconds) / 2)

    def _waits_for_body(self) -> bool:
        """Say whether it is the user who is waited for, and not this module that does not read."""
        assert self._transport is not None
        return self.request is not None and not self.request.content.is_eof() and self._transport.is_reading()


def uid_at(transport: asyncio.BaseTransport) -> int:
    """Give the uid at the other end of a Unix socket, as the kernel knows it."""
    peer: socket.socket = transport.get_extra_info("socket")
    _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def _refusal() -> bytes:
    body = json.dumps({"error": "you have too many connections with this module: end some"}).encode()
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
