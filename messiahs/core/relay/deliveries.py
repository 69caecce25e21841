"""What machines have delivered to an origin: results, not claims of them, decide how many tasks they get at once.

A machine of another site that has delivered nothing yet gets one task, in a claim with a lease of 30 s. Each result
that is taken allows one task more, so the window of a working machine doubles with each round of its tasks. The lease
grows with the window. A machine that has lost a task, at the own site too, begins anew.

Long tasks give few results in hours. So the window also doubles every 30 s while all tasks of a full one are reported
as running and none is past its time. That they run is the machine's claim. At another site growth with time is bounded
therefore: it ends at four tasks, and at eight more for each result since the last loss. The records are not stored:
after a restart of the origin all machines of other sites begin anew.

The record of a machine is the origin's own: nothing that the machine or a hop reports enters it but results.
"""

from collections import Counter
from typing import Final

from messiahs.core.interface.causes import START_CAUSES, UNFIT_CAUSES, Cause
from messiahs.core.interface.limits import FIRST_LEASE_NS
from messiahs.core.interface.messages import AttemptStatus, SchedAccept, TaskState
from messiahs.core.model.environments import environment_in
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant, after
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import WINDOW_LIMIT, Delivery, HeldClaim, Losses

DELIVERIES_LIMIT: Final = 1_024
GROWTH_NS: Final = FIRST_LEASE_NS
UNPROVEN_LIMIT: Final = 4
"""Most tasks of a machine of another site without a result, or without one since its last loss."""
_FIRST_GROWTH_LIMIT: Final = UNPROVEN_LIMIT - 1
GROWTH_PER_RESULT: Final = 8
"""Tasks that a machine of another site may have because its tasks run, beyond those, for each result."""
_PENALTY_NS: Final = 1 * MINUTE
_LONGEST_PENALTY_NS: Final = 1 * HOUR
_LOSSES_LIMIT: Final = 7
"""Losses of a neighbor that count; the penalty has its greatest length before."""
_BY_OWNER: Final = (Cause.VACATED, Cause.REVOKED, Cause.MOVED)
_GIVEN_BACK_LIMIT: Final = 3
"""From this one on without a result in between, tasks that a machine gives back count as losses.

They were ended by its owner, not started, or refused. Of those that are refused on arrival, only the first of each
claim counts: the places of the claim may have been given to others. One that was held before it was refused is always a
loss.
"""
_Key = tuple[SystemId, bytes]


def key_of(claim: HeldClaim) -> _Key:
    """Return what identifies the machine of a claim: the neighbor toward it, and its mark there.

    Another neighbor may use the same name for its own machine.
    """
    return claim.row.via, claim.row.machine.mark


def note_held(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Begin the record of a machine of another site with its first claim."""
    if claim.row.is_foreign:
        _record(state, key_of(claim), now)


def window_at(state: ModuleState, claim: HeldClaim) -> int:
    """Return how many tasks of this origin the machine of a claim may have at once, in all its claims."""
    record = state.origin.deliveries.get(key_of(claim))
    if record is None:
        return 1 if claim.row.is_foreign else WINDOW_LIMIT
    return min(1 + record.results, WINDOW_LIMIT)


def most_bound(state: ModuleState, claim: HeldClaim) -> int:
    """Return how many tasks may be bound to a claim as far as the window of its machine allows now."""
    window = window_at(state, claim)
    if window >= WINDOW_LIMIT:
        return WINDOW_LIMIT
    key = key_of(claim)
    bound = sum(len(each.bound) for each in state.origin.claims.values() if key_of(each) == key)
    return len(claim.bound) + max(0, window - bound)


def full_machines(state: ModuleState, via: SystemId) -> tuple[bytes, ...]:
    """Return the marks of the machines behind a neighbor that have as many tasks as their windows allow."""
    windows = {mark: 1 + each.results for (to, mark), each in state.origin.deliveries.items() if to == via}
    if not windows:
        return ()
    bound: Counter[bytes] = Counter()
    for claim in state.origin.claims.values():
        if claim.row.via == via:
            bound[claim.row.machine.mark] += len(claim.bound)
    return tuple(mark for mark, window in windows.items() if window < WINDOW_LIMIT and bound[mark] >= window)


def note_result(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Count a result that was taken: it allows the machine one task more, and raises the rank of its neighbor."""
    record = state.origin.deliveries.get(key_of(claim))
    if record is not None:
        record.results += 1
        record.growth_limit += GROWTH_PER_RESULT
        record.grew_at = now
        _forget_if_trusted(state, claim, record)
    state.origin.given_back.pop(key_of(claim), None)
    losses = state.origin.losses.get(claim.row.via)
    if losses is not None:
        losses.count = max(0, losses.count - 1)


def note_no_result(
    state: ModuleState, claim: HeldClaim, status: AttemptStatus, /, now: Instant, *, has_run: bool, is_held: bool
) -> bool:
    """Count an attempt that came back without a result; return whether its machine only loses tasks.

    One that its owner ended, that was not started, or that its executor refused, takes back what one result allowed,
    and the third in a row is a loss. So is one that was refused after it was held for longer than its arrival takes,
    which `is_held`. After a loss the machine begins anew; the next one before any result shows that it only loses. The
    neighbor through which the claim was granted ranks lower, also if the owner ended the task, or it was refused after
    it `has_run`. The own machine has no window and no rank.

    A machine that an environment does not fit has lost nothing, and denies the next tasks with it itself: else any user
    could keep a machine from all others.
    """
    is_unfit = status.cause in UNFIT_CAUSES and bool(environment_in(claim.row.tdv.pairs))
    if claim.row.via == state.system or status.cause == Cause.UNREACHABLE or is_unfit:
        return False
    record, only_loses = state.origin.deliveries.get(key_of(claim)), False
    is_denial = status.state is TaskState.DENIED
    is_late_denial = is_denial and has_run
    is_loss = is_held if is_denial else status.cause not in (*_BY_OWNER, *START_CAUSES)
    if not is_loss and (is_late_denial or not is_denial or not claim.has_denied):
        is_loss = _given_back(state, key_of(claim), now) >= _GIVEN_BACK_LIMIT
    claim.has_denied = claim.has_denied or is_denial
    if not is_loss:
        if record is not None:
            record.results = max(0, record.results - 1)
    else:
        # What is lost at one instant is one loss: a machine that restarts loses all its tasks.
        only_loses = record is not None and not record.results and record.grew_at != now
        record = _record(state, key_of(claim), now)
        record.results, record.growth_limit, record.grew_at = 0, _FIRST_GROWTH_LIMIT, now
    is_ended = status.state is TaskState.REVOKED and status.cause not in START_CAUSES
    if is_ended or status.cause == Cause.REFUSED or is_late_denial or is_loss:
        _lower(state, claim.row.via, now)
    return only_loses


def may_grow_with_time(state: ModuleState, claim: HeldClaim, now: Instant) -> bool:
    """Return whether a machine is full and gets more if its tasks run: 30 s after its window was changed last."""
    record = state.origin.deliveries.get(key_of(claim))
    if record is None or now - record.grew_at < GROWTH_NS or record.results >= _growth_limit(claim, record):
        return False
    return claim.row.machine.mark in full_machines(state, claim.row.via)


def grow_with_time(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Double the window of a machine that is full of tasks which run within their time."""
    record = state.origin.deliveries[key_of(claim)]
    record.results, record.grew_at = min(2 * record.results + 1, _growth_limit(claim, record)), now
    _forget_if_trusted(state, claim, record)


def lease_for(state: ModuleState, claim: HeldClaim) -> int:
    """Return the lease that a claim gets now, in ns: never a shorter one than before."""
    if not claim.row.is_foreign:
        return claim.row.lease_ns
    earned_ns = min(FIRST_LEASE_NS * window_at(state, claim), state.policy.timeouts.lease_ns)
    return max(claim.row.lease_ns, earned_ns)


def why_too_long(state: ModuleState, accept: SchedAccept, /, *, sender: SystemId) -> str:
    """Return why this origin takes no claim with such a lease from a machine of another site; empty if it takes it.

    A machine keeps a task that it never ends as long as its lease. It is asked for 30 s at most. Release 0.1.0 does not
    know that, and grants the lease of its policy: none that is longer than the one of the own policy is taken.
    """
    longest_ns = max(state.policy.timeouts.lease_ns, FIRST_LEASE_NS)
    is_foreign = accept.is_foreign or sender in state.identity.apart
    if not is_foreign or accept.lease_ns <= longest_ns:
        return ""
    granted_s, longest_s = -(-accept.lease_ns // SECOND), longest_ns // SECOND
    return f"its lease of {granted_s} s is longer than the one of this module's policy, {longest_s} s"


def has_lost(state: ModuleState, neighbor: SystemId, now: Instant) -> bool:
    """Return whether a neighbor ranks last: tasks were lost there, and it has not delivered as many since.

    The penalty lasts a minute, and twice as long for each loss that no result has made up for, up to an hour.
    """
    losses = state.origin.losses.get(neighbor)
    if losses is None:
        return False
    length_ns = min(_PENALTY_NS << max(0, losses.count - 1), _LONGEST_PENALTY_NS)
    return now < after(losses.latest_at, length_ns)


def _given_back(state: ModuleState, key: _Key, now: Instant) -> int:
    """Count that a machine gives tasks back now, and return how often that was since its last result."""
    ends = state.origin.given_back.pop(key, None) or Losses(latest_at=now, count=1)
    if ends.latest_at != now:
        ends.latest_at, ends.count = now, min(ends.count + 1, _GIVEN_BACK_LIMIT)
    state.origin.given_back[key] = ends
    if len(state.origin.given_back) > DELIVERIES_LIMIT:
        del state.origin.given_back[next(iter(state.origin.given_back))]
    return ends.count


def _lower(state: ModuleState, neighbor: SystemId, now: Instant) -> None:
    losses = state.origin.losses.get(neighbor)
    if losses is None:
        state.origin.losses[neighbor] = Losses(latest_at=now, count=1)
    elif losses.latest_at != now:
        losses.latest_at, losses.count = now, min(losses.count + 1, _LOSSES_LIMIT)


def _record(state: ModuleState, key: _Key, now: Instant) -> Delivery:
    """Return the record of a machine, the latest of the table; the one that was used least lately makes room."""
    deliveries = state.origin.deliveries
    record = deliveries.pop(key, None)
    if record is None:
        record = Delivery(grew_at=now, growth_limit=_FIRST_GROWTH_LIMIT)
    deliveries[key] = record
    if len(deliveries) > DELIVERIES_LIMIT:
        del deliveries[next(iter(deliveries))]
    return record


def _growth_limit(claim: HeldClaim, record: Delivery) -> int:
    return record.growth_limit if claim.row.is_foreign else WINDOW_LIMIT


def _forget_if_trusted(state: ModuleState, claim: HeldClaim, record: Delivery) -> None:
    """Forget the record of a machine of the own site that gets as many tasks as others again."""
    if record.results >= WINDOW_LIMIT:
        record.results = WINDOW_LIMIT
        if not claim.row.is_foreign:
            del state.origin.deliveries[key_of(claim)]
