"""What neighbors would have run here if there had been room: remembered, so that a policy can make room for it.

It is soft and bounded. It is counted for 30 s, anew whenever it is asked for again, and no longer once it is granted.
"""

from collections.abc import Iterator

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.state.hop import Demand, DemandKey, Search
from messiahs.core.state.module import ModuleState

_REMEMBERED_NS = 30 * SECOND
_LIMIT = 64
"""Of one neighbor."""


def remember_demand(state: ModuleState, search: Search, now: Instant) -> None:
    """Remember that a neighbor wanted places that its task could have had, but for others that have them."""
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
    """Forget what has been granted."""
    state.hop.demands.pop(_key_of(search), None)


def demands(state: ModuleState, now: Instant) -> Iterator[tuple[DemandKey, Demand]]:
    """Give what was wanted lately and not granted."""
    return ((key, demand) for key, demand in state.hop.demands.items() if demand.until > now)


def _key_of(search: Search) -> DemandKey:
    assert isinstance(search.request, SchedRequest), "only places are wanted here"
    return (search.asker.system, search.request.origin, search.request.tdv)
