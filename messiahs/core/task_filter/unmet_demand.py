"""Places that neighbors requested in vain: remembered, so that a policy can make room for their tasks.

The memory is bounded and not stored. An entry lives for 30 s, renewed by each repeated request, and ends with a grant.
"""

from collections.abc import Iterator

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.state.hop import Demand, DemandKey, Search
from messiahs.core.state.module import ModuleState

_REMEMBERED_NS = 30 * SECOND
_LIMIT = 64
"""Entries per neighbor."""


def remember_demand(state: ModuleState, search: Search, now: Instant) -> None:
    """Remember that a neighbor requested places that would suit its task, but are taken."""
    remembered = state.hop.demands
    for key in [key for key, demand in remembered.items() if demand.until <= now]:
        del remembered[key]
    key = _key_of(search)
    before = remembered.get(key)
    if before is None and sum(asker == search.asker.system for asker, _, _ in remembered) >= _LIMIT:
        return
    since = before.since if before is not None else now
    remembered[key] = Demand(count=search.left, since=since, until=after(now, _REMEMBERED_NS))


def forget_demand(state: ModuleState, search: Search) -> None:
    """Forget a demand that has been granted."""
    state.hop.demands.pop(_key_of(search), None)


def demands(state: ModuleState, now: Instant) -> Iterator[tuple[DemandKey, Demand]]:
    """Return the recent demands that were not granted."""
    return ((key, demand) for key, demand in state.hop.demands.items() if demand.until > now)


def _key_of(search: Search) -> DemandKey:
    assert isinstance(search.request, SchedRequest), "only requests for places are remembered"
    return (search.asker.system, search.request.origin, search.request.tdv)
