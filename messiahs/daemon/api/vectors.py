"""Handlers of the local API for vectors: sums and views of the module, and the vectors that neighbors get."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.messages import StatusVector
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.daemon.api.demand import classes_document
from messiahs.daemon.api.exchanged import exchanged_document
from messiahs.daemon.api.policy import FILE_LIMIT, is_owner
from messiahs.daemon.api.requests import body_of, refusal
from messiahs.daemon.host.host import Host
from messiahs.daemon.policies.in_force import Policies
from messiahs.daemon.storage.documents import Document, vector_document
from messiahs.errors import PolicyError


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    """The neighbor whose vector is previewed, and the text of a policy to try."""

    neighbor: str
    text: str | None = None
    file: Annotated[str, msgspec.Meta(max_length=FILE_LIMIT)] = ""


class VectorsApi:
    """What the module knows about machines, and what it reveals."""

    def __init__(self, host: Host, policies: Policies) -> None:
        self._host, self._policies = host, policies

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.get("/v1/vectors", self._vectors),
            web.get("/v1/vectors/exchanged", self._exchanged),
            web.post("/v1/preview", self._preview),
        ]

    async def _vectors(self, _: web.Request) -> web.Response:
        sums = queries.own_sums(self._host.module.state)
        return web.json_response(
            {
                "up": vector_document(sums.up),
                "down": vector_document(sums.down),
                "sibling": vector_document(sums.sibling),
                "views": dict(self._views()),
            }
        )

    def _views(self) -> Iterator[tuple[SystemId, Document]]:
        for system, neighbor in queries.neighbors_of(self._host.module.state).items():
            view = queries.neighbor_view(self._host.module.state, neighbor, self._host.clock.now())
            if view is not None:
                yield (
                    system,
                    {
                        **vector_document(view.vector),
                        "relation": neighbor.relation.value,
                        "age": round(view.age_ns / SECOND, 3),
                        "waiting": view.waiting,
                        "history": dict(view.history),
                        "round_trip_ns": view.costs.round_trip_ns,
                        "throughput": view.costs.throughput,
                    },
                )

    async def _exchanged(self, request: web.Request) -> web.Response:
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may read the vectors that it exchanged")
        return web.json_response(exchanged_document(queries.exchanged(self._host.module.state)))

    async def _preview(self, request: web.Request) -> web.Response:
        """Return the vector that a neighbor gets; only root and the module's own user may try another policy."""
        neighbors = queries.neighbors_of(self._host.module.state)
        try:
            body = await body_of(request, PreviewBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request is not a preview: {error}")
        neighbor = neighbors.get(SystemId(body.neighbor))
        if neighbor is None:
            known = ", ".join(f"{one.system} ({one.relation.value})" for one in neighbors.values())
            return refusal(404, f"`{body.neighbor}` is no neighbor of {self._host.system}; those are {known or 'none'}")
        in_force = queries.policy_of(self._host.module.state)
        document = {"neighbor": neighbor.system, "relation": neighbor.relation.value}
        if body.text is None:
            return web.json_response({**document, "now": self._sight(neighbor, in_force, request)})
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may try a policy on it")
        try:
            policy = self._policies.compiled(body.text, body.file)
        except PolicyError as error:
            return refusal(422, str(error))
        sights = {"now": self._sight(neighbor, in_force, request), "under": self._sight(neighbor, policy, request)}
        return web.json_response({**document, **sights, "file": body.file})

    def _sight(self, neighbor: Neighbor, policy: Policy, request: web.Request) -> Document:
        """Describe what a neighbor gets under a policy, and the name under which it sees denials from here.

        What the tasks of others lack is for those who may read it by `/v1/demand`.
        """
        sight = queries.sight_of(self._host.module.state, neighbor, policy, self._host.clock.now())
        vectors = [_sent_document(message, shows_demand=is_owner(request)) for message in sight.vectors]
        return {"name": sight.name, "vectors": vectors}


def _sent_document(message: StatusVector, *, shows_demand: bool) -> Document:
    return {
        "kind": message.kind.name.lower(),
        **vector_document(message.vector),
        "waiting": message.waiting,
        "demand": classes_document(message.demand) if shows_demand else None,
        "makes_room": message.makes_room,
        "lets_go": message.lets_go,
        "age": round(message.age_ns / SECOND, 3),
        "period": round(message.period_ns / SECOND, 3),
        "hears": list(message.hears),
        "missing": [{"module": each.module, "neighbor": each.neighbor, "text": each.text} for each in message.missing],
    }
