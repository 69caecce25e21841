"""Searching for places: sched_request, sched_accept, sched_deny (MESSIAHS 6.2).

A search climbs, crosses once and descends. A request from a child or a local user may go to the module itself, its
children, siblings and parents; one from a parent or sibling only to itself and its children: exactly what U and S
promised. It never goes back to its asker, and one candidate is asked at a time (footnote 5).
"""

from bisect import bisect_left
from dataclasses import replace

from messiahs.core import placing
from messiahs.core.actions import Action, Decision, Report, ReportCode, SendControl, Store
from messiahs.core.attributes import INTEGER_HIGHEST
from messiahs.core.bounding import remember, why_too_many
from messiahs.core.fitting import need_of, why_not, why_not_here
from messiahs.core.granting import grant, places_for
from messiahs.core.guarding import is_revoked
from messiahs.core.ids import ClaimId, MessageId, SystemId
from messiahs.core.instants import HOUR, MILLISECOND, MINUTE, SECOND, Instant, after
from messiahs.core.judging import judge, rank, refusal_of, summary_of
from messiahs.core.messages import ClaimEnd, DenyCode, Reason, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.naming import hops_for, signed
from messiahs.core.neighbors import Relation
from messiahs.core.own_machine import own_sdv
from messiahs.core.placing import ASK_LIMIT, ASKS, HOPS
from messiahs.core.ports import Accepted, Asker, BadPredicate, Candidate, Need, Refused
from messiahs.core.rows import PassedClaimRow
from messiahs.core.state import ModuleState, Search, Seen
from messiahs.core.sums import viewed_kind
from messiahs.core.timers import TimerKind
from messiahs.core.vectors import EMPTY, Vector

_LONGEST_LEASE_NS = 7 * 24 * HOUR
"""An executor that wants to keep tasks for longer without a sign of life is not believed."""
_HOPEFUL = (
    DenyCode.NO_CAPACITY,
    DenyCode.LIMIT_REACHED,
    DenyCode.REFUSED_BY_POLICY,
    DenyCode.TIMED_OUT,
    DenyCode.LOST,
    DenyCode.REQUIREMENT_UNMET,
    DenyCode.NO_CLASS,
)
"""Codes from the one that is nearest to a yes to the one that is farthest."""
_MARGIN_NS = 20 * MILLISECOND
"""What a hop keeps for itself of the time that a search has left."""
_LONGEST_SEARCH_NS = 10 * MINUTE
_PENALTY_NS = 60 * SECOND
"""How long a neighbor through which an attempt was lost ranks last."""


def on_sched_request(
    state: ModuleState, request: SchedRequest, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Grant places on the own machine, ask others for the rest, or deny (MESSIAHS 6.2).

    `accept` is the gate: refused for good, nothing is forwarded; refused for this system, only a child's request may
    still climb or cross. Local users are not gated for forwarding.
    """
    if (sender, request.id) in state.hop.searches:
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=f"request {request.id} was made before"),)
    request = _bounded(request)
    asker = Asker(system=sender, relation=_relation_of(state, sender))
    climbing = asker.relation in (Relation.SELF, Relation.CHILD)
    seen = state.hop.seen.get(request.search)
    refusal = _refuse_at_once(state, request, seen=seen, climbing=climbing) or why_too_many(state, asker)
    parsed = state.parse(request.requirement)
    if isinstance(parsed, BadPredicate):
        refusal = Reason(module=state.system, code=DenyCode.BAD_PREDICATE, text=parsed.text)
    if refusal is not None or isinstance(parsed, BadPredicate):
        assert refusal is not None
        return _answer_deny(state, request, asker, reason=refusal, asks_left=request.asks_left, now=now)
    remember(state, request, asker, climbing=climbing, now=now)
    need = need_of(request.tdv, parsed)
    verdict = judge(state, request.tdv, asker, slots=need.slots, now=now)
    if isinstance(verdict, Refused) and verdict.is_final and asker.relation is not Relation.SELF:
        reason = refusal_of(state, request.tdv, asker, verdict, slots=need.slots, now=now)
        return _answer_deny(state, request, asker, reason=reason, asks_left=request.asks_left, now=now)
    search = Search(
        request=request,
        asker=asker,
        need=need,
        left=request.count,
        allowed=_allowed_places(state, request, asker, need, now),
        asks_left=request.asks_left,
        until=after(now, request.remaining_ns - _MARGIN_NS),
        reason=Reason(module=state.system, code=DenyCode.NO_CLASS),
    )
    return _work_on(state, search, verdict, is_first=seen is None, now=now)


def on_sched_accept(state: ModuleState, accept: SchedAccept, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Pass a claim on towards its origin, or take it if the origin is here (MESSIAHS 6.2).

    An accept that comes too late, or promises more than was asked for, is answered by the end of that claim.
    """
    if _is_known(state, accept.claim):
        # Also when it comes twice: its end would end the claim that we know by this name.
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=f"{accept.claim} was granted before"),)
    search = state.hop.asks.get(accept.request)
    is_fair = search is not None and accept.places <= search.asked_left and accept.lease_ns <= _LONGEST_LEASE_NS
    if search is None or search.asked != sender or not is_fair:
        return (SendControl(to=sender, message=ClaimEnd(claim=accept.claim)),)
    search.left -= accept.places
    search.asked_left -= accept.places
    if _is_child(state, sender):
        search.allowed -= accept.places
    search.asks_left = min(search.asks_left, accept.asks_left)
    if search.left == 0:
        _close(state, accept.request, search)
    passed = _pass_accept(state, search, accept, via=sender, now=now)
    if search.left == 0 or search.asked_left:
        return passed
    # It has given all that it was asked for, which was less than is wanted, and says nothing more.
    _end_ask(state, accept.request, search)
    return (*passed, *_ask_next(state, search, now))


def on_sched_deny(state: ModuleState, deny: SchedDeny, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Ask the next eligible system; when none is left, deny in turn (MESSIAHS 6.2).

    A deny for a request that we no longer hold is late news, not an error, and changes nothing.
    """
    search = state.hop.asks.get(deny.request)
    if search is None or search.asked != sender:
        return ()
    search.hops.extend((sender, reason) for reason in deny.reasons)
    search.asks_left = min(search.asks_left, deny.asks_left)
    _end_ask(state, deny.request, search)
    return _ask_next(state, search, now)


def on_search_timeout(state: ModuleState, ask: MessageId, now: Instant) -> tuple[Action, ...]:
    """Go on without the neighbor that we asked: it has been silent for all the time that it was given."""
    return _give_up_on(state, ask, DenyCode.TIMED_OUT, now)


def on_neighbor_lost(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Count what a neighbor was asked as denied `lost`, and drop what it asked: a search is soft."""
    actions: list[Action] = []
    for key, search in list(state.hop.searches.items()):
        if search.asker.system == neighbor:
            del state.hop.searches[key]
            for ask in [ask for ask, asked_for in state.hop.asks.items() if asked_for is search]:
                _end_ask(state, ask, search)
    for ask, search in list(state.hop.asks.items()):
        if search.asked == neighbor:
            actions.extend(_give_up_on(state, ask, DenyCode.LOST, now))
    return tuple(actions)


def _is_known(state: ModuleState, claim: ClaimId) -> bool:
    return claim.executor == state.system or claim in state.hop.passed or claim in state.origin.claims


def _bounded(request: SchedRequest) -> SchedRequest:
    """Give a request that cannot occupy us longer, send us further or want more than one of our own."""
    return replace(
        request,
        count=min(request.count, ASK_LIMIT),
        hops_left=min(request.hops_left, HOPS),
        asks_left=min(request.asks_left, ASKS),
        remaining_ns=min(request.remaining_ns, _LONGEST_SEARCH_NS),
    )


def _refuse_at_once(state: ModuleState, request: SchedRequest, *, seen: Seen | None, climbing: bool) -> Reason | None:
    def reason(code: DenyCode, text: str = "") -> Reason:
        return Reason(module=state.system, code=code, text=text)

    if seen is not None and (seen.has_climbed or not climbing):
        return reason(DenyCode.ALREADY_ASKED)
    if request.remaining_ns <= _MARGIN_NS:
        return reason(DenyCode.TIMED_OUT, "no time was left when the request arrived")
    if not state.has_space:
        return reason(DenyCode.NO_SPACE, "the disk of this module is full")
    return None


def _work_on(
    state: ModuleState, search: Search, verdict: Accepted | Refused, *, is_first: bool, now: Instant
) -> tuple[Action, ...]:
    actions: list[Action] = []
    # Asked again, climbing, after it was asked descending: itself and its children have answered already.
    is_open = isinstance(verdict, Accepted) and is_first
    is_wanted = is_open and not is_revoked(state, search.request.origin, search.request.tdv, now)
    places = places_for(state, search.need, min(search.left, search.allowed)) if is_wanted else 0
    if places:
        accept, granted = grant(state, search, places, now=now)
        search.left -= places
        search.allowed -= places
        actions.extend(granted)
        actions.extend(_pass_accept(state, search, accept, via=state.system, now=now))
    if search.left == 0:
        return tuple(actions)
    relations = _allowed(search.asker, verdict, is_open=is_open)
    candidates = _candidates(state, search, relations)
    search.untried = list(rank(state, candidates, search.need, tdv=search.request.tdv, now=now))
    search.reason = _own_reason(state, search, verdict, candidates, now=now)
    if is_open and not is_wanted:
        search.reason = replace(search.reason, text="a task like this was revoked here a short while ago")
    state.hop.searches[search.asker.system, search.request.id] = search
    actions.extend(_ask_next(state, search, now))
    return tuple(actions)


def _allowed(asker: Asker, verdict: Accepted | Refused, *, is_open: bool) -> tuple[Relation, ...]:
    climbing = asker.relation in (Relation.SELF, Relation.CHILD)
    # Local users are not gated for forwarding: a refusal concerns the own machine only.
    descends = is_open or (asker.relation is Relation.SELF and isinstance(verdict, Refused))
    return ((Relation.CHILD,) if descends else ()) + ((Relation.SIBLING, Relation.PARENT) if climbing else ())


def _allowed_places(state: ModuleState, request: SchedRequest, asker: Asker, need: Need, now: Instant, /) -> int:
    """Give how many of the wanted places the policy leaves to this system and its children.

    Local users are not gated for forwarding.
    """
    if asker.relation is Relation.SELF:
        return request.count

    def is_refused(places: int) -> bool:
        return isinstance(judge(state, request.tdv, asker, slots=places * need.slots, now=now), Refused)

    if not is_refused(request.count):
        return request.count
    return bisect_left(range(1, request.count), True, key=is_refused)


def _is_child(state: ModuleState, system: SystemId) -> bool:
    return system in state.neighbors and state.neighbors[system].relation is Relation.CHILD


def _candidates(state: ModuleState, search: Search, relations: tuple[Relation, ...]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            system=system,
            relation=neighbor.relation,
            view=_view(state, system),
            has_lost=_has_lost(state, system, search.until),
        )
        for system, neighbor in state.neighbors.items()
        if neighbor.relation in relations and system != search.asker.system and state.updates.links.get(system)
    )


def _has_lost(state: ModuleState, system: SystemId, until: Instant) -> bool:
    lost_at = state.origin.lost_at.get(system)
    return lost_at is not None and until - lost_at < _PENALTY_NS


def _view(state: ModuleState, system: SystemId) -> Vector:
    view = state.updates.views.get((system, viewed_kind(state.neighbors[system])))
    return view.message.vector if view is not None else EMPTY


def _own_reason(
    state: ModuleState,
    search: Search,
    verdict: Accepted | Refused,
    candidates: tuple[Candidate, ...],
    *,
    now: Instant,
) -> Reason:
    if isinstance(verdict, Refused):
        return refusal_of(state, search.request.tdv, search.asker, verdict, slots=search.need.slots, now=now)
    # What the policy ranks are those that could hold the task.
    ranked = set(search.untried)
    left_out = tuple(candidate.view for candidate in candidates if candidate.system not in ranked)
    code, text = why_not(search.need, left_out), ""
    here = own_sdv(state)
    if here is not None:
        own_code, text = why_not_here(search.need, here.description())
        code = min(code, own_code, key=_HOPEFUL.index)
    return Reason(module=state.system, code=code, text=text)


def _ask_next(state: ModuleState, search: Search, now: Instant) -> tuple[Action, ...]:
    """Ask the likeliest candidate that is left, with what is left of the search's budgets."""
    remaining_ns = search.until - now
    while search.untried:
        if search.request.hops_left <= 0:
            return _deny(state, search, now, code=DenyCode.HOP_LIMIT)
        if search.asks_left <= 0 or remaining_ns <= _MARGIN_NS:
            return _deny(state, search, now, code=DenyCode.TIMED_OUT)
        system = search.untried.pop(0)
        if not state.updates.links.get(system) or (_is_child(state, system) and not search.allowed):
            continue
        # A quarter of the time is kept, so that one silent neighbor does not use up the whole search.
        given_ns = remaining_ns * 3 // 4 if search.untried else remaining_ns
        search.asked, search.asks_left = system, search.asks_left - 1
        search.asked_left = min(search.left, search.allowed) if _is_child(state, system) else search.left
        ask = state.next_message_id()
        state.hop.asks[ask] = search
        state.timers.set(TimerKind.SEARCH, ask, after(now, given_ns))
        request = replace(
            search.request,
            id=ask,
            count=search.asked_left,
            hops_left=search.request.hops_left - 1,
            asks_left=search.asks_left,
            remaining_ns=given_ns,
        )
        return (SendControl(to=system, message=request),)
    return _deny(state, search, now, code=search.reason.code)


def _give_up_on(state: ModuleState, ask: MessageId, code: DenyCode, now: Instant) -> tuple[Action, ...]:
    search = state.hop.asks.get(ask)
    if search is None or search.asked is None:
        return ()
    search.hops.append((search.asked, Reason(module=search.asked, code=code)))
    _end_ask(state, ask, search)
    return _ask_next(state, search, now)


def _end_ask(state: ModuleState, ask: MessageId, search: Search) -> None:
    del state.hop.asks[ask]
    state.timers.cancel(TimerKind.SEARCH, ask)
    search.asked = None


def _close(state: ModuleState, ask: MessageId, search: Search) -> None:
    _end_ask(state, ask, search)
    state.hop.searches.pop((search.asker.system, search.request.id), None)


def _deny(state: ModuleState, search: Search, now: Instant, *, code: DenyCode) -> tuple[Action, ...]:
    state.hop.searches.pop((search.asker.system, search.request.id), None)
    if code in _HOPEFUL:
        code = min((code, *_answers(search)), key=_HOPEFUL.index)
    reason = replace(search.reason, code=code, hops=hops_for(state, search))
    return _answer_deny(state, search.request, search.asker, reason=reason, asks_left=search.asks_left, now=now)


def _answers(search: Search) -> list[DenyCode]:
    """Give what those that were asked said: they know better than a view."""
    codes = [hop.code for _, hop in search.hops if hop.code in _HOPEFUL]
    if search.left < search.request.count or (search.hops and not codes):
        # There are such machines, but none (more) is to be had now.
        codes.append(DenyCode.NO_CAPACITY)
    return codes


def _answer_deny(
    state: ModuleState, request: SchedRequest, asker: Asker, /, *, reason: Reason, asks_left: int, now: Instant
) -> tuple[Action, ...]:
    if asker.relation is Relation.SELF:
        return placing.on_search_denied(state, request.id, (reason,), now)
    text = f"{asker.system}: {summary_of(reason)}"
    decision = Decision(what="sched_deny", task=request.search.hex()[:8], text=text)
    deny = SchedDeny(request=request.id, reasons=(signed(state, reason, asker),), asks_left=asks_left)
    return (decision, SendControl(to=asker.system, message=deny))


def _pass_accept(
    state: ModuleState, search: Search, accept: SchedAccept, *, via: SystemId, now: Instant
) -> tuple[Action, ...]:
    if search.asker.relation is Relation.SELF:
        return placing.on_claim_granted(state, search.request.id, accept, via=via, is_last=search.left == 0, now=now)
    passed = replace(accept, request=search.request.id, asks_left=search.asks_left)
    send = SendControl(to=search.asker.system, message=passed)
    if via == state.system:
        return (send,)
    row = PassedClaimRow(
        id=accept.claim,
        toward_origin=search.asker.system,
        toward_executor=via,
        tdv=search.request.tdv,
        slots=min(accept.places * search.need.slots, INTEGER_HIGHEST),
    )
    state.hop.passed[accept.claim] = row
    return (Store(row=row), send)


def _relation_of(state: ModuleState, sender: SystemId) -> Relation:
    return Relation.SELF if sender == state.system else state.neighbors[sender].relation
