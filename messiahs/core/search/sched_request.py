"""Searching for places: sched_request and sched_accept (MESSIAHS 6.2); routing.py continues a search.

A search that answers a `task_request` first follows the path of that request back, at every hop that remembers it.
"""

from dataclasses import replace

from messiahs.core.border.pseudonyms import shown_claim
from messiahs.core.border.shown_ids import enter_claim
from messiahs.core.border.sides import is_hidden
from messiahs.core.executor.claims import grant
from messiahs.core.executor.reservations import note_served, note_starved
from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl, Store
from messiahs.core.interface.limits import LONGEST_LEASE_NS
from messiahs.core.interface.messages import ClaimEnd, DenyCode, Reason, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.interface.policies import Accepted, Need, Refused
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.ids import ClaimId, SystemId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.model.places import machine_of
from messiahs.core.origin import placement
from messiahs.core.relay.byte_route import choose_way, hop_route, offered_on, route_of
from messiahs.core.relay.deliveries import why_too_long
from messiahs.core.relay.named_ends import why_not_proved
from messiahs.core.relay.reachability import avoid, refuse, why_avoided
from messiahs.core.relay.splices import is_anchored, is_spliced, why_not_passed, without_readers
from messiahs.core.search.decisions import begun, decide_others, decide_own, take_own
from messiahs.core.search.foreign_tasks import marked
from messiahs.core.search.own_answer import (
    count_none_here,
    count_refused,
    subject_of,
)
from messiahs.core.search.routing import (
    Arrived,
    after_accept,
    answer_deny,
    ask_others,
    bounded,
    count_at_once,
    count_given,
    on_deny,
    register,
    search_of,
)
from messiahs.core.search.search_notes import hand_to_origin
from messiahs.core.search.unwanted import NOT_ALLOTTED
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.acceptance import judge, refusal_of
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.task_filter.matching import need_of, why_not_here
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
    return _work_on(state, begun(state, request, asker, need, now=now), verdict, is_first=arrived.is_first, now=now)


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
    # The own roots may have been replaced since an own search began.
    trust = state.identity.trust if is_own else subject_of(search)[0].trust
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
    state: ModuleState, search: Search, verdict: Accepted | Refused, /, *, is_first: bool, now: Instant
) -> tuple[Action, ...]:
    request, need = subject_of(search)
    actions: list[Action] = []
    own = decide_own(state, search, verdict, is_first=is_first, now=now)
    if own.places:
        note_served(state, search, now)
        accepted = verdict if isinstance(verdict, Accepted) else Accepted()
        allotted = replace(own.allotted, places=own.places)
        accept, granted = grant(state, request, allotted, asker=search.asker, accepted=accepted, now=now)
        take_own(state, search, own)
        state.request_tally.grant(search.asker.system, request, places=own.places, now=now)
        actions.extend(granted)
        actions.extend(_pass_accept(state, search, accept, via=state.system, now=now))
    elif own.allotted.places:
        actions.extend(note_starved(state, search, own.allotted.need, now))
    _note_demand(state, search, need, is_open=own.is_wanted, now=now)
    if search.left == 0:
        return tuple(actions)
    others = decide_others(state, search, verdict, own, now=now)
    if is_first and not own.places and not own.is_near:
        if others.is_too_costly:
            count_at_once(state, request, search.asker, search.reason, now=now)
        else:
            bar = own.bar or (NOT_ALLOTTED if own.wanted and not own.allotted.places else None)
            count_none_here(state, search, others.own, bar, now=now)
    return (*actions, *ask_others(state, search, others.order, now=now))


def _note_demand(state: ModuleState, search: Search, need: Need, *, is_open: bool, now: Instant) -> None:
    """Remember places that would suit a neighbor's task, but are taken."""
    if search.asker.relation is Relation.SELF:
        return
    here = own_sdv(state) if is_open and search.left and search.allowed else None
    if here is not None and why_not_here(need, here.description()) is DenyCode.NO_CAPACITY:
        remember_demand(state, search, now)
    elif not search.left:
        forget_demand(state, search)


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
