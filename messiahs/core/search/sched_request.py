"""Searching for places: sched_request and sched_accept (MESSIAHS 6.2); routing.py continues a search.

A search that answers a `task_request` first follows the path of that request back, at every hop that remembers it.
"""

from bisect import bisect_left
from dataclasses import replace

from messiahs.core.border.pseudonyms import shown_claim
from messiahs.core.border.shown_ids import enter_claim
from messiahs.core.border.sides import is_hidden
from messiahs.core.executor.allocation import Allotted, allot, places_for
from messiahs.core.executor.claims import grant
from messiahs.core.executor.reservations import may_use_reserved, note_served, note_starved
from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl, Store
from messiahs.core.interface.limits import LONGEST_LEASE_NS
from messiahs.core.interface.messages import ClaimEnd, DenyCode, Reason, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.interface.policies import Accepted, Asker, Need, Refused
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.ids import ClaimId, SystemId, Ticket
from messiahs.core.model.instants import Instant, after
from messiahs.core.model.neighbors import Relation
from messiahs.core.model.places import machine_of
from messiahs.core.origin import placement
from messiahs.core.relay.byte_route import choose_way, hop_route, offered_on, route_of
from messiahs.core.relay.claim_relay import leads_toward
from messiahs.core.relay.deliveries import why_too_long
from messiahs.core.relay.named_ends import why_not_proved
from messiahs.core.relay.reachability import avoid, refuse, why_avoided
from messiahs.core.relay.splices import is_anchored, is_spliced, why_not_passed, without_readers
from messiahs.core.search.asking_order import asking_order, candidates_for
from messiahs.core.search.foreign_tasks import marked
from messiahs.core.search.own_answer import (
    count_none_here,
    count_refused,
    note_none_here,
    own_reason,
    subject_of,
    why_none_here,
)
from messiahs.core.search.routing import (
    MARGIN_NS,
    Arrived,
    after_accept,
    answer_deny,
    ask_others,
    bounded,
    count_at_once,
    count_given,
    is_climbing,
    on_deny,
    register,
    search_of,
)
from messiahs.core.search.search_notes import hand_to_origin, note_here
from messiahs.core.search.unwanted import NOT_ALLOTTED, why_barred, with_bar
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.acceptance import judge, rank, refusal_of
from messiahs.core.task_filter.containment import why_not_contained
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.task_filter.matching import need_of, why_not_here, why_too_costly
from messiahs.core.task_filter.maxima import why_beyond
from messiahs.core.task_filter.unmet_demand import forget_demand, remember_demand


def on_sched_request(
    state: ModuleState, request: SchedRequest, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Grant places on the own machine, ask other systems for the rest, or deny (MESSIAHS 6.2).

    `accept` is the gate: after a final refusal nothing is forwarded; after a refusal for this system, only a child's
    request may still climb or cross. Local users are not gated for forwarding.
    """
    request = marked(state, bounded(state, request), sender=sender)
    arrived = register(state, request, request.requirement, sender=sender, now=now)
    if not isinstance(arrived, Arrived):
        return arrived
    asker, need = arrived.asker, need_of(request.tdv, arrived.predicate)
    verdict = judge(state, request.tdv, asker, slots=need.slots, now=now)
    if isinstance(verdict, Refused) and verdict.is_final and asker.relation is not Relation.SELF:
        reason = refusal_of(state, request.tdv, asker, verdict, slots=need.slots, now=now)
        count_refused(state, request, asker, verdict, reason.why, now=now)
        return answer_deny(state, request, asker, reason=reason, asks_left=request.asks_left, now=now)
    search = Search(
        request=request,
        asker=asker,
        need=need,
        left=request.count,
        allowed=_allowed_places(state, request, asker, need, now),
        asks_left=request.asks_left,
        until=after(now, request.remaining_ns - MARGIN_NS),
        reason=Reason(module=state.system, code=DenyCode.NO_CLASS),
        record=SearchRecord(at=now) if asker.relation is Relation.SELF else None,
    )
    return _work_on(state, search, verdict, arrived, now=now)


def on_sched_accept(state: ModuleState, accept: SchedAccept, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Forward a claim towards its origin, or hold it if the origin is here (MESSIAHS 6.2).

    An accept that is late, or grants more than was requested, is answered by the end of its claim; so is one of a claim
    that is known from elsewhere, which stays as it is. A repeated one changes nothing.
    """
    if _is_known(state, accept.claim):
        report = Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=f"{accept.claim} was granted before")
        # The neighbor that granted the claim before must not end it.
        is_repeated = sender == _granted_by(state, accept.claim)
        return (report,) if is_repeated else (report, SendControl(to=sender, message=ClaimEnd(claim=accept.claim)))
    accept = without_readers(state, accept, sender=sender)
    search = search_of(state, accept.request, SchedRequest, sender=sender)
    is_fair = search is not None and accept.places <= search.asked_left and accept.lease_ns <= LONGEST_LEASE_NS
    # Bytes for a system elsewhere that has the name of this one would stay here.
    is_fair = is_fair and route_of(accept, sender).path.system != state.system
    if search is None or not is_fair:
        return (SendControl(to=sender, message=ClaimEnd(claim=accept.claim)),)
    text = why_avoided(state, search, accept, via=sender, now=now)
    text = text or _why_refused(state, search, accept, sender=sender, now=now)
    if text:
        reason = Reason(module=state.system, code=DenyCode.UNREACHABLE, text=text)
        deny = SchedDeny(request=accept.request, reasons=(reason,), asks_left=accept.asks_left)
        ended = SendControl(to=sender, message=ClaimEnd(claim=accept.claim))
        return (ended, *on_deny(state, deny, sender=sender, now=now))
    count_given(state, search, accept.request, given=accept.places, asks_left=accept.asks_left)
    if search.left == 0:
        forget_demand(state, search)
        note_served(state, search, now)
    passed = _pass_accept(state, search, accept, via=sender, now=now)
    return (*passed, *after_accept(state, search, accept.request, now=now))


def _why_refused(state: ModuleState, search: Search, accept: SchedAccept, /, *, sender: SystemId, now: Instant) -> str:
    """Return why a claim is not taken: its lease, or the way on which its bytes would go; empty if it is."""
    is_own = search.asker.relation is Relation.SELF
    if is_own and (text := why_too_long(state, accept, sender=sender)):
        avoid(state, machine_of(accept.claim, accept.place), via=sender, is_final=False, now=now)
        return text
    trust = subject_of(search)[0].trust
    if not is_own:
        text = why_not_passed(state, accept, asker=search.asker.system, sender=sender, trust=trust)
        if text:
            refuse(state, machine_of(accept.claim, accept.place), via=sender, trust=trust, now=now)
            return text
    return why_not_proved(state, accept, sender=sender, trust=trust)


def _is_known(state: ModuleState, claim: ClaimId) -> bool:
    return state.is_own(claim.executor, claim.epoch) or _granted_by(state, claim) is not None


def _granted_by(state: ModuleState, claim: ClaimId) -> SystemId | None:
    """Return the neighbor through which a claim that passes here, or is held, was granted; None for others."""
    passed, held = state.hop.passed.get(claim), state.origin.claims.get(claim)
    if passed is not None:
        return passed.toward_executor
    return held.row.via if held is not None else None


def _work_on(
    state: ModuleState, search: Search, verdict: Accepted | Refused, arrived: Arrived, *, now: Instant
) -> tuple[Action, ...]:
    request, need = subject_of(search)
    actions: list[Action] = []
    # A search that climbs after it was descending: this module and its children have already answered.
    is_near = request.near is not None and search.asker.relation is Relation.SELF
    is_open = isinstance(verdict, Accepted) and arrived.is_first and not is_near
    bar = why_barred(state, request, search.asker, now) if is_open else None
    is_contained = not why_not_contained(state, request.tdv, is_foreign=request.is_foreign, now=now)
    is_wanted = is_open and is_contained and bar is None
    is_wanted = is_wanted and not why_beyond(request.tdv, state.identity.maxima)
    wanted = min(search.left, _allowed_here(state, search, now)) if is_wanted else 0
    allotted = allot(state, request, need, asker=search.asker, wanted=wanted, now=now)
    places = _places_for(state, search, allotted, now) if allotted.places else 0
    if places:
        note_served(state, search, now)
        accepted = verdict if isinstance(verdict, Accepted) else Accepted()
        allotted = replace(allotted, places=places)
        accept, granted = grant(state, request, allotted, asker=search.asker, accepted=accepted, now=now)
        search.left -= places
        search.allowed -= places
        note_here(state, search, places=places)
        state.request_tally.grant(search.asker.system, request, places=places, now=now)
        actions.extend(granted)
        actions.extend(_pass_accept(state, search, accept, via=state.system, now=now))
    elif allotted.places:
        actions.extend(note_starved(state, search, allotted.need, now))
    _note_demand(state, search, need, is_open=is_wanted, now=now)
    if search.left == 0:
        return tuple(actions)
    relations = _allowed(arrived, verdict, is_open=is_open or is_near)
    candidates = candidates_for(state, search, relations, now=now)
    if is_near:
        candidates = tuple(each for each in candidates if leads_toward(state, request, each.system))
    views = {each.system: each.view for each in candidates}
    why_not_judged = why_too_costly(need, views, state.updates.overview)
    if why_not_judged:
        search.reason = Reason(module=state.system, code=DenyCode.BAD_PREDICATE, text=why_not_judged)
        if not places and not is_near and arrived.is_first:
            count_at_once(state, request, search.asker, search.reason, now=now)
        return (*actions, *ask_others(state, search, (), now=now))
    ranked = rank(state, candidates, need, tdv=request.tdv, now=now)
    own = why_none_here(state, search, verdict, now=now)
    search.reason = own_reason(state, search, own, candidates, ranked=ranked, now=now)
    search.reason = with_bar(search.reason, bar)
    if not places and not is_near:
        note_none_here(state, search, own, bar)
        if arrived.is_first:
            bar = bar or (NOT_ALLOTTED if wanted and not allotted.places else None)
            count_none_here(state, search, own, bar, now=now)
    untried = asking_order(state, search, candidates, ranked, now=now)
    return (*actions, *ask_others(state, search, untried, now=now))


def _places_for(state: ModuleState, search: Search, allotted: Allotted, now: Instant, /) -> int:
    return places_for(state, allotted.need, allotted.places, uses_reserved=may_use_reserved(state, search, now))


def _note_demand(state: ModuleState, search: Search, need: Need, *, is_open: bool, now: Instant) -> None:
    """Remember places that would suit a neighbor's task, but are taken."""
    if search.asker.relation is Relation.SELF:
        return
    here = own_sdv(state) if is_open and search.left and search.allowed else None
    if here is not None and why_not_here(need, here.description()) is DenyCode.NO_CAPACITY:
        remember_demand(state, search, now)
    elif not search.left:
        forget_demand(state, search)


def _allowed(arrived: Arrived, verdict: Accepted | Refused, *, is_open: bool) -> tuple[Relation, ...]:
    # Local users are not gated for forwarding: a refusal concerns the own machine only.
    descends = is_open or (arrived.asker.relation is Relation.SELF and isinstance(verdict, Refused))
    return ((Relation.CHILD,) if descends else ()) + (
        (Relation.SIBLING, Relation.PARENT) if is_climbing(arrived.asker) else ()
    )


def _allowed_places(state: ModuleState, request: SchedRequest, asker: Asker, need: Need, now: Instant, /) -> int:
    """Return how many of the wanted places the policy allows to this system and its children.

    Local users are not gated for forwarding.
    """
    return request.count if asker.relation is Relation.SELF else _accepted_places(state, request, asker, need, now)


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


def _pass_accept(
    state: ModuleState, search: Search, accept: SchedAccept, *, via: SystemId, now: Instant
) -> tuple[Action, ...]:
    if search.asker.relation is Relation.SELF:
        hand_to_origin(state, search)
        return placement.on_claim_granted(state, search.request.id, accept, via=via, is_last=search.left == 0, now=now)
    is_foreign = accept.is_foreign or via in state.identity.apart
    accept = replace(accept, request=search.request.id, asks_left=search.asks_left, is_foreign=is_foreign)
    if via == state.system:
        return (SendControl(to=search.asker.system, message=accept),)
    request, need = subject_of(search)
    row = PassedClaimRow(
        id=accept.claim,
        toward_origin=search.asker.system,
        toward_executor=via,
        tdv=request.tdv,
        slots=min(accept.places * need.slots, INTEGER_HIGHEST),
        origin=request.origin,
        ticket=Ticket(state.randomness.bits(128).to_bytes(16)),
        dialers=request.dialers,
        route=hop_route(state, accept, request, asker=search.asker.system, via=via),
        shown=shown_claim(state, accept.claim) if is_hidden(state, via, viewer=search.asker.system) else None,
        hides_origin=search.is_hidden,
        is_spliced=is_spliced(state, accept, asker=search.asker.system, sender=via, trust=request.trust),
        is_anchored=is_anchored(state, search.asker.system, request.trust),
    )
    state.hop.passed[accept.claim] = row
    enter_claim(state, row)
    choose_way(state, accept, row.route, now=now)
    passed = offered_on(state, accept, row, trust=request.trust)
    return (Store(row=row), SendControl(to=search.asker.system, message=passed))
