"""Handlers of the local API about vectors: the sums and views of the module, and what a neighbor is told."""

from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.policies import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.search.routing import view_behind
from messiahs.core.search.task_request import waiting_behind
from messiahs.core.update.outgoing import passed_on
from messiahs.core.update.preview import preview
from messiahs.core.update.sums import vector_for_children, vector_for_parents, vector_for_siblings, view_of
from messiahs.daemon.api.policy import FILE_LIMIT, is_owner
from messiahs.daemon.api.requests import body_of, refusal
from messiahs.daemon.host.host import Host
from messiahs.daemon.policies.in_force import Policies
from messiahs.daemon.storage.documents import Document, vector_document
from messiahs.errors import PolicyError


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whose sight is wanted, and the text of a policy under which it is wanted too."""

    neighbor: str
    text: str | None = None
    file: Annotated[str, msgspec.Meta(max_length=FILE_LIMIT)] = ""


class VectorsApi:
    """What the module knows of machines, and what it lets others know."""

    def __init__(self, host: Host, policies: Policies) -> None:
        self._host, self._policies = host, policies

    def routes(self) -> list[web.RouteDef]:
        """Give the paths and their handlers."""
        return [web.get("/v1/vectors", self._vectors), web.post("/v1/preview", self._preview)]

    async def _vectors(self, _: web.Request) -> web.Response:
        state = self._host.module.state
        own, keys, neighbors = state.updates.own, state.policy.keys, tuple(state.neighbors.values())
        heard = {key: view.message.vector for key, view in state.updates.views.items()}
        views = passed_on(heard, state.policy)
        return web.json_response(
            {
                "up": vector_document(vector_for_parents(own, neighbors, views=views, keys=keys)),
                "down": vector_document(vector_for_children(own, neighbors, views=views, keys=keys)),
                "sibling": vector_document(vector_for_siblings(own, neighbors, views=views, keys=keys)),
                "views": {one.system: self._view(one) for one in neighbors if self._is_heard(one)},
            }
        )

    def _is_heard(self, neighbor: Neighbor) -> bool:
        return any((neighbor.system, kind) in self._host.module.state.updates.views for kind in VectorKind)

    def _view(self, neighbor: Neighbor) -> Document:
        state = self._host.module.state
        vectors = {key: view.message.vector for key, view in state.updates.views.items()}
        # Of a sibling that is a parent, too, both vectors are here: the one that is shown counts, if it has come.
        heard = [view for (system, _), view in state.updates.views.items() if system == neighbor.system]
        viewed = view_behind(state, neighbor)
        ages_ns = [view.age_ns(self._host.clock.now()) for view in ((viewed,) if viewed is not None else heard)]
        return {
            **vector_document(view_of(neighbor, vectors)),
            "relation": neighbor.relation.value,
            "age": round(max(ages_ns) / SECOND, 3),
            "waiting": waiting_behind(state, neighbor),
        }

    async def _preview(self, request: web.Request) -> web.Response:
        """Tell what a neighbor is told now; under another policy only root and the module's own user may ask."""
        state = self._host.module.state
        try:
            body = await body_of(request, PreviewBody)
        except msgspec.MsgspecError as error:
            return refusal(400, f"this is no preview: {error}")
        neighbor = state.neighbors.get(SystemId(body.neighbor))
        if neighbor is None:
            known = ", ".join(f"{one.system} ({one.relation.value})" for one in state.neighbors.values())
            return refusal(404, f"`{body.neighbor}` is no neighbor of {state.system}; those are {known or 'none'}")
        document = {"neighbor": neighbor.system, "relation": neighbor.relation.value}
        if body.text is None:
            return web.json_response({**document, "now": self._sight(neighbor, state.policy)})
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may try a policy on it")
        try:
            policy = self._policies.compiled(body.text, body.file)
        except PolicyError as error:
            return refusal(422, str(error))
        sights = {"now": self._sight(neighbor, state.policy), "under": self._sight(neighbor, policy)}
        return web.json_response({**document, **sights, "file": body.file})

    def _sight(self, neighbor: Neighbor, policy: Policy) -> Document:
        """Describe what a neighbor gets under a policy, and the name under which it sees denials from here."""
        state, now = self._host.module.state, self._host.clock.now()
        vectors = preview(state, neighbor.system, policy, now=now)
        name = policy.name_for(neighbor) or state.system
        return {"name": name, "vectors": [_sent_document(message) for message in vectors]}


def _sent_document(message: StatusVector) -> Document:
    return {
        "kind": message.kind.name.lower(),
        **vector_document(message.vector),
        "waiting": message.waiting,
        "makes_room": message.makes_room,
        "lets_go": message.lets_go,
        "age": round(message.age_ns / SECOND, 3),
        "period": round(message.period_ns / SECOND, 3),
        "hears": list(message.hears),
    }
