"""Bounds on what one neighbor may occupy at a hop: open searches, remembered searches, and claims that pass through.

A request beyond them is denied at once, at the cost of its message alone. Local users are bounded by their submissions.

The next hop has the same bounds, and counts all that this module passes on to it as this module's. So this module
shares out what it may pass on among its own neighbors: none of them ever uses up what others need.
"""

from collections import Counter

from messiahs.core.interface.actions import Action
from messiahs.core.interface.limits import ASK_LIMIT
from messiahs.core.interface.messages import DenyCode, Reason, TaskRevoke
from messiahs.core.interface.policies import Asker
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.hop import SearchRequest, Seen
from messiahs.core.state.module import ModuleState

OPEN_LIMIT = 256
SEEN_LIMIT = 4_096
"""Remembered searches; a further one replaces the oldest of the same neighbor, which may then be answered twice."""
PASSED_LIMIT = 4_096
_SHARE = 4
"""How many times what stays free one neighbor may use: four fifths of all, or four ninths if another one does, too."""


def why_too_many(state: ModuleState, asker: Asker) -> Reason | None:
    """Return why a neighbor may not start a search now; None if it may."""
    if asker.relation is Relation.SELF:
        return None
    if sum(system == asker.system for system, _ in state.hop.searches) >= OPEN_LIMIT:
        text = f"{asker.system} has {OPEN_LIMIT} searches open"
    elif sum(row.toward_origin == asker.system for row in state.hop.passed.values()) >= PASSED_LIMIT:
        text = f"{asker.system} has {PASSED_LIMIT} claims through this module"
    else:
        return None
    return Reason(module=state.system, code=DenyCode.LIMIT_REACHED, text=text)


def room_beyond(state: ModuleState, asker: Asker, to: SystemId, /) -> int | Reason:
    """Return for how many places a search of a neighbor may ask another one now, or why it may not.

    A neighbor may have there no more than four times what stays free, so something is free for each of the others.
    """
    if asker.relation is Relation.SELF:
        return ASK_LIMIT
    searches = Counter(search.asker.system for search in state.hop.asks.values() if search.asked == to)
    claims = Counter(row.toward_origin for row in state.hop.passed.values() if row.toward_executor == to)
    own = sum(held.row.via == to for held in state.origin.claims.values())
    if _room(OPEN_LIMIT - searches.total(), used=searches[asker.system]) <= 0:
        text = f"{asker.system} has {searches[asker.system]} searches open at {to}"
    elif (room := _room(PASSED_LIMIT - own - claims.total(), used=claims[asker.system])) <= 0:
        text = f"{asker.system} has {claims[asker.system]} claims through {to}"
    else:
        return room
    return Reason(module=state.system, code=DenyCode.LIMIT_REACHED, text=f"{text}, which others share")


def remember(state: ModuleState, request: SearchRequest, asker: Asker, /, *, climbing: bool, now: Instant) -> None:
    """Remember a search until it has ended at every hop; it counts against the neighbor that sent it first."""
    before = state.hop.seen.get(request.search)
    first = before.asker if before is not None else asker.system
    has_climbed = climbing or (before is not None and before.has_climbed)
    seen = Seen(asker=first, latest=asker.system, has_climbed=has_climbed)
    _enter(state, request.search, seen, until=after(now, request.remaining_ns + SECOND))


def remember_way(state: ModuleState, revoke: TaskRevoke, *, sender: SystemId, now: Instant) -> None:
    """Remember for a while the way to the requester of a task_request to whom running tasks are offered through here.

    The way is that of the request, if it passed through here; else the neighbor that the offer names, or that sent
    the offer.
    """
    search = revoke.answers
    if search is None or search in state.hop.seen:
        return
    way = revoke.toward if revoke.toward is not None and revoke.toward in state.neighbors else sender
    seen = Seen(asker=sender, latest=way, has_climbed=False)
    _enter(state, search, seen, until=after(now, state.policy.timeouts.request_ns + SECOND))


def way_to(state: ModuleState, search: SearchId) -> SystemId | None:
    """Return the parent or sibling from which a task_request came; None for a child: others reach it through here."""
    seen = state.hop.seen.get(search)
    neighbor = state.neighbors.get(seen.latest) if seen is not None else None
    if neighbor is None or neighbor.relation not in (Relation.PARENT, Relation.SIBLING):
        return None
    return neighbor.system


def on_seen_timeout(state: ModuleState, search: SearchId, now: Instant) -> tuple[Action, ...]:
    """Forget a search that has ended."""
    del now
    _forget(state, search)
    return ()


def _room(free: int, /, *, used: int) -> int:
    """Return how many of what is free a neighbor may use in addition, so that enough stays free for the others."""
    return (_SHARE * free - used) // (_SHARE + 1)


def _enter(state: ModuleState, search: SearchId, seen: Seen, /, *, until: Instant) -> None:
    """Enter a search, in place of the oldest one of its neighbor if that has too many."""
    of_it = state.hop.seen_from.setdefault(seen.asker, {})
    if search not in of_it and len(of_it) >= SEEN_LIMIT and seen.asker != state.system:
        oldest = next(iter(of_it))
        state.timers.cancel(TimerKind.SEEN, oldest)
        _forget(state, oldest)
    of_it[search] = None
    state.hop.seen[search] = seen
    state.timers.set(TimerKind.SEEN, search, until)


def _forget(state: ModuleState, search: SearchId) -> None:
    asker = state.hop.seen.pop(search).asker
    del state.hop.seen_from[asker][search]
    if not state.hop.seen_from[asker]:
        del state.hop.seen_from[asker]
