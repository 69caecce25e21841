"""The endpoint that Prometheus asks for the metrics of a module: HTTP on loopback, or HTTP over mutual TLS."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from aiohttp import web

from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.jobs import Jobs
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import MetricsSettings
from messiahs.errors import MessiahsError

_LOG = logging.getLogger(__name__)
PATH: Final = "/metrics"
_CONNECTIONS: Final = 32
"""Connections at once: a further one closes the oldest that has not finished its handshake; if all have, the oldest."""
_HANDSHAKE_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 1.0
_BACKLOG: Final = 16
_BODY_LIMIT_BYTES: Final = 1
_LOOPBACK: Final = {"localhost": ("127.0.0.1", "::1")}
_UNKNOWN_HERE: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Errors of an address that this host does not have, as ::1 without IPv6."""


class Endpoint:
    """Answers with the metrics of a module (mutable). The text is made at most once in a second."""

    def __init__(
        self, settings: MetricsSettings, tls: TlsInForce, render: Callable[[], Awaitable[tuple[bytes, str]]]
    ) -> None:
        """Bind the address (`localhost`: those of loopback), and read the roots; `render` returns a text with its type.

        Raises a `MessiahsError` if the address is taken, or the roots are of no use.
        """
        self._settings, self._tls, self._render = settings, tls, render
        self._roots = _roots_of(settings)
        self._context = self._context_now()
        self._listeners = _bound(settings)
        self._jobs, self._lock = Jobs(), asyncio.Lock()
        self._handshakes: list[asyncio.Task[None]] = []
        """Those that have not ended, the oldest first."""
        self._transports: list[asyncio.Transport] = []
        """Connections after their handshakes, the oldest first."""
        self._text, self._kind, self._made_at = b"", "", float("-inf")
        application = web.Application(client_max_size=_BODY_LIMIT_BYTES)
        application.add_routes([web.get(PATH, self._answer)])
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0, auto_decompress=False)

    async def start(self) -> None:
        """Answer; connections that came before have waited."""
        await self._runner.setup()
        for listener in self._listeners:
            self._jobs.begin(self._accept(listener))
        if self._roots is not None:
            self._tls.on_changed(self._renew_context)
        _LOG.info("metrics are served at %s%s", self._settings.address, PATH)

    async def stop(self) -> None:
        """End all connections."""
        await self._jobs.stop()
        for listener in self._listeners:
            listener.close()
        for transport in self._transports:
            transport.abort()
        await self._runner.cleanup()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                # Such as too many open files.
                _LOG.warning("no connection for metrics can be accepted: %s", error.strerror)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._make_room()
            handshake = self._jobs.begin(self._greet(connection))
            self._handshakes.append(handshake)
            handshake.add_done_callback(partial(self._end_handshake, connection))
            # Many that wait would else be accepted in one turn.
            await asyncio.sleep(0)

    def _end_handshake(self, connection: socket.socket, handshake: asyncio.Task[None]) -> None:
        self._handshakes.remove(handshake)
        if handshake.cancelled():
            connection.close()

    def _make_room(self) -> None:
        """Close one connection if there are as many as there may be.

        Whoever has no certificate stays in its handshake, and closes none of those who have one.
        """
        self._transports = [each for each in self._transports if not each.is_closing()]
        unfinished = [each for each in self._handshakes if not each.cancelling()]
        if len(self._transports) + len(unfinished) < _CONNECTIONS:
            return
        if unfinished:
            unfinished[0].cancel()
        else:
            # `close` would wait for a reader who does not read.
            self._transports.pop(0).abort()

    async def _greet(self, connection: socket.socket) -> None:
        """Let aiohttp answer on a connection, after its handshake."""
        server, context = self._runner.server, self._context
        assert server is not None, "the runner is set up"
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                server,
                connection,
                ssl=context,
                ssl_handshake_timeout=None if context is None else _HANDSHAKE_SECONDS,
            )
        except OSError as error:
            _LOG.debug("a connection for metrics failed: %s", error)
        else:
            self._transports.append(transport)

    def _renew_context(self) -> None:
        try:
            self._context = self._context_now()
        except MessiahsError as error:
            _LOG.error("the endpoint of metrics keeps its former certificate: %s", error)

    def _context_now(self) -> ssl.SSLContext | None:
        if self._roots is None:
            return None
        try:
            return self._tls.now.context(ssl.PROTOCOL_TLS_SERVER, roots=self._roots)
        except (ssl.SSLError, ValueError) as error:
            roots = self._settings.client_roots
            text = f"metrics cannot be served over TLS with the roots in {roots} and the certificate of this module"
            raise MessiahsError(f"{text}: {error}") from error

    async def _answer(self, request: web.Request) -> web.Response:
        if self._is_revoked(request):
            return web.Response(status=403, text="this certificate was revoked\n")
        loop = asyncio.get_running_loop()
        async with self._lock:
            if loop.time() - self._made_at >= 1:
                self._text, self._kind = await self._render()
                self._made_at = loop.time()
        return web.Response(body=self._text, headers={"Content-Type": self._kind})

    def _is_revoked(self, request: web.Request) -> bool:
        """Return whether a list of this site holds the certificate of who asks."""
        connection = request.get_extra_info("ssl_object")
        shown = None if connection is None else connection.getpeercert(binary_form=True)
        return shown is not None and self._tls.now.revocations.holds(shown)


def _roots_of(settings: MetricsSettings) -> bytes | None:
    if settings.client_roots is None:
        return None
    try:
        return read_regular(settings.client_roots)
    except OSError as error:
        text = f"the roots of those who may ask for metrics, {settings.client_roots}, cannot be read: {error.strerror}"
        raise MessiahsError(text) from error


def _bound(settings: MetricsSettings) -> list[socket.socket]:
    """Return a listener for each address that this host has; a `MessiahsError` if one is taken, or there is none."""
    listeners, missing = list[socket.socket](), None
    try:
        for host in _LOOPBACK.get(settings.host, (settings.host,)):
            try:
                listeners.append(_listener_at(host, settings.port))
            except OSError as error:
                if error.errno not in _UNKNOWN_HERE:
                    raise
                missing = error
        if missing is not None and not listeners:
            raise missing
    except OSError as error:
        for listener in listeners:
            listener.close()
        advice = "change `listen` of `metrics` in the topology"
        raise MessiahsError(f"metrics cannot be served at {settings.address}: {error.strerror}; {advice}") from error
    return listeners


def _listener_at(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
