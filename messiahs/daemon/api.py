"""The local API: HTTP and JSON on the module's Unix socket."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.config.settings import ModuleSettings
from messiahs.core.instants import SECOND
from messiahs.core.messages import VectorKind
from messiahs.core.neighbors import Neighbor
from messiahs.core.sums import vector_for_children, vector_for_parents, vector_for_siblings, view_of
from messiahs.daemon.asking import refusal
from messiahs.daemon.documents import Document, vector_document
from messiahs.daemon.files_api import FilesApi
from messiahs.daemon.host import Host
from messiahs.daemon.policy_api import PolicyApi, is_owner
from messiahs.daemon.tasks_api import TasksApi
from messiahs.daemon.tracing import Tracing
from messiahs.errors import TraceError

_BODY_LIMIT_BYTES = 8 * 1_024 * 1_024


class TraceBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked of the recording: at most so many bytes on disk, or (None) to end it."""

    size_bytes: Annotated[int, msgspec.Meta(ge=1 << 20, le=1 << 40)] | None


class ModuleApi:
    """Handlers about the module itself."""

    def __init__(self, host: Host, settings: ModuleSettings, tracing: Tracing) -> None:
        self._host, self._settings, self._tracing = host, settings, tracing

    def routes(self) -> list[web.RouteDef]:
        """Give the paths and their handlers."""
        return [
            web.get("/v1/module", self._module),
            web.get("/v1/vectors", self._vectors),
            web.post("/v1/trace", self._trace),
        ]

    async def _module(self, _: web.Request) -> web.Response:
        state = self._host.module.state
        neighbors = tuple(state.neighbors.values())
        return web.json_response(
            {
                "name": state.system,
                "federation": self._settings.federation,
                "release": state.identity.release,
                "pid": os.getpid(),
                "address": state.identity.address,
                "machine": self._settings.machine is not None,
                "parents": [one.system for one in neighbors if one.is_parent],
                "primary_parent": next((one.system for one in neighbors if one.is_primary_parent), None),
                "children": [one.system for one in neighbors if one.is_child],
                "siblings": [one.system for one in neighbors if one.is_sibling],
                "linked": [system for system, is_greeted in state.updates.links.items() if is_greeted],
                "recording": self._tracing.is_on,
                "heard": sorted({system for system, _ in state.updates.views}),
            }
        )

    async def _trace(self, request: web.Request) -> web.Response:
        """Switch the recording on, with a size in bytes, or off; only the module's own user and root may."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may record it")
        try:
            size_bytes = msgspec.json.decode(await request.read(), type=TraceBody).size_bytes
            if size_bytes is None:
                self._tracing.stop()
            else:
                self._tracing.start(size_bytes)
        except msgspec.MsgspecError as error:
            return refusal(400, f"this is no size of a trace: {error}")
        except (OSError, TraceError) as error:
            return refusal(409, f"nothing is recorded: {error}")
        return web.json_response({"recording": self._tracing.is_on, "folder": str(self._tracing.folder)})

    async def _vectors(self, _: web.Request) -> web.Response:
        state = self._host.module.state
        views = {key: view.message.vector for key, view in state.updates.views.items()}
        neighbors = tuple(state.neighbors.values())
        up = vector_for_parents(state.updates.own, neighbors, views=views, keys=state.policy.keys)
        sibling = vector_for_siblings(state.updates.own, neighbors, views=views, keys=state.policy.keys)
        down = vector_for_children(state.updates.own, neighbors, views=views, keys=state.policy.keys)
        return web.json_response(
            {
                "up": vector_document(up),
                "down": vector_document(down),
                "sibling": vector_document(sibling),
                "views": {one.system: self._view(one) for one in neighbors if self._is_heard(one)},
            }
        )

    def _is_heard(self, neighbor: Neighbor) -> bool:
        return any((neighbor.system, kind) in self._host.module.state.updates.views for kind in VectorKind)

    def _view(self, neighbor: Neighbor) -> Document:
        state = self._host.module.state
        vectors = {key: view.message.vector for key, view in state.updates.views.items()}
        ages_ns = [
            self._host.clock.now() - view.received_at + view.message.age_ns
            for (system, _), view in state.updates.views.items()
            if system == neighbor.system
        ]
        return {
            **vector_document(view_of(neighbor, vectors)),
            "relation": neighbor.relation.value,
            "age": round(max(ages_ns) / SECOND, 3),
        }


async def serve(module: ModuleApi, tasks: TasksApi, *, files: FilesApi, policy: PolicyApi, path: Path) -> web.AppRunner:
    """Listen at a Unix socket, in place of one that was left there, until the runner is cleaned up."""
    application = web.Application(client_max_size=_BODY_LIMIT_BYTES)
    application.add_routes([*module.routes(), *tasks.routes(), *files.routes(), *policy.routes()])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    # Whoever may enter the folder is a user of this module; the kernel says who it is.
    path.chmod(0o666)  # noqa: ASYNC240 - no I/O that could block
    return runner
