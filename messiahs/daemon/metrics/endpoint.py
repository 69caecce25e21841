"""The endpoint that Prometheus asks for the metrics of a module: HTTP on loopback, or HTTP over mutual TLS."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
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
"""Connections at once, in handshakes or after them: a further one closes the oldest that has finished its handshake."""
_HANDSHAKE_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 1.0
_BACKLOG: Final = 16
_BODY_LIMIT_BYTES: Final = 1


class Endpoint:
    """Answers with the metrics of a module (mutable). The text is made at most once in a second."""

    def __init__(
        self, settings: MetricsSettings, tls: TlsInForce, render: Callable[[], Awaitable[tuple[bytes, str]]]
    ) -> None:
        """Bind the address, and read the roots; `render` returns a text with its type.

        Raises a `MessiahsError` if the address is taken, or the roots are of no use.
        """
        self._settings, self._tls, self._render = settings, tls, render
        self._roots = _roots_of(settings)
        self._context = self._context_now()
        self._listener = _bound(settings)
        self._jobs, self._lock = Jobs(), asyncio.Lock()
        self._transports: list[asyncio.Transport] = []
        self._handshakes = 0
        self._text, self._kind, self._made_at = b"", "", float("-inf")
        application = web.Application(client_max_size=_BODY_LIMIT_BYTES)
        application.add_routes([web.get(PATH, self._answer)])
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0, auto_decompress=False)

    async def start(self) -> None:
        """Answer; connections that came before have waited."""
        await self._runner.setup()
        self._jobs.begin(self._accept())
        if self._roots is not None:
            self._tls.on_changed(self._renew_context)
        _LOG.info("metrics are served at %s%s", self._settings.address, PATH)

    async def stop(self) -> None:
        """End all connections."""
        await self._jobs.stop()
        self._listener.close()
        for transport in self._transports:
            transport.abort()
        await self._runner.cleanup()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # Such as too many open files.
                _LOG.warning("no connection for metrics can be accepted: %s", error.strerror)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._make_room()
            if self._handshakes < _CONNECTIONS:
                self._handshakes += 1
                self._jobs.begin(self._greet(connection))
            else:
                connection.close()

    def _make_room(self) -> None:
        self._transports = [each for each in self._transports if not each.is_closing()]
        if len(self._transports) + self._handshakes >= _CONNECTIONS and self._transports:
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
        finally:
            self._handshakes -= 1

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


def _bound(settings: MetricsSettings) -> socket.socket:
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        advice = "change `listen` of `metrics` in the topology"
        raise MessiahsError(f"metrics cannot be served at {settings.address}: {error.strerror}; {advice}") from error
    listener.setblocking(False)
    return listener
