"""Asking one neighbor after the other: the common part of searches for places and for tasks (MESSIAHS 6.2).

A search climbs, crosses once and descends. A request from a child or a local user may go to the module itself, its
children, siblings and parents; one from a parent or sibling only to itself and its children, as U and S have promised.
It never returns to its asker, and one candidate is asked at a time (footnote 5). One or more accepts, and one deny,
return on the same path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from messiahs.core.border.origins import why_no_origin
from messiahs.core.border.predicates import why_not_judged
from messiahs.core.border.sides import is_hidden
from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl
from messiahs.core.interface.limits import ASK_LIMIT, FIRST_LEASE_NS, LONGEST_SEARCH_NS
from messiahs.core.interface.membership_rows import DrainRow
from messiahs.core.interface.messages import DenyCode, Reason, SchedDeny, SchedRequest, TaskDeny, TaskRequest
from messiahs.core.interface.policies import Asker
from messiahs.core.interface.predicates import BadPredicate, Predicate
from messiahs.core.interface.request_counts import Gate
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.parties import asker_of
from messiahs.core.model.ids import MessageId, SystemId
from messiahs.core.model.instants import MILLISECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.model.places import digest_of
from messiahs.core.model.texts import DRAINED
from messiahs.core.origin import placement
from messiahs.core.relay.byte_route import with_dialer
from messiahs.core.relay.claim_relay import leads_toward
from messiahs.core.relay.denials import note_denial, note_grant
from messiahs.core.relay.disclosure import hops_for, named, signed
from messiahs.core.relay.reachability import avoiding, refused_through
from messiahs.core.relay.search_memory import remember, room_beyond, why_too_many
from messiahs.core.relay.splices import NO_ANCHORS
from messiahs.core.search.search_notes import hand_to_origin, note_asked, note_denied, note_places
from messiahs.core.state.hop import Search, SearchRequest, Seen
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import View, viewed_kind
from messiahs.core.task_filter.acceptance import is_child, summary_of
from messiahs.core.task_filter.matching import fitting

HOPEFUL = (
    DenyCode.NO_CAPACITY,
    DenyCode.LIMIT_REACHED,
    DenyCode.REFUSED_BY_POLICY,
    DenyCode.DRAINING,
    DenyCode.TIMED_OUT,
    DenyCode.LOST,
    DenyCode.UNREACHABLE,
    DenyCode.REQUIREMENT_UNMET,
    DenyCode.NO_CLASS,
)
"""Codes in the order of how close they are to an accept."""
_GATES: Final[Mapping[DenyCode, Gate]] = MappingProxyType(
    {
        DenyCode.TIMED_OUT: Gate.TOO_LATE,
        DenyCode.DRAINING: Gate.DRAINING,
        DenyCode.NO_SPACE: Gate.NO_SPACE,
        DenyCode.LIMIT_REACHED: Gate.TOO_MANY,
        DenyCode.REFUSED_BY_POLICY: Gate.NOT_SHOWN,
        DenyCode.BAD_PREDICATE: Gate.BAD_PREDICATE,
    }
)
"""What refuses a request before the policy is asked, by the code for its asker."""
MARGIN_NS = 20 * MILLISECOND
"""Time that a hop keeps for itself from the rest of a search."""
_Request = TypeVar("_Request", SchedRequest, TaskRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A request in progress: its asker, and its parsed predicate.

    With `is_first` the search arrives for the first time. If it arrives again, climbing after it was descending, this
    module and its children have already answered.
    """

    asker: Asker
    predicate: Predicate
    is_first: bool


def is_climbing(asker: Asker) -> bool:
    """Return whether a request of an asker may be forwarded to siblings and parents."""
    return asker.relation in (Relation.SELF, Relation.CHILD)


def register(
    state: ModuleState, request: SearchRequest, predicate: str, /, *, sender: SystemId, now: Instant
) -> Arrived | tuple[Action, ...]:
    """Register a (bounded) request, or return the actions that refuse it at once."""
    if (sender, request.id) in state.hop.searches:
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=f"request {request.id} was made before"),)
    asker = asker_of(state, sender, _relation_of(state, sender), now)
    arrived = arrival_of(state, request, predicate, asker=asker)
    if isinstance(arrived, Arrived):
        remember(state, request, asker, climbing=is_climbing(asker), now=now)
        return arrived
    if request.search not in state.hop.seen:
        count_at_once(state, request, asker, arrived, now=now)
    return answer_deny(state, request, asker, reason=arrived, asks_left=request.asks_left, now=now)


def arrival_of(state: ModuleState, request: SearchRequest, predicate: str, /, *, asker: Asker) -> Arrived | Reason:
    """Return how a (bounded) request begins, or why it is refused at once; nothing is changed."""
    seen = state.hop.seen.get(request.search)
    refusal = _refuse_at_once(state, request, asker, seen) or why_too_many(state, asker)
    if refusal is not None:
        # A request that is refused anyway must not cost the parsing of its predicate.
        return refusal
    parsed = state.parse(predicate)
    if isinstance(parsed, BadPredicate):
        return Reason(module=state.system, code=DenyCode.BAD_PREDICATE, text=parsed.text)
    unwanted = why_no_origin(state, request, sender=asker.system)
    unwanted = unwanted or why_not_judged(state, request, asker=asker.system, at=state.system)
    if unwanted:
        return Reason(module=state.system, code=DenyCode.REFUSED_BY_POLICY, text=unwanted)
    return Arrived(asker=asker, predicate=parsed, is_first=seen is None)


def count_at_once(state: ModuleState, request: SearchRequest, asker: Asker, reason: Reason, /, *, now: Instant) -> None:
    """Count for the owner a request for places that was refused before the policy was asked."""
    if isinstance(request, SchedRequest) and (gate := _GATES.get(reason.code)) is not None:
        state.request_tally.refuse(asker.system, request, (gate, ""), why=reason.text, now=now)


def bounded(state: ModuleState, request: _Request, /) -> _Request:
    """Return a request with count and time within the limits of the protocol, hops and asks within the policy's."""
    limits = state.policy.limits
    return replace(
        request,
        count=min(request.count, ASK_LIMIT),
        hops_left=min(request.hops_left, limits.hops),
        asks_left=min(request.asks_left, limits.asks),
        remaining_ns=min(request.remaining_ns, LONGEST_SEARCH_NS),
    )


def reachable(state: ModuleState, asker: SystemId, relations: tuple[Relation, ...], /) -> tuple[Neighbor, ...]:
    """Return the neighbors that may be asked: linked to stay, of one of these relations, and not the asker."""
    return tuple(
        neighbor
        for system, neighbor in state.neighbors.items()
        if neighbor.relation in relations and system != asker and state.has_lasting_link(system)
    )


def why_drained(drain: DrainRow) -> str:
    """Return why a drained module takes no new work, for those who ask."""
    return f"{DRAINED}: {drain.text}" if drain.text else DRAINED


def view_behind(state: ModuleState, neighbor: Neighbor) -> View | None:
    """Return the view of a neighbor by which tasks are placed with it; None before its first vector."""
    return state.updates.views.get((neighbor.system, viewed_kind(neighbor)))


def ask_others(
    state: ModuleState, search: Search, untried: tuple[SystemId, ...], /, *, now: Instant
) -> tuple[Action, ...]:
    """Ask other systems for the rest, one after the other; deny the rest when no candidate is left."""
    search.untried = list(untried)
    state.hop.searches[search.asker.system, search.request.id] = search
    return _ask_next(state, search, now)


def search_of(
    state: ModuleState, ask: MessageId, kind: type[SchedRequest] | type[TaskRequest], /, *, sender: SystemId
) -> Search | None:
    """Return the search for which this module asked a neighbor; None if the answer is not, or no longer, expected."""
    search = state.hop.asks.get(ask)
    if search is None or search.asked != sender or not isinstance(search.request, kind):
        return None
    return search


def count_given(state: ModuleState, search: Search, ask: MessageId, /, *, given: int, asks_left: int) -> None:
    """Count the places or tasks given by a neighbor; a search that has all of them ends."""
    assert search.asked is not None, "a neighbor was asked"
    note_grant(state, search, search.asked)
    note_places(search, search.asked, places=given)
    search.left -= given
    search.asked_left -= given
    if is_child(state, search.asked):
        search.allowed -= given
    search.asks_left = min(search.asks_left, asks_left)
    if search.left == 0:
        _end_ask(state, ask, search)
        state.hop.searches.pop((search.asker.system, search.request.id), None)


def after_accept(state: ModuleState, search: Search, ask: MessageId, /, *, now: Instant) -> tuple[Action, ...]:
    """Ask the next candidate for the rest, once a neighbor that was asked for a part has given all of that part.

    Such a neighbor sends no further answer.
    """
    if search.left == 0 or search.asked_left:
        return ()
    _end_ask(state, ask, search)
    return _ask_next(state, search, now)


def on_deny(state: ModuleState, deny: SchedDeny | TaskDeny, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Ask the next eligible system; when none is left, deny in turn (MESSIAHS 6.2).

    A deny for a request that is no longer held is late, not an error, and changes nothing.
    """
    search = search_of(state, deny.request, SchedRequest if isinstance(deny, SchedDeny) else TaskRequest, sender=sender)
    if search is None:
        return ()
    if search.showing:
        note_denial(state, search, sender, now)
    search.hops.extend((sender, reason) for reason in deny.reasons)
    note_denied(search, sender, deny.reasons)
    search.asks_left = min(search.asks_left, deny.asks_left)
    _end_ask(state, deny.request, search)
    return _ask_next(state, search, now)


def on_search_timeout(state: ModuleState, ask: MessageId, now: Instant) -> tuple[Action, ...]:
    """Continue without the neighbor that was asked: it has not answered within its time."""
    return _give_up_on(state, ask, DenyCode.TIMED_OUT, now)


def on_neighbor_lost(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Count requests to a lost neighbor as denied with `lost`, and drop its own requests: searches are not stored."""
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


def answer_deny(
    state: ModuleState, request: SearchRequest, asker: Asker, /, *, reason: Reason, asks_left: int, now: Instant
) -> tuple[Action, ...]:
    """Deny the rest of a request, to its asker."""
    is_for_tasks = isinstance(request, TaskRequest)
    if asker.relation is Relation.SELF and not is_for_tasks:
        return placement.on_search_denied(state, request.id, (reason,), now)
    what = "task_deny" if is_for_tasks else "sched_deny"
    text = f"{asker.system}: {summary_of(reason)}"
    decision = Decision(what=what, task=request.search.hex()[:8], text=text)
    if asker.relation is Relation.SELF:
        return (decision,)
    deny = TaskDeny if is_for_tasks else SchedDeny
    message = deny(request=request.id, reasons=(signed(state, reason, asker),), asks_left=asks_left)
    return (decision, SendControl(to=asker.system, message=message))


def _refuse_at_once(state: ModuleState, request: SearchRequest, asker: Asker, seen: Seen | None) -> Reason | None:
    def reason(code: DenyCode, text: str = "") -> Reason:
        return Reason(module=state.system, code=code, text=text)

    if seen is not None and (seen.has_climbed or not is_climbing(asker)):
        return reason(DenyCode.ALREADY_ASKED)
    if request.remaining_ns <= MARGIN_NS:
        return reason(DenyCode.TIMED_OUT, "no time was left when the request arrived")
    if state.membership.is_leaving(asker.system):
        return reason(DenyCode.DRAINING, "this link is being ended")
    if asker.relation is not Relation.SELF and isinstance(request, SchedRequest) and state.membership.drain is not None:
        return reason(DenyCode.DRAINING, why_drained(state.membership.drain))
    if not state.has_space:
        return reason(DenyCode.NO_SPACE, "the disk of this module is full")
    return None


def _ask_next(state: ModuleState, search: Search, now: Instant) -> tuple[Action, ...]:
    """Ask the best remaining candidate, within the remaining budgets of the search."""
    remaining_ns = search.until - now
    while search.untried:
        if search.request.hops_left <= 0:
            return _deny(state, search, now, code=DenyCode.HOP_LIMIT)
        if search.asks_left <= 0 or remaining_ns <= MARGIN_NS:
            return _deny(state, search, now, code=DenyCode.TIMED_OUT)
        system = search.untried.pop(0)
        if not state.has_lasting_link(system) or (is_child(state, system) and not search.allowed):
            continue
        room = _room_at(state, search, system)
        if isinstance(room, Reason):
            search.hops.append((system, signed(state, room, search.asker)))
            note_denied(search, system, (room,))
            continue
        # A quarter of the time is kept, so that one silent neighbor cannot use up the whole search.
        given_ns = remaining_ns * 3 // 4 if search.untried else remaining_ns
        search.asked, search.asks_left = system, search.asks_left - 1
        search.asked_left = min(search.left, room, search.allowed if is_child(state, system) else room)
        search.showing = _showing(state, search, system)
        note_asked(search, system)
        ask = state.next_message_id()
        state.hop.asks[ask] = search
        state.timers.set(TimerKind.SEARCH, ask, after(now, given_ns))
        search.is_hidden = is_hidden(state, search.asker.system, viewer=system)
        named_request = named(state, search.request, search.asker, to=system)
        if isinstance(named_request, SchedRequest):
            named_request = with_dialer(state, named_request, asker=search.asker.system, to=system)
            if search.asker.relation is Relation.SELF:
                named_request = avoiding(state, named_request, to=system, now=now)
            else:
                named_request = _without_refused(state, search, named_request, to=system, now=now)
            named_request = _for_stranger(state, named_request, system)
            if not leads_toward(state, named_request, system):
                named_request = replace(named_request, near=None)
        request = replace(
            named_request,
            id=ask,
            count=search.asked_left,
            hops_left=search.request.hops_left - 1,
            asks_left=search.asks_left,
            remaining_ns=given_ns,
        )
        return (SendControl(to=system, message=request),)
    return _deny(state, search, now, code=search.reason.code)


def _for_stranger(state: ModuleState, request: SchedRequest, to: SystemId) -> SchedRequest:
    """Return a request with a bound for the lease, if it is sent to another site."""
    if to not in state.identity.apart:
        return request
    return replace(request, lease_ns=min(request.lease_ns or FIRST_LEASE_NS, FIRST_LEASE_NS))


def _without_refused(
    state: ModuleState, search: Search, request: SchedRequest, /, *, to: SystemId, now: Instant
) -> SchedRequest:
    """Return a request that names the machines whose bytes do not pass here, and note the reason for the asker."""
    marks = refused_through(state, to, trust=search.request.trust, now=now)
    if not marks:
        return request
    search.hops.append((to, Reason(module=state.system, code=DenyCode.UNREACHABLE, text=NO_ANCHORS)))
    return replace(request, avoids=(*(digest_of(mark, request.search) for mark in marks), *request.avoids))


def _room_at(state: ModuleState, search: Search, system: SystemId) -> int | Reason:
    """Return for how many places or tasks a neighbor may be asked, or why it is not asked."""
    hidden = why_not_judged(state, search.request, asker=search.asker.system, at=system)
    if hidden:
        return Reason(module=state.system, code=DenyCode.REFUSED_BY_POLICY, text=hidden)
    return room_beyond(state, search.asker, system)


def _give_up_on(state: ModuleState, ask: MessageId, code: DenyCode, now: Instant) -> tuple[Action, ...]:
    search = state.hop.asks.get(ask)
    if search is None or search.asked is None:
        return ()
    if code is DenyCode.TIMED_OUT and search.showing:
        note_denial(state, search, search.asked, now)
    silent = Reason(module=search.asked, code=code)
    search.hops.append((search.asked, silent))
    note_denied(search, search.asked, (silent,))
    _end_ask(state, ask, search)
    return _ask_next(state, search, now)


def _showing(state: ModuleState, search: Search, system: SystemId) -> int:
    """Return how many machines behind a neighbor surely have room for a task of this origin, by its view."""
    view = view_behind(state, state.neighbors[system])
    if view is None or search.need is None or search.asker.relation is not Relation.SELF:
        return 0
    indexed = state.updates.indexes.of(system, view.message.vector)
    surely, _ = fitting(search.need, indexed)
    return indexed.machines_in(surely)


def _end_ask(state: ModuleState, ask: MessageId, search: Search) -> None:
    del state.hop.asks[ask]
    state.timers.cancel(TimerKind.SEARCH, ask)
    search.asked = None


def _deny(state: ModuleState, search: Search, now: Instant, *, code: DenyCode) -> tuple[Action, ...]:
    state.hop.searches.pop((search.asker.system, search.request.id), None)
    if code in HOPEFUL:
        code = min((code, *_answers(search)), key=HOPEFUL.index)
    reason = replace(search.reason, code=code, hops=hops_for(state, search))
    hand_to_origin(state, search)
    return answer_deny(state, search.request, search.asker, reason=reason, asks_left=search.asks_left, now=now)


def _answers(search: Search) -> list[DenyCode]:
    """Return the codes of the asked systems, which are more exact than views."""
    codes = [hop.code for _, hop in search.hops if hop.code in HOPEFUL]
    if isinstance(search.request, SchedRequest) and (search.left < search.request.count or (search.hops and not codes)):
        # Such machines exist, but none, or no more, is free now.
        codes.append(DenyCode.NO_CAPACITY)
    return codes


def _relation_of(state: ModuleState, sender: SystemId) -> Relation:
    return Relation.SELF if sender == state.system else state.neighbors[sender].relation
