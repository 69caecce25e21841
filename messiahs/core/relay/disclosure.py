"""The names of requesters and deniers that a neighbor sees (MESSIAHS 4: a proxy represents the systems behind it).

A policy may set one name for this system and everything below it. A task_request or a denial then hides the systems
behind that name, their texts and their number: each code given by any of the children is reported once.
"""

from collections.abc import Iterator
from dataclasses import replace

from messiahs.core.border.sides import hides_from
from messiahs.core.interface.messages import DenyCode, Reason, TaskRequest, TaskRevoke
from messiahs.core.interface.policies import Asker
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.hop import Search, SearchRequest
from messiahs.core.state.module import ModuleState


def signed(state: ModuleState, reason: Reason, asker: Asker, /) -> Reason:
    """Return this module's own reason as the asker may see it: the rule's text, without the rule and its values.

    Behind a border, only texts that a policy gives in its own words are seen, and a limit has none.
    """
    name = _name_for(state, asker)
    if reason.code is DenyCode.LIMIT_REACHED and reason.rule and hides_from(state, asker.system):
        reason = replace(reason, text="")
    return replace(reason, rule="", why="", module=name or reason.module)


def hops_for(state: ModuleState, search: Search) -> tuple[Reason, ...]:
    """Return the denials of the asked systems as the asker may see them, in order of arrival."""
    name = _name_for(state, search.asker)
    if name is None:
        return tuple(hop for _, hop in search.hops)
    shown: dict[Reason, None] = {}
    for via, hop in search.hops:
        neighbor = state.neighbors.get(via)
        # One that was removed since is hidden like a child.
        if neighbor is None or neighbor.relation is Relation.CHILD:
            shown.update(dict.fromkeys(Reason(module=name, code=code) for code in _codes_in(hop)))
        else:
            shown[hop] = None
    return tuple(shown)


def named(state: ModuleState, request: SearchRequest, asker: Asker, /, *, to: SystemId) -> SearchRequest:
    """Return a request of an asker as the neighbor to which it is forwarded may see it."""
    is_ours = asker.relation in (Relation.SELF, Relation.CHILD)
    name = state.policy.disclosure.name_for(state.neighbors[to])
    if isinstance(request, TaskRequest) and is_ours and name:
        return replace(request, requester=SystemId(name))
    return request


def as_shown(state: ModuleState, revoke: TaskRevoke, /, *, to: SystemId) -> TaskRevoke:
    """Return an offer of running tasks as its receiver may see it: a name set by policy hides the requester."""
    neighbor = state.neighbors.get(to)
    is_hidden = neighbor is not None and bool(state.policy.disclosure.name_for(neighbor))
    return replace(revoke, text="", toward=None) if is_hidden else revoke


def _name_for(state: ModuleState, asker: Asker) -> SystemId | None:
    if asker.relation is Relation.SELF:
        return None
    name = state.policy.disclosure.name_for(state.neighbors[asker.system])
    return SystemId(name) if name else None


def _codes_in(reason: Reason) -> Iterator[DenyCode]:
    yield reason.code
    for hop in reason.hops:
        yield from _codes_in(hop)
