"""Granting claims on the own machine and keeping them alive (MESSIAHS 6.2 sched_request, sched_accept).

A claim is k places for tasks of one shape, and lives as long as its lease. The grant is the first renewal, answered by
the first tasks to arrive; each later renewal is answered by a `task_status_ack`. The executor counts the lease from
when it *sent* the answered renewal, the origin from its answer and a tenth longer: so no two attempts of a task ever
overlap.
"""

from dataclasses import replace

from messiahs.core.executor.allocation import Allotted, places_for
from messiahs.core.executor.kept_results import RESULTS_KEPT_NS, has_results, note_gone
from messiahs.core.executor.local_ids import leave_row, row_of
from messiahs.core.executor.quantum import count_quantum
from messiahs.core.executor.reports import status_actions, window_of
from messiahs.core.executor.reservations import withhold_reservations
from messiahs.core.executor.suspended_attempts import reclaim_slots
from messiahs.core.interface.actions import (
    Action,
    Decision,
    DiscardAttempt,
    EndAttempt,
    Forget,
    SendControl,
    Store,
)
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.limits import RENEWALS_PER_LEASE, SHORTEST_LEASE_NS
from messiahs.core.interface.messages import AttemptStatus, ClaimEnd, SchedAccept, SchedRequest, TaskState
from messiahs.core.interface.policies import Accepted, Asker
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, Ticket
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.terms import terms_text
from messiahs.core.relay.splices import is_anchored
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import reserved_places
from messiahs.core.task_filter.matching import need_of

UNUSED_NS = 30 * SECOND
"""A claim without a task for this long ends."""
SHRINK_NS = 1 * SECOND
"""Places that the origin leaves unused for this long are freed, after a notice of the same length."""
_ACKNOWLEDGED_LIMIT = 4_096
_STREAMS = 2
"""Every attempt lists stdout and stderr among its outputs."""
_NUMBER_BITS = 62


def grant(
    state: ModuleState, request: SchedRequest, allotted: Allotted, /, *, asker: Asker, accepted: Accepted, now: Instant
) -> tuple[SchedAccept, tuple[Action, ...]]:
    """Reserve places and return their accept; the places are free according to `places_for`.

    All tasks of the claim run as the policy says now, in what it has `accepted`. No message has that.
    """
    need, places = allotted.need, allotted.places
    state.counters = replace(state.counters, claims=state.counters.claims + 1)
    # Drawn, so that no other system can grant a claim of this id in advance.
    claim_id = ClaimId(state.system, state.epoch, state.randomness.bits(_NUMBER_BITS))
    lease_ns = state.policy.timeouts.lease_ns
    if request.lease_ns:
        lease_ns = min(lease_ns, max(request.lease_ns, SHORTEST_LEASE_NS))
    row = GrantedClaimRow(
        id=claim_id,
        origin=request.origin,
        via=asker.system,
        ticket=Ticket(state.randomness.bits(128).to_bytes(16)),
        tdv=request.tdv,
        places=places,
        lease_ns=lease_ns,
        lease_until=after(now, lease_ns),
        is_answer=request.answers is not None,
        dialers=request.dialers,
        is_anchored=is_anchored(state, asker.system, request.trust),
        is_foreign=request.is_foreign,
        slots=0 if need.slots == need_of(request.tdv, need.requirement).slots else need.slots,
        uses=need.uses,
        account=accepted.account,
        network=accepted.network,
    )
    claim = GrantedClaim(row=row, need=need, granted=places)
    claim.renewal_sent_at[0] = now
    watch(state, claim, now)
    accept = SchedAccept(
        request=request.id,
        claim=claim_id,
        address=state.identity.address,
        ticket=row.ticket,
        places=places,
        window=window_of(state, claim),
        lease_ns=lease_ns,
        asks_left=request.asks_left,
        trust=state.identity.trust,
    )
    count_quantum(state, row)
    text = f"{places} places for {row.origin} in claim {claim_id}{terms_text(row.account, row.network)}"
    decision = Decision(what="sched_accept", task=request.search.hex()[:8], text=text)
    return accept, (Store(row=state.counters), Store(row=row), decision)


def watch(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Enter a claim, new or stored, with all its timeouts; a lease that has expired is not renewed."""
    row = claim.row
    claim.quantum_began_at = now
    state.executor.claims[row.id] = claim
    state.timers.set(TimerKind.IDLE, row.id, after(now, UNUSED_NS))
    state.timers.set(TimerKind.GRANTED_LEASE, row.id, row.lease_until)
    if claim.phase is not GrantedPhase.EXPIRED:
        state.timers.set(TimerKind.RENEWAL, row.id, after(now, row.lease_ns // RENEWALS_PER_LEASE))
    mark_changed(state, now)


def on_granted_lease_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """End all attempts of a claim whose lease has expired: its origin may already have started them elsewhere.

    Unacknowledged results are kept: an origin that was down counts the lease from its restart, and still needs them.
    """
    claim = state.executor.claims.get(claim_id)
    if claim is None:
        return ()
    kept_until = after(claim.row.lease_until, RESULTS_KEPT_NS)
    if not has_results(state, claim) or now >= kept_until:
        return end_claim(state, claim, now, cause=Cause.LEASE_EXPIRED)
    claim.enter(GrantedPhase.EXPIRED)
    claim.row = replace(claim.row, is_ending=True)
    state.timers.set(TimerKind.GRANTED_LEASE, claim_id, kept_until)
    state.timers.cancel(TimerKind.RENEWAL, claim_id)
    mark_changed(state, now)
    live = [each for each in claim.attempts if state.executor.attempts[each].status.state is TaskState.EXECUTING]
    # Stored, since its places may be granted to other origins from now on.
    return (
        Store(row=claim.row),
        *(EndAttempt(attempt=attempt, grace_ns=0, cause=Cause.LEASE_EXPIRED) for attempt in live),
    )


def on_idle_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Free the places that the origin leaves unused; a claim that stays without tasks ends.

    The origin is informed a while before, so that it binds no task to a place that is about to be freed.
    """
    claim = state.executor.claims.get(claim_id)
    if claim is None or claim.is_ending:
        return ()
    is_yielding = claim.phase is GrantedPhase.YIELDING
    if claim.live and claim.live >= claim.row.places and not is_yielding:
        return ()
    had_tasks = bool(claim.attempts or claim.acknowledged)
    if is_yielding or (not claim.live and not (had_tasks and claim.row.places)):
        if not had_tasks:
            withhold_reservations(state, claim.row.via, UNUSED_NS, now)
        claim.enter(GrantedPhase.ENDING)
        claim.row = replace(claim.row, is_ending=True)
        mark_changed(state, now)
        return (Store(row=claim.row), SendControl(to=claim.row.via, message=ClaimEnd(claim=claim_id)))
    if claim.phase is GrantedPhase.OPEN:
        claim.enter(GrantedPhase.SHRINKING)
        state.timers.set(TimerKind.IDLE, claim_id, after(now, SHRINK_NS))
        return status_actions(state, claim, ())
    # An origin that was cut off or restarted may still send tasks that it had bound: `regrow` then restores places.
    claim.enter(GrantedPhase.OPEN)
    claim.row = replace(claim.row, places=claim.live)
    if not claim.live:
        state.timers.set(TimerKind.IDLE, claim_id, after(now, UNUSED_NS))
    mark_changed(state, now)
    return (Store(row=claim.row),)


def on_path_lost(state: ModuleState, neighbor: SystemId, now: Instant) -> None:
    """Keep the places of claims whose path is cut: a neighbor that restarts sends again the tasks that were bound."""
    for claim in state.executor.claims.values():
        if claim.row.via == neighbor and claim.phase in (GrantedPhase.OPEN, GrantedPhase.SHRINKING):
            claim.enter(GrantedPhase.OPEN)
            state.timers.set(TimerKind.IDLE, claim.row.id, after(now, UNUSED_NS))


def on_inputs_moving(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Keep the places of a claim whose tasks arrive as soon as their inputs are here."""
    claim = state.executor.claims.get(claim_id)
    if claim is not None and not claim.is_ending:
        state.timers.set(TimerKind.IDLE, claim_id, after(now, UNUSED_NS))
    return ()


def regrow(state: ModuleState, claim: GrantedClaim, *, tasks: int) -> tuple[Action, ...]:
    """Take back freed places, as far as they are still free, for tasks that have arrived after all.

    This includes an ending claim: the tasks were bound before its origin learned of the end.
    """
    kept = reserved_places(claim)
    wanted = min(claim.granted, claim.live + tasks) - kept
    more = places_for(state, claim.need, wanted) if wanted > 0 and claim.phase is not GrantedPhase.EXPIRED else 0
    if kept + more == claim.row.places:
        return ()
    claim.row = replace(claim.row, places=kept + more)
    return (Store(row=claim.row),)


def on_claim_end(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """End all attempts of a claim that its origin has ended: no system expects their results."""
    claim = state.executor.claims.get(claim_id)
    return end_claim(state, claim, now, cause=Cause.UNBOUND) if claim is not None else ()


def end_claim(state: ModuleState, claim: GrantedClaim, now: Instant, *, cause: Cause) -> tuple[Action, ...]:
    """Forget a claim; running attempts are ended, and forgotten when they have ended."""
    del state.executor.claims[claim.row.id]
    for kind in (TimerKind.IDLE, TimerKind.RENEWAL, TimerKind.GRANTED_LEASE, TimerKind.STATUS):
        state.timers.cancel(kind, claim.row.id)
    mark_changed(state, now)
    claim.enter(GrantedPhase.RELEASED)
    if claim.live:
        state.executor.released[claim.row.id] = claim
    actions: list[Action] = []
    denied = [row.id for each in claim.acknowledged if (row := row_of(state, claim.row.id, each)) is not None]
    for attempt in tuple(claim.ended):
        note_gone(state, claim, attempt)
    for attempt in (*claim.attempts, *denied):
        if state.executor.attempts[attempt].status.state is TaskState.EXECUTING:
            is_awake = cause is Cause.UNBOUND and reclaim_slots(state, claim, attempt, now)
            grace_ns = state.policy.timeouts.kill_grace_ns if is_awake else 0
            actions.append(EndAttempt(attempt=attempt, grace_ns=grace_ns, cause=cause))
        else:
            actions.extend(forget_attempt(state, attempt))
    return (*actions, Forget(key=(RowKind.GRANTED_CLAIM, claim.row.id)))


def on_leaving_attempt_ended(state: ModuleState, row: AttemptRow, now: Instant) -> tuple[Action, ...]:
    """Forget an attempt that ended after its claim, and free its place: no system expects its result.

    Its row is stored once more for the decisions about it, which name its end.
    """
    claim = state.executor.released.get(row.claim)
    if claim is not None:
        claim.live -= 1
        if not claim.live:
            del state.executor.released[row.claim]
        mark_changed(state, now)
    return (Store(row=row), *forget_attempt(state, row.id))


def retire(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /) -> tuple[Action, ...]:
    """Forget an acknowledged attempt, but remember for a while that a late copy of it must not start.

    A denied attempt keeps its row as long as the claim lives, since its denial is permanent.
    """
    claim.attempts.pop(attempt, None)
    note_gone(state, claim, attempt)
    claim.unreported.pop(attempt, None)
    status = state.executor.attempts[attempt].status
    forgotten = () if status.state is TaskState.DENIED else forget_attempt(state, attempt)
    return (*forgotten, *_refuse_permanently(state, claim, _final_status(status)))


def _refuse_permanently(state: ModuleState, claim: GrantedClaim, status: AttemptStatus, /) -> tuple[Action, ...]:
    """Remember the final status of an attempt that never starts in a claim; the oldest one is dropped at the limit."""
    claim.acknowledged[status.attempt] = status
    if len(claim.acknowledged) <= _ACKNOWLEDGED_LIMIT:
        return ()
    oldest = next(iter(claim.acknowledged))
    del claim.acknowledged[oldest]
    row = row_of(state, claim.row.id, oldest)
    return forget_attempt(state, row.id) if row is not None else ()


def _final_status(status: AttemptStatus) -> AttemptStatus:
    """Return the status for an origin that queries an acknowledged attempt because its database is older.

    The end of an attempt without outputs is repeated. Outputs have been discarded, so a task with outputs is denied and
    has to run again.
    """
    has_outputs = len(status.outputs) > _STREAMS or any(output.size_bytes for output in status.outputs)
    if not has_outputs:
        return status
    text = "it ended here, and its outputs were taken"
    return AttemptStatus(attempt=status.attempt, state=TaskState.DENIED, cause=Cause.REFUSED, text=text)


def forget_attempt(state: ModuleState, attempt: AttemptId) -> tuple[Action, ...]:
    """Forget an ended attempt: its origin has the result, or no system expects it."""
    leave_row(state, attempt)
    return (Forget(key=(RowKind.ATTEMPT, attempt)), DiscardAttempt(attempt=attempt))
