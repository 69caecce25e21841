"""Tasks that run on the own machine, offered in answer to a task_request (MESSIAHS 6.2 task_request, task_revoke).

A task that moves loses the work done so far. So only tasks named by the owner's `offer` rules are offered, in the order
of the policy's migration part, and as many as `keep` requires stay. The origin of a task is informed by a `task_revoke`
that names the request; the origin alone decides and binds. A task that no system takes continues undisturbed.

A task is not offered again for a while, and never if it came here by an offer: otherwise two machines could pass it
back and forth without end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from messiahs.core.executor.revocation import revocation
from messiahs.core.executor.running_facts import running_attempts, running_queries
from messiahs.core.interface.actions import Action, Decision, SendControl
from messiahs.core.interface.messages import DenyCode, Substate, TaskRequest
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import MigrationQuery, RunningQuery
from messiahs.core.interface.predicates import Predicate
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId, SearchId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.state.executor import GrantedClaim, Offer
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.local_facts import own_facts

_AGAIN_NS = 60 * SECOND
_MARGIN_NS = 5 * SECOND
"""How much longer than the request an offer lasts: a search for it may have to wait for an earlier one."""
_EVALUATION_LIMIT = 4_096
"""Claims, and attempts, evaluated for one request."""

_Running = tuple[GrantedClaim, AttemptId]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferableAttempts:
    """The attempts that may leave; if there are none, the reason."""

    attempts: tuple[_Running, ...]
    why_not: DenyCode


def choose_running(state: ModuleState, wanting: Predicate, *, count: int, now: Instant) -> OfferableAttempts:
    """Choose at most `count` matching attempts that may leave, in the order of the policy's migration part."""
    if not count:
        return OfferableAttempts(attempts=(), why_not=DenyCode.NO_TASK)
    staying = [(claim, attempt) for claim, attempt in running_attempts(state) if _stays(state, claim, attempt)]
    matching = list(_matching(state, wanting, staying, now))[:_EVALUATION_LIMIT]
    reads_waiting = state.policy.transfer.reads_waiting
    here = own_facts(state, now)
    queries = running_queries(state, matching, here=here, counts_waiting=reads_waiting, now=now) if matching else []
    may_go = [
        (query, running)
        for query, running in zip(queries, matching, strict=True)
        if state.policy.transfer.offers_running and state.policy.transfer.offers(query)
    ]
    left = min(count, len(staying) - state.policy.transfer.keep_at_least)
    chosen = _in_order(state, may_go, left, now)[: max(0, left)]
    why_not = DenyCode.REFUSED_BY_POLICY if matching and not chosen else DenyCode.NO_TASK
    return OfferableAttempts(attempts=chosen, why_not=why_not)


def offer_running(
    state: ModuleState, request: TaskRequest, chosen: tuple[_Running, ...], /, *, now: Instant
) -> list[Action]:
    """Offer attempts to a requester: their origins search for places there while the attempts continue."""
    claims = {claim.row.id: claim for claim, _ in chosen}
    offered, text = state.executor.offered, f"{request.requester} asked for tasks"
    actions: list[Action] = []
    for claim in claims.values():
        attempts = tuple(attempt for other, attempt in chosen if other is claim)
        claim.offer = Offer(search=request.search, attempts=attempts, text=text)
        offered.update(dict.fromkeys(attempts, after(now, _AGAIN_NS)))
        actions.extend(Decision(what="offer", task=str(attempt), text=text) for attempt in attempts)
        actions.append(SendControl(to=claim.row.via, message=revocation(state, claim)))
    if claims:
        state.executor.offers[request.search] = tuple(claims)
        until = after(now, min(request.remaining_ns, state.policy.timeouts.request_ns) + _MARGIN_NS)
        state.timers.set(TimerKind.OFFER, request.search, until)
    return actions


def on_offer_timeout(state: ModuleState, search: SearchId, now: Instant) -> tuple[Action, ...]:
    """Withdraw offers that were not taken, and inform the origins."""
    del now
    actions: list[Action] = []
    for claim_id in state.executor.offers.pop(search):
        claim = state.executor.claims.get(claim_id)
        if claim is None or claim.offer is None or claim.offer.search != search:
            continue
        stays = [attempt for attempt in claim.offer.attempts if _is_running(state, claim, attempt)]
        claim.offer = None
        if stays:
            actions.append(SendControl(to=claim.row.via, message=revocation(state, claim)))
    return tuple(actions)


def _is_running(state: ModuleState, claim: GrantedClaim, attempt: AttemptId) -> bool:
    return attempt in claim.started and state.executor.attempts[attempt].status.substate is not Substate.VACATING


def _stays(state: ModuleState, claim: GrantedClaim, attempt: AttemptId) -> bool:
    """Return whether an attempt runs here, and no other place is being searched for it."""
    is_offered = claim.offer is not None and attempt in claim.offer.attempts
    return _is_running(state, claim, attempt) and not is_offered and not _must_move(state, attempt)


def _must_move(state: ModuleState, attempt: AttemptId) -> bool:
    guard = state.executor.guards.get(attempt)
    return guard is not None and guard.memory.moving is not None


def _matching(state: ModuleState, wanting: Predicate, staying: list[_Running], now: Instant) -> Iterator[_Running]:
    """Yield the attempts whose TDV matches and that may be offered now.

    A claim answers one request at a time, and none while the owner's rules remove any of its attempts.
    """
    evaluated: dict[ClaimId, bool] = {}
    for claim, attempt in staying:
        if claim.row.id not in evaluated and len(evaluated) < _EVALUATION_LIMIT:
            is_free = not claim.row.is_answer and claim.offer is None
            is_free = is_free and not any(_must_move(state, each) for each in claim.started)
            evaluated[claim.row.id] = is_free and wanting.holds(claim.row.tdv.description())
        if evaluated.get(claim.row.id) and state.executor.offered.get(attempt, now) <= now:
            yield claim, attempt


def _in_order(
    state: ModuleState, may_go: list[tuple[RunningQuery, _Running]], wanted: int, now: Instant, /
) -> tuple[_Running, ...]:
    """Return the attempts worth moving, in the order of the policy."""
    if not may_go or wanted <= 0:
        return ()
    query = MigrationQuery(tasks=tuple(each for each, _ in may_go), wanted=wanted, at=now)
    return tuple(may_go[place][1] for place in decide(state, PartKind.MIGRATION, state.policy.migration, query))
