"""Under which names a neighbor sees who asks, and who denied (MESSIAHS 4: a proxy stands for the systems behind it).

A policy may give one name for this system and everything below it. Then nobody learns from a task_request or a denial
who is there, what those said in words, or how many they are: what the children answered is told once for each code.
"""

from collections.abc import Iterator
from dataclasses import replace

from messiahs.core.interface.messages import DenyCode, Reason, TaskRequest, TaskRevoke
from messiahs.core.interface.policies import Asker
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.hop import Search, SearchRequest
from messiahs.core.state.module import ModuleState


def signed(state: ModuleState, reason: Reason, asker: Asker, /) -> Reason:
    """Give this module's own reason as its asker may see it: of a rule and what it found, the text alone."""
    name = _name_for(state, asker)
    return replace(reason, rule="", why="", module=name or reason.module)


def hops_for(state: ModuleState, search: Search) -> tuple[Reason, ...]:
    """Give the denials of those that were asked as their asker may see them, in the order in which they came."""
    name = _name_for(state, search.asker)
    if name is None:
        return tuple(hop for _, hop in search.hops)
    told: dict[Reason, None] = {}
    for via, hop in search.hops:
        if state.neighbors[via].relation is Relation.CHILD:
            told.update(dict.fromkeys(Reason(module=name, code=code) for code in _codes_in(hop)))
        else:
            told[hop] = None
    return tuple(told)


def named(state: ModuleState, request: SearchRequest, asker: Asker, /, *, to: SystemId) -> SearchRequest:
    """Give a request of an asker as the neighbor to which it is passed on may see it."""
    is_ours = asker.relation in (Relation.SELF, Relation.CHILD)
    name = state.policy.name_for(state.neighbors[to])
    if isinstance(request, TaskRequest) and is_ours and name:
        return replace(request, requester=SystemId(name))
    return request


def as_shown(state: ModuleState, revoke: TaskRevoke, /, *, to: SystemId) -> TaskRevoke:
    """Give an offer of running tasks as the neighbor to which it goes may see it: who asked stays behind a border."""
    neighbor = state.neighbors.get(to)
    is_hidden = neighbor is not None and bool(state.policy.name_for(neighbor))
    return replace(revoke, text="", toward=None) if is_hidden else revoke


def _name_for(state: ModuleState, asker: Asker) -> SystemId | None:
    if asker.relation is Relation.SELF:
        return None
    name = state.policy.name_for(state.neighbors[asker.system])
    return SystemId(name) if name else None


def _codes_in(reason: Reason) -> Iterator[DenyCode]:
    yield reason.code
    for hop in reason.hops:
        yield from _codes_in(hop)
