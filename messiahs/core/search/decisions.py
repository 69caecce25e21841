"""What a module decides about a search for places: how many it grants, and whom it asks, in which order (MESSIAHS 6.2).

Nothing of the module's state is changed here but the memory of the policy's parts; a search is changed as it goes on,
and its record says why. `sched_request.py` carries the decisions out, and `planning.py` only shows them.
"""

from bisect import bisect_left
from dataclasses import dataclass

from messiahs.core.executor.allocation import Allotted, allot, places_for
from messiahs.core.executor.reservations import may_use_reserved
from messiahs.core.interface.messages import DenyCode, Reason, SchedRequest
from messiahs.core.interface.policies import Accepted, Asker, Need, Refused
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant, after
from messiahs.core.model.neighbors import Relation
from messiahs.core.relay.claim_relay import leads_toward
from messiahs.core.search.asking_order import asking_order, candidates_for
from messiahs.core.search.own_answer import NoPlace, note_none_here, own_reason, subject_of, why_none_here
from messiahs.core.search.routing import MARGIN_NS, is_climbing
from messiahs.core.search.search_notes import note_here
from messiahs.core.search.unwanted import Bar, why_barred, with_bar
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.acceptance import judge, rank
from messiahs.core.task_filter.containment import why_not_contained
from messiahs.core.task_filter.matching import why_too_costly
from messiahs.core.task_filter.maxima import why_beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDecision:
    """How many `places` on the own machine are granted, of those `wanted` there, and what keeps it from more.

    Unless the search `is_open`, neither the own machine nor the children are asked; if it `is_near`, only neighbors on
    the way toward the claim whose attempts have to move. The machine `is_wanted` if nothing bars it from such a task,
    whatever is free.
    """

    is_open: bool
    is_near: bool
    is_wanted: bool
    bar: Bar | None
    wanted: int
    allotted: Allotted
    places: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersDecision:
    """In which `order` neighbors are asked for the rest, and why the `own` machine grants none, or none more.

    Of them, the policy has `ranked` those that could hold a task now by their views. Nobody is asked if it
    `is_too_costly` to evaluate the requirement.
    """

    order: tuple[SystemId, ...] = ()
    ranked: tuple[SystemId, ...] = ()
    own: NoPlace = None
    is_too_costly: bool = False


def begun(state: ModuleState, request: SchedRequest, asker: Asker, need: Need, /, *, now: Instant) -> Search:
    """Return the search for a request that has arrived; one of local users has a record."""
    is_own = asker.relation is Relation.SELF
    return Search(
        request=request,
        asker=asker,
        need=need,
        left=request.count,
        # Local users are not gated for forwarding.
        allowed=request.count if is_own else _accepted_places(state, request, asker, need, now),
        asks_left=request.asks_left,
        until=after(now, request.remaining_ns - MARGIN_NS),
        reason=Reason(module=state.system, code=DenyCode.NO_CLASS),
        record=SearchRecord(at=now) if is_own else None,
    )


def decide_own(
    state: ModuleState, search: Search, verdict: Accepted | Refused, /, *, is_first: bool, now: Instant
) -> OwnDecision:
    """Decide how many places the own machine grants.

    None if the search climbs after it was descending (not `is_first`): this module and its children have answered.
    """
    request, need = subject_of(search)
    is_near = request.near is not None and search.asker.relation is Relation.SELF
    is_open = isinstance(verdict, Accepted) and is_first and not is_near
    bar = why_barred(state, request, search.asker, now) if is_open else None
    is_contained = not why_not_contained(state, request.tdv, is_foreign=request.is_foreign, now=now)
    is_wanted = is_open and is_contained and bar is None
    is_wanted = is_wanted and not why_beyond(request.tdv, state.identity.maxima)
    wanted = min(search.left, _allowed_here(state, search, now)) if is_wanted else 0
    allotted = allot(state, request, need, asker=search.asker, wanted=wanted, now=now)
    return OwnDecision(
        is_open=is_open,
        is_near=is_near,
        is_wanted=is_wanted,
        bar=bar,
        wanted=wanted,
        allotted=allotted,
        places=_places_for(state, search, allotted, now) if allotted.places else 0,
    )


def take_own(state: ModuleState, search: Search, own: OwnDecision, /) -> None:
    """Count the places that the own machine grants to a search."""
    search.left -= own.places
    search.allowed -= own.places
    note_here(state, search, places=own.places)


def decide_others(
    state: ModuleState,
    search: Search,
    verdict: Accepted | Refused,
    own: OwnDecision,
    /,
    *,
    now: Instant,
) -> OthersDecision:
    """Decide whom a search asks for what is left, and set the reason why this module itself does not grant that."""
    request, need = subject_of(search)
    relations = _allowed(search.asker, verdict, is_open=own.is_open or own.is_near)
    candidates = candidates_for(state, search, relations, now=now)
    if own.is_near:
        candidates = tuple(each for each in candidates if leads_toward(state, request, each.system))
    views = {each.system: each.view for each in candidates}
    why_not_judged = why_too_costly(need, views, state.updates.overview)
    if why_not_judged:
        search.reason = Reason(module=state.system, code=DenyCode.BAD_PREDICATE, text=why_not_judged)
        return OthersDecision(is_too_costly=True)
    ranked = rank(state, candidates, need, tdv=request.tdv, now=now)
    none_here = why_none_here(state, search, verdict, now=now)
    search.reason = own_reason(state, search, none_here, candidates, ranked=ranked, now=now)
    search.reason = with_bar(search.reason, own.bar)
    if not own.places and not own.is_near:
        note_none_here(state, search, none_here, own.bar)
    order = asking_order(state, search, candidates, ranked, now=now)
    return OthersDecision(order=order, ranked=ranked, own=none_here)


def _places_for(state: ModuleState, search: Search, allotted: Allotted, now: Instant, /) -> int:
    return places_for(state, allotted.need, allotted.places, uses_reserved=may_use_reserved(state, search, now))


def _allowed(asker: Asker, verdict: Accepted | Refused, *, is_open: bool) -> tuple[Relation, ...]:
    # Local users are not gated for forwarding: a refusal concerns the own machine only.
    descends = is_open or (asker.relation is Relation.SELF and isinstance(verdict, Refused))
    return ((Relation.CHILD,) if descends else ()) + ((Relation.SIBLING, Relation.PARENT) if is_climbing(asker) else ())


def _allowed_here(state: ModuleState, search: Search, now: Instant) -> int:
    """Return how many places the policy allows on the own machine, which local users share like others."""
    if search.asker.relation is not Relation.SELF:
        return search.allowed
    request, need = subject_of(search)
    return _accepted_places(state, request, search.asker, need, now)


def _accepted_places(state: ModuleState, request: SchedRequest, asker: Asker, need: Need, now: Instant, /) -> int:
    """Return how many of the wanted places the policy accepts; it accepts one."""

    def is_refused(places: int) -> bool:
        return isinstance(judge(state, request.tdv, asker, slots=places * need.slots, now=now), Refused)

    if not is_refused(request.count):
        return request.count
    return bisect_left(range(1, request.count), True, key=is_refused)
