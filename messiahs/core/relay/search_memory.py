"""Bounds on what one neighbor may occupy at a hop: open searches, remembered searches, and claims that pass through.

A request beyond them is denied at once, at the cost of its message alone. Local users are bounded by their submissions.
"""

from messiahs.core.interface.actions import Action
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
PASSED_LIMIT = 4_096


def why_too_many(state: ModuleState, asker: Asker) -> Reason | None:
    """Return why a neighbor may not start a search now; None if it may."""
    if asker.relation is Relation.SELF:
        return None
    if state.hop.seen_from[asker.system] >= SEEN_LIMIT:
        text = f"{asker.system} has asked more than {SEEN_LIMIT} times in a short while"
    elif sum(system == asker.system for system, _ in state.hop.searches) >= OPEN_LIMIT:
        text = f"{asker.system} has {OPEN_LIMIT} searches open"
    elif sum(row.toward_origin == asker.system for row in state.hop.passed.values()) >= PASSED_LIMIT:
        text = f"{asker.system} has {PASSED_LIMIT} claims through this module"
    else:
        return None
    return Reason(module=state.system, code=DenyCode.LIMIT_REACHED, text=text)


def remember(state: ModuleState, request: SearchRequest, asker: Asker, /, *, climbing: bool, now: Instant) -> None:
    """Remember a search until it has ended at every hop; it counts against the neighbor that sent it first."""
    before = state.hop.seen.get(request.search)
    if before is None:
        state.hop.seen_from[asker.system] += 1
        before = Seen(asker=asker.system, latest=asker.system, has_climbed=False)
    has_climbed = climbing or before.has_climbed
    state.hop.seen[request.search] = Seen(asker=before.asker, latest=asker.system, has_climbed=has_climbed)
    state.timers.set(TimerKind.SEEN, request.search, after(now, request.remaining_ns + SECOND))


def remember_way(state: ModuleState, revoke: TaskRevoke, *, sender: SystemId, now: Instant) -> None:
    """Remember for a while the way to the requester of a task_request to whom running tasks are offered through here.

    The way is that of the request, if it passed through here; else the neighbor that the offer names, or that sent
    the offer.
    """
    search = revoke.answers
    if search is None or search in state.hop.seen or state.hop.seen_from[sender] >= SEEN_LIMIT:
        return
    way = revoke.toward if revoke.toward is not None and revoke.toward in state.neighbors else sender
    state.hop.seen_from[sender] += 1
    state.hop.seen[search] = Seen(asker=sender, latest=way, has_climbed=False)
    state.timers.set(TimerKind.SEEN, search, after(now, state.policy.timeouts.request_ns + SECOND))


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
    seen = state.hop.seen.pop(search)
    state.hop.seen_from[seen.asker] -= 1
    if not state.hop.seen_from[seen.asker]:
        del state.hop.seen_from[seen.asker]
    return ()
