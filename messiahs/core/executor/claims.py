"""Granting claims on the own machine and keeping them alive (MESSIAHS 6.2 sched_request, sched_accept).

A claim is k places for tasks of one shape. It lives by its lease: granting it is the first renewal, the first tasks
that arrive answer that one, and a `task_status_ack` answers each later one. The executor counts from *sending* the
renewal that was answered, the origin from answering it and a tenth longer: so no two attempts of a task ever overlap.
"""

from dataclasses import replace

from messiahs.core.executor.reservations import withhold_reservations
from messiahs.core.executor.revocation import revocation
from messiahs.core.interface.actions import (
    Action,
    Decision,
    DiscardAttempt,
    EndAttempt,
    ExtendLease,
    Forget,
    SendControl,
    Store,
)
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import AttemptStatus, ClaimEnd, SchedAccept, SchedRequest, TaskState, TaskStatus
from messiahs.core.interface.policies import Asker, Need
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.descriptions import layout_of
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, Ticket
from messiahs.core.model.instants import HOUR, MILLISECOND, SECOND, Duration, Instant, after
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import QUANTUM_NS, GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import free_here, reserved_places, wake
from messiahs.core.task_filter.matching import has_room, need_of
from messiahs.core.task_filter.task_order import is_outranked

UNUSED_NS = 30 * SECOND
"""A claim without a task for so long ends."""
SHRINK_NS = 1 * SECOND
"""Places that the origin has not filled for so long go to others, as long again after it was told."""
_LONGEST_QUANTUM_NS = 30 * SECOND
_ON_ITS_WAY_NS = 250 * MILLISECOND
"""Grace period for tasks already in transit when the quantum ends."""
_AHEAD_NS = 100 * MILLISECOND
"""How much work may wait here beyond the places, so that a slot never waits for the network."""
_AHEAD_LIMIT = 256
_OVER_REMEMBERED = 4_096
_STREAMS = 2
"""Every attempt lists stdout and stderr among its outputs."""
_STATUS_BYTES = 256 * 1_024
_TEXT_LENGTH = 512
"""Maximum length of status text on the wire."""
_RESULTS_KEPT_NS = 24 * HOUR
"""How long after the end of a lease the results of its attempts are kept for an origin that has not taken them."""
_RESULTS = (TaskState.FINISHED, TaskState.ABORTED, TaskState.KILLED)
_RENEWALS_REMEMBERED = 2 * RENEWALS_PER_LEASE


def places_for(state: ModuleState, need: Need, wanted: int, /, *, uses_reserved: bool = False) -> int:
    """Say how many of the wanted places the own machine has now, beside or with those that are reserved."""
    here = free_here(state, uses_reserved=uses_reserved)
    if here is None:
        return 0
    takes = (("free_slots", need.slots), ("avail_mem", need.mem_bytes), ("avail_disk", need.disk_bytes))
    places = 0
    is_met = need.requirement.bound_to(layout_of(here))
    while places < wanted and has_room(need, here) and is_met(tuple(here.values())):
        places += 1
        for name, amount in takes:
            value = here.get(name)
            if isinstance(value, int):
                here[name] = value - amount
    return places


def grant(
    state: ModuleState, request: SchedRequest, need: Need, /, *, asker: Asker, places: int, now: Instant
) -> tuple[SchedAccept, tuple[Action, ...]]:
    """Reserve places and make the accept for them; `places_for` said that they are there."""
    state.counters = replace(state.counters, claims=state.counters.claims + 1)
    claim_id = ClaimId(state.system, state.epoch, state.counters.claims)
    lease_ns = state.policy.timeouts.lease_ns
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
        slots=0 if need.slots == need_of(request.tdv, need.requirement).slots else need.slots,
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
        window=window_of(claim),
        lease_ns=lease_ns,
        asks_left=request.asks_left,
    )
    _count_quantum(state, request)
    text = f"{places} places for {row.origin} in claim {claim_id}"
    decision = Decision(what="sched_accept", task=request.search.hex()[:8], text=text)
    return accept, (Store(row=state.counters), Store(row=row), decision)


def watch(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Enter a claim, new or stored, with all its timeouts."""
    row = claim.row
    claim.quantum_began_at = now
    state.executor.claims[row.id] = claim
    state.timers.set(TimerKind.IDLE, row.id, after(now, UNUSED_NS))
    state.timers.set(TimerKind.GRANTED_LEASE, row.id, row.lease_until)
    state.timers.set(TimerKind.RENEWAL, row.id, after(now, row.lease_ns // RENEWALS_PER_LEASE))
    mark_changed(state, now)


def window_of(claim: GrantedClaim) -> int:
    """How many attempts may be bound to a claim at once: its places, and work for the next 100 ms."""
    if claim.is_ending or claim.phase is GrantedPhase.YIELDING:
        return 0
    if claim.phase is GrantedPhase.SHRINKING:
        return claim.live
    if not claim.mean_run_ns or claim.suspended:
        # What would wait behind a suspended attempt could wait for long.
        return claim.row.places
    return claim.row.places + min(claim.row.places * _AHEAD_NS // claim.mean_run_ns, _AHEAD_LIMIT)


def status_actions(
    claim: GrantedClaim, statuses: tuple[AttemptStatus, ...], *, renewal: int = 0
) -> tuple[SendControl, ...]:
    """Report attempts towards the origin, in messages of bounded size; only the last of them renews the lease."""
    parts: list[list[AttemptStatus]] = [[]]
    size = 0
    for status in statuses:
        size += _size_of(status)
        if parts[-1] and size > _STATUS_BYTES:
            parts.append([])
            size = _size_of(status)
        parts[-1].append(status)
    *earlier, last = [TaskStatus(claim=claim.row.id, attempts=tuple(part), window=window_of(claim)) for part in parts]
    return tuple(SendControl(to=claim.row.via, message=each) for each in (*earlier, replace(last, renewal=renewal)))


def _size_of(status: AttemptStatus) -> int:
    """Give at least the size of a status in bytes on the wire."""
    texts = (status.attempt.task.system, status.cause, status.text[:_TEXT_LENGTH])
    names = (output.name for output in status.outputs)
    return 96 + 4 * sum(map(len, texts)) + 24 * len(status.outputs) + sum(len(name.encode()) for name in names)


def renew(state: ModuleState, claim: GrantedClaim, now: Instant) -> tuple[Action, ...]:
    """Report all attempts of a claim, and ask by that for a longer lease; the end of one that ends is said again."""
    claim.renewals += 1
    claim.renewal_sent_at[claim.renewals] = now
    claim.renewal_sent_at.pop(claim.renewals - _RENEWALS_REMEMBERED, None)
    state.timers.set(TimerKind.RENEWAL, claim.row.id, after(now, claim.row.lease_ns // RENEWALS_PER_LEASE))
    statuses = tuple(state.executor.attempts[attempt].status for attempt in claim.attempts)
    end = SendControl(to=claim.row.via, message=ClaimEnd(claim=claim.row.id))
    revoked = revocation(state, claim)
    return (
        *status_actions(claim, statuses, renewal=claim.renewals),
        *((SendControl(to=claim.row.via, message=revoked),) if revoked.attempts else ()),
        *((end,) if claim.is_ending else ()),
    )


def on_renewal_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Renew the lease of a claim, every fifth of it."""
    claim = state.executor.claims.get(claim_id)
    return renew(state, claim, now) if claim is not None else ()


def answer_renewal(state: ModuleState, claim: GrantedClaim, renewal: int, /) -> tuple[Action, ...]:
    """Extend a lease: it counts from when the renewal was sent, not from when its answer came."""
    sent_at = claim.renewal_sent_at.pop(renewal, None)
    if sent_at is None or claim.phase is GrantedPhase.EXPIRED:
        return ()
    until = max(claim.row.lease_until, after(sent_at, claim.row.lease_ns))
    if until == claim.row.lease_until:
        return ()
    claim.row = replace(claim.row, lease_until=until)
    state.timers.set(TimerKind.GRANTED_LEASE, claim.row.id, until)
    return (Store(row=claim.row), ExtendLease(claim=claim.row.id, until=until))


def on_granted_lease_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """End all attempts of a claim whose lease ran out: its origin may already have started them elsewhere.

    Results that were not taken are kept: an origin that was down since then counts from its restart, and wants them.
    """
    claim = state.executor.claims.get(claim_id)
    if claim is None:
        return ()
    kept_until = after(claim.row.lease_until, _RESULTS_KEPT_NS)
    has_results = any(state.executor.attempts[each].status.state in _RESULTS for each in claim.attempts)
    if not has_results or now >= kept_until:
        return end_claim(state, claim, now, cause=Cause.LEASE_EXPIRED)
    claim.enter(GrantedPhase.EXPIRED)
    claim.row = replace(claim.row, is_ending=True)
    state.timers.set(TimerKind.GRANTED_LEASE, claim_id, kept_until)
    mark_changed(state, now)
    live = [each for each in claim.attempts if state.executor.attempts[each].status.state is TaskState.EXECUTING]
    # Stored, since its places may be granted to others from now on.
    return (
        Store(row=claim.row),
        *(EndAttempt(attempt=attempt, grace_ns=0, cause=Cause.LEASE_EXPIRED) for attempt in live),
    )


def on_idle_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Free the places that the origin does not use; a claim that stays without tasks takes none any more.

    The origin is told a while before, so that it binds nothing to places that others have by then.
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
        return status_actions(claim, ())
    # An origin that was cut off or restarted may still send what it had bound: `regrow` gives it places then.
    claim.enter(GrantedPhase.OPEN)
    claim.row = replace(claim.row, places=claim.live)
    if not claim.live:
        state.timers.set(TimerKind.IDLE, claim_id, after(now, UNUSED_NS))
    mark_changed(state, now)
    return (Store(row=claim.row),)


def on_path_lost(state: ModuleState, neighbor: SystemId, now: Instant) -> None:
    """Keep the places of claims whose path is cut for a while: a neighbor that restarts sends again what was bound."""
    for claim in state.executor.claims.values():
        if claim.row.via == neighbor and claim.phase in (GrantedPhase.OPEN, GrantedPhase.SHRINKING):
            claim.enter(GrantedPhase.OPEN)
            state.timers.set(TimerKind.IDLE, claim.row.id, after(now, UNUSED_NS))


def end_quantum(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Begin to end a claim that has kept the machine full for a turn: others may wait, and none can know of them.

    A turn is over at once if the policy puts tasks that wait before those of the claim. Its origin may ask again at
    once, a little later than those who wait. What it has bound already still runs here.
    """
    assert claim.quantum_began_at is not None, "a claim that is watched has begun"
    if claim.is_ending or claim.phase is GrantedPhase.YIELDING:
        return
    # While slots are gathered for a task that needs several of them, it is known that somebody waits.
    quantum_ns = state.executor.quantum_ns if state.executor.reservation is None else QUANTUM_NS
    is_long = now - claim.quantum_began_at >= quantum_ns
    if not is_long and not is_outranked(state, {**claim.row.tdv.description(), "from": claim.row.via}, now):
        return
    if places_for(state, claim.need, 1):
        claim.quantum_began_at = now
        return
    claim.enter(GrantedPhase.YIELDING)
    state.executor.quantum_before = claim.row.origin, claim.row.tdv
    state.timers.set(TimerKind.IDLE, claim.row.id, after(now, _ON_ITS_WAY_NS))


def _count_quantum(state: ModuleState, request: SchedRequest) -> None:
    """Let turns become longer while nobody but the last one takes them."""
    executor = state.executor
    if executor.quantum_before is not None:
        is_alone = executor.quantum_before == (request.origin, request.tdv)
        executor.quantum_ns = Duration(min(2 * executor.quantum_ns, _LONGEST_QUANTUM_NS)) if is_alone else QUANTUM_NS
        executor.quantum_before = None


def on_inputs_moving(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Keep the places of a claim whose tasks come as soon as their inputs are here."""
    claim = state.executor.claims.get(claim_id)
    if claim is not None and not claim.is_ending:
        state.timers.set(TimerKind.IDLE, claim_id, after(now, UNUSED_NS))
    return ()


def regrow(state: ModuleState, claim: GrantedClaim, *, tasks: int) -> tuple[Action, ...]:
    """Take back places that were freed, as far as they are still free, for tasks that have come after all.

    Also in a claim that takes nothing more: they were bound before their origin heard of that.
    """
    kept = reserved_places(claim)
    wanted = min(claim.granted, claim.live + tasks) - kept
    more = places_for(state, claim.need, wanted) if wanted > 0 and claim.phase is not GrantedPhase.EXPIRED else 0
    if kept + more == claim.row.places:
        return ()
    claim.row = replace(claim.row, places=kept + more)
    return (Store(row=claim.row),)


def on_claim_end(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """End what still runs in a claim from which its origin wants nothing more: it is nobody's."""
    claim = state.executor.claims.get(claim_id)
    return end_claim(state, claim, now, cause=Cause.UNBOUND) if claim is not None else ()


def end_claim(state: ModuleState, claim: GrantedClaim, now: Instant, *, cause: Cause) -> tuple[Action, ...]:
    """Forget a claim; attempts that still run are ended, and forgotten when they have."""
    del state.executor.claims[claim.row.id]
    for kind in (TimerKind.IDLE, TimerKind.RENEWAL, TimerKind.GRANTED_LEASE, TimerKind.STATUS):
        state.timers.cancel(kind, claim.row.id)
    mark_changed(state, now)
    claim.enter(GrantedPhase.RELEASED)
    if claim.live:
        state.executor.released[claim.row.id] = claim
    actions: list[Action] = []
    for attempt in (*claim.attempts, *claim.acknowledged):
        row = state.executor.attempts.get(attempt)
        if row is None or row.claim != claim.row.id:
            continue
        if row.status.state is TaskState.EXECUTING:
            can_hear = cause is Cause.UNBOUND and wake(state, claim, attempt, now)
            grace_ns = state.policy.timeouts.kill_grace_ns if can_hear else 0
            actions.append(EndAttempt(attempt=attempt, grace_ns=grace_ns, cause=cause))
        else:
            actions.extend(forget_attempt(state, attempt))
    return (*actions, Forget(key=(RowKind.GRANTED_CLAIM, claim.row.id)))


def on_leaving_attempt_ended(state: ModuleState, row: AttemptRow, now: Instant) -> tuple[Action, ...]:
    """Forget an attempt that ended after its claim: nobody waits for the result, and its place is free now."""
    claim = state.executor.released.get(row.claim)
    if claim is not None:
        claim.live -= 1
        if not claim.live:
            del state.executor.released[row.claim]
        mark_changed(state, now)
    return forget_attempt(state, row.id)


def let_go(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /) -> tuple[Action, ...]:
    """Let go of an ended attempt whose result was taken, but know for a while that a late copy must not start again.

    An attempt that was denied keeps its row for as long as the claim lives: it is refused for ever.
    """
    claim.attempts.pop(attempt, None)
    claim.unreported.pop(attempt, None)
    status = state.executor.attempts[attempt].status
    forgotten = () if status.state is TaskState.DENIED else forget_attempt(state, attempt)
    return (*forgotten, *refuse_for_ever(state, claim, _final_status(status)))


def refuse_for_ever(state: ModuleState, claim: GrantedClaim, status: AttemptStatus, /) -> tuple[Action, ...]:
    """Remember that an attempt never starts in a claim, and what its origin is told of it; the oldest is forgotten."""
    claim.acknowledged[status.attempt] = status
    if len(claim.acknowledged) <= _OVER_REMEMBERED:
        return ()
    oldest = next(iter(claim.acknowledged))
    del claim.acknowledged[oldest]
    row = state.executor.attempts.get(oldest)
    return forget_attempt(state, oldest) if row is not None and row.claim == claim.row.id else ()


def _final_status(status: AttemptStatus) -> AttemptStatus:
    """Say how an attempt ended to an origin that asks although it has taken the result: its database is older.

    An end without any output is repeated as it was. Outputs are gone, so their task has to run again.
    """
    has_outputs = len(status.outputs) > _STREAMS or any(output.size_bytes for output in status.outputs)
    if not has_outputs:
        return status
    text = "it ended here, and its outputs were taken"
    return AttemptStatus(attempt=status.attempt, state=TaskState.DENIED, cause=Cause.REFUSED, text=text)


def forget_attempt(state: ModuleState, attempt: AttemptId) -> tuple[Action, ...]:
    """Let go of an ended attempt: its result is known to its origin, or nobody wants it."""
    del state.executor.attempts[attempt]
    return (Forget(key=(RowKind.ATTEMPT, attempt)), DiscardAttempt(attempt=attempt))
