"""How long the lease of a claim is extended: as long as its tasks may take, counted from their bind.

The time of a task (`--time`), with what copying inputs and waiting for a place may take, ends its bind. A renewal is
answered only if the lease would otherwise end before a bound task does. So the starter of an honest executor ends what
is left then, and an executor that never reports a result loses its tasks with the lease, whatever it claims of them:
they are bound anew when the lease has surely ended. Time for which inputs move or the task is reported as suspended
does not count, and neither does the time in which its outputs are fetched.

At the own site too, where an origin requests leases that end soon after the time of the tasks: two thirds of a lease
are left when a renewal is not answered, and cover a task. A lost link therefore ends no task before its time.
"""

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import Substate, TaskStatusAck
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant, after
from messiahs.core.origin.resting import watch_lease
from messiahs.core.origin.time_limits import allowed_ns, with_grace_ns
from messiahs.core.relay.deliveries import key_of
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim
from messiahs.core.task_filter.matching import time_limit_ns


def wanted_lease_ns(tdv: TDV, *, longest_ns: int) -> int:
    """Return the lease to request for claims of tasks with these needs, in ns; 0 for the one of the executor."""
    lease_ns = _short_lease_ns(tdv)
    return 0 if lease_ns is None or lease_ns >= longest_ns else lease_ns


def is_bounded(claim: HeldClaim) -> bool:
    """Return whether tasks of a claim that are not reported as ended are lost with its lease, soon after their time.

    An executor that grants longer leases than requested, such as one of release 0.1.0, gets no task anew that soon.
    """
    lease_ns = _short_lease_ns(claim.row.tdv)
    return claim.row.is_foreign or (lease_ns is not None and claim.row.lease_ns <= lease_ns)


def is_needed(state: ModuleState, claim: HeldClaim, now: Instant) -> bool:
    """Return whether the lease of a claim is to be extended."""
    if claim.leased_at is None or not claim.bound or not is_bounded(claim):
        return True
    # The next renewal comes an interval later.
    covered = after(claim.leased_at, claim.row.lease_ns - claim.row.lease_ns // RENEWALS_PER_LEASE)
    ends = (not_after(state, claim, attempt, now) for attempt in claim.bound)
    return any(end is None or end > covered for end in ends)


def do_all_run(state: ModuleState, claim: HeldClaim, now: Instant) -> bool:
    """Return whether all tasks at the machine of a claim are reported as running, and none is past its time."""
    if not claim.listed.keys() >= claim.bound.keys():
        return False
    there = (each for each in state.origin.claims.values() if key_of(each) == key_of(claim))
    return all(_runs(state, each, attempt, now) for each in there for attempt in each.bound)


def is_overdue(state: ModuleState, claim: HeldClaim, now: Instant) -> bool:
    """Return whether a claim still holds a task after its time, so that no more are bound to it."""
    limit_ns = time_limit_ns(claim.row.tdv)
    if limit_ns is None or claim.is_ending or not claim.bound or not is_bounded(claim):
        return False
    # Spares the exact look, once for each task that ends.
    if now - min(claim.bound.values()) <= limit_ns:
        return False
    ends = [not_after(state, claim, attempt, now) for attempt in claim.bound]
    return any(end is not None and end <= now for end in ends)


def answer_late(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    """Answer a renewal that was not needed before, for tasks that have been bound since."""
    if not claim.unanswered or not is_needed(state, claim, now):
        return ()
    renewal, claim.unanswered = claim.unanswered, 0
    watch_lease(state, claim, now)
    moving = tuple(each for each in claim.shape.moving if each in claim.bound)
    ack = TaskStatusAck(claim=claim.row.id, renewal=renewal, moving=moving, lease_ns=claim.row.lease_ns)
    return (SendControl(to=claim.row.via, message=ack),)


def _short_lease_ns(tdv: TDV) -> int | None:
    limit_ns = time_limit_ns(tdv)
    return None if limit_ns is None else with_grace_ns(limit_ns) * 3 // 2


def _runs(state: ModuleState, claim: HeldClaim, attempt: AttemptId, /, now: Instant) -> bool:
    row, end = state.origin.tasks.get(attempt.task), not_after(state, claim, attempt, now)
    return row is not None and row.substate is Substate.RUNNING and (end is None or end > now)


def not_after(state: ModuleState, claim: HeldClaim, attempt: AttemptId, /, now: Instant) -> Instant | None:
    """Return when a bound attempt should have ended at the latest; None if that is not known now."""
    allowed = allowed_ns(state, claim, attempt.task)
    row = state.origin.tasks.get(attempt.task)
    is_held = row is None or row.substate in (Substate.SUSPENDED, Substate.VACATING)
    if allowed is None or row is None or is_held or attempt in state.origin.fetching:
        return None
    bound_at = claim.bound[attempt]
    return after(max(bound_at, min(claim.moving_at or bound_at, now)), allowed + row.suspended_ns)
