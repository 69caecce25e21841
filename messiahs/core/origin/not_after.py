"""How long the lease of a claim at another site is extended: as long as its tasks may take, counted from their bind.

The time of a task (`--time`), with what copying inputs and waiting for a place may take, ends its bind. A renewal is
answered only if the lease would otherwise end before a bound task does. So the starter of an honest executor ends what
is left then, and an executor that never reports a result loses its tasks with the lease, whatever it claims of them:
they are bound anew when the lease has surely ended. Time for which inputs move or the task is reported as suspended
does not count, and neither does the time in which its outputs are fetched.
"""

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import Substate, TaskStatusAck
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant, after
from messiahs.core.origin.resting import watch_lease
from messiahs.core.origin.time_limits import allowed_ns
from messiahs.core.state.lives import HeldPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim


def is_needed(state: ModuleState, claim: HeldClaim, now: Instant) -> bool:
    """Return whether the lease of a claim is to be extended; at the own site always."""
    if not claim.row.is_foreign or claim.leased_at is None or not claim.bound:
        return True
    # The next renewal comes an interval later.
    covered = after(claim.leased_at, claim.row.lease_ns - claim.row.lease_ns // RENEWALS_PER_LEASE)
    ends = (not_after(state, claim, attempt, now) for attempt in claim.bound)
    return any(end is None or end > covered for end in ends)


def end_if_overdue(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Bind no more tasks to a claim at another site that still holds one after its time."""
    if claim.row.is_foreign and not claim.is_ending:
        ends = [not_after(state, claim, attempt, now) for attempt in claim.bound]
        if any(end is not None and end <= now for end in ends):
            claim.enter(HeldPhase.ENDING)


def answer_late(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    """Answer a renewal that was not needed before, for tasks that have been bound since."""
    if not claim.unanswered or not is_needed(state, claim, now):
        return ()
    renewal, claim.unanswered = claim.unanswered, 0
    watch_lease(state, claim, now)
    moving = tuple(each for each in claim.shape.moving if each in claim.bound)
    ack = TaskStatusAck(claim=claim.row.id, renewal=renewal, moving=moving, lease_ns=claim.row.lease_ns)
    return (SendControl(to=claim.row.via, message=ack),)


def not_after(state: ModuleState, claim: HeldClaim, attempt: AttemptId, /, now: Instant) -> Instant | None:
    """Return when a bound attempt should have ended at the latest; None if that is not known now."""
    allowed = allowed_ns(state, claim, attempt.task)
    row = state.origin.tasks.get(attempt.task)
    is_held = row is None or row.substate in (Substate.SUSPENDED, Substate.VACATING)
    if allowed is None or row is None or is_held or attempt in state.origin.fetching:
        return None
    bound_at = claim.bound[attempt]
    return after(max(bound_at, min(claim.moving_at or bound_at, now)), allowed + row.suspended_ns)
