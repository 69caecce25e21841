"""Which origins a neighbor may name (MESSIAHS 4, 5.3.3).

An origin outside is the word of the neighbor: whether a request comes from there cannot be known. But a request from
outside has no origin inside: the own systems are shown under other names, or get no answer to their own search.
"""

from messiahs.core.border.sides import crosses
from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.hop import SearchRequest
from messiahs.core.state.module import ModuleState

_WHY_NOT = "its origin is no system of the neighbor's side"


def why_no_origin(state: ModuleState, request: SearchRequest, /, *, sender: SystemId) -> str:
    """Return why a neighbor may not make a request in the name of its origin or requester; empty if it may.

    Only searches that this system has begun have its name. Inside are this system and, at a border, its children; the
    names of systems further below are not known here. A child of a system that is no border may have a second parent at
    the other site, so its request may come from there.
    """
    name = request.origin if isinstance(request, SchedRequest) else request.requester
    if sender == state.system:
        return ""
    is_outside = crosses(state, sender, state.system)
    if name == state.system:
        seen = state.hop.seen.get(request.search)
        is_own = seen is not None and seen.asker == state.system
        return _WHY_NOT if is_outside or sender in state.identity.apart or not is_own else ""
    neighbor = state.neighbors.get(name)
    is_inside = neighbor is not None and neighbor.relation is Relation.CHILD
    return _WHY_NOT if is_outside and is_inside else ""
