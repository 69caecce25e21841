"""The local API: HTTP and JSON on the module's Unix socket."""

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.config.settings import ModuleSettings
from messiahs.core import queries
from messiahs.daemon.api.connection_limits import ConnectionGate, Handler, Limits
from messiahs.daemon.api.demand import demand_document
from messiahs.daemon.api.lending import lend_document
from messiahs.daemon.api.malformed_requests import log_malformed_in_one_line
from messiahs.daemon.api.membership import drain_document, maintenance_document
from messiahs.daemon.api.module_explanation import explained_module
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import body_of, refusal
from messiahs.daemon.api.socket_access import SocketAccess
from messiahs.daemon.api.user_names import UserNames
from messiahs.daemon.host.host import Host
from messiahs.daemon.host.recording import Tracing
from messiahs.daemon.host.user_turns import UserTurns
from messiahs.daemon.storage.documents import containment_document
from messiahs.errors import StoreError, TraceError

_LOG = logging.getLogger(__name__)
_BACKLOG = 1_024
"""Connections that wait to be accepted."""
_ACCEPTED_AT_ONCE = 16
"""Connections that are accepted in one step of the event loop."""
_BODY_LIMIT_BYTES = 8 * 1_024 * 1_024
_READ_AHEAD_BYTES = 512 * 1_024
"""Bytes of a body that are read before its handler takes them; at most twice as many wait."""


class TraceBody(msgspec.Struct, forbid_unknown_fields=True):
    """A recording to start, with its maximum size on disk in bytes, or (None) to stop."""

    size_bytes: Annotated[int, msgspec.Meta(ge=1 << 20, le=1 << 40)] | None


class ModuleApi:
    """Handlers for the module itself."""

    def __init__(self, host: Host, settings: ModuleSettings, tracing: Tracing) -> None:
        self._host, self._settings, self._tracing = host, settings, tracing

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.get("/v1/module", self._module),
            web.get("/v1/module/explanation", self._explanation),
            web.get("/v1/demand", self._demand),
            web.post("/v1/trace", self._trace),
        ]

    async def _module(self, _: web.Request) -> web.Response:
        module = queries.summary_of(self._host.module.state)
        neighbors = module.neighbors
        return web.json_response(
            {
                "name": module.system,
                "federation": self._settings.federation,
                "release": module.release,
                "pid": os.getpid(),
                "address": module.address,
                "machine": self._settings.machine is not None,
                "at_most": self._settings.machine.at_most if self._settings.machine is not None else {},
                "containment": containment_document(self._host.containment),
                "parents": [one.system for one in neighbors if one.is_parent],
                "primary_parent": next((one.system for one in neighbors if one.is_primary_parent), None),
                "children": [one.system for one in neighbors if one.is_child],
                "siblings": [one.system for one in neighbors if one.is_sibling],
                "linked": module.linked,
                "drain": drain_document(self._host),
                "maintenance": maintenance_document(self._host),
                "lend": lend_document(self._host),
                "recording": self._tracing.is_on,
                "notes": self._host.notes(),
                "heard": module.heard,
            }
        )

    async def _explanation(self, request: web.Request) -> web.Response:
        """Describe why the machine gets no work; only root and the module's own user may read who asked for it."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may read who asked for its machine")
        return web.json_response(await explained_module(self._host, has_machine=self._settings.machine is not None))

    async def _demand(self, request: web.Request) -> web.Response:
        """Describe what tasks lack here and below; only root and the module's own user may read that."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may read what the tasks of others lack")
        return web.json_response(demand_document(self._host))

    async def _trace(self, request: web.Request) -> web.Response:
        """Start the recording, with a size in bytes, or stop it; only root and the module's own user may."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may record it")
        try:
            size_bytes = (await body_of(request, TraceBody)).size_bytes
            if size_bytes is None:
                self._tracing.stop()
            else:
                self._tracing.start(size_bytes)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request contains no size of a trace: {error}")
        except (OSError, TraceError) as error:
            return refusal(409, f"the recording cannot start: {error}")
        return web.json_response({"recording": self._tracing.is_on, "folder": str(self._tracing.folder)})


class _Site(web.UnixSite):
    """A Unix socket whose connections pass the gate before aiohttp's handlers."""

    def __init__(self, runner: web.AppRunner, access: SocketAccess, gate: ConnectionGate) -> None:
        super().__init__(runner, str(access.path))
        self._gate, self._access = gate, access

    async def start(self) -> None:
        """Listen."""
        await web.BaseSite.start(self)
        loop = asyncio.get_running_loop()
        sock = self._access.bound()
        # The loop accepts in one step as many as it is told may wait.
        self._server = await loop.create_unix_server(self._gate, sock=sock, backlog=_ACCEPTED_AT_ONCE)
        sock.listen(_BACKLOG)


@web.middleware
async def _report_damage(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer with the problem if stored rows cannot be read."""
    try:
        return await handler(request)
    except StoreError as error:
        _LOG.error("%s", error)
        return refusal(500, str(error))


@web.middleware
async def _ignore_early_close(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Ignore clients that close the connection early: that is not an error of this module."""
    try:
        return await handler(request)
    except ConnectionError as error:
        if request.transport is not None and not request.transport.is_closing():
            raise
        # What waited until the client reads has the error: without its frames, nothing of the handler stays in memory.
        error.with_traceback(None)
        _LOG.debug("the client of %s %s closed the connection early", request.method, request.path)
        # Nobody reads this answer.
        return web.Response()


async def serve(
    routes: Iterable[web.RouteDef],
    access: SocketAccess,
    limits: Limits,
    turns: UserTurns,
    /,
    *,
    names: UserNames | None = None,
) -> web.AppRunner:
    """Listen at a Unix socket, replacing one of an earlier process, until the runner is cleaned up.

    The names of users are those of the system, unless `names` are given.

    Raises `MessiahsError` if the socket cannot be opened to those who are to use it.
    """
    log_malformed_in_one_line()
    gate = ConnectionGate(limits, turns, names=names or UserNames(), task_uids=access.task_uids)
    middlewares = (_ignore_early_close, gate.middleware, _report_damage)
    application = web.Application(client_max_size=_BODY_LIMIT_BYTES, middlewares=middlewares)
    application.add_routes(routes)
    # A compressed body could be of any size, and our clients send none.
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=1.0,
        auto_decompress=False,
        read_bufsize=_READ_AHEAD_BYTES,
    )
    await runner.setup()
    assert runner.server is not None, "setup() creates the server"
    gate.server = runner.server
    await _Site(runner, access, gate).start()
    return runner
