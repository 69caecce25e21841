"""Suspended attempts, whose slots are lent out, and which reclaim them to resume or to end (MESSIAHS 2)."""

from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import has_room_for


def reclaim_slots(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> bool:
    """Let a suspended attempt take its slots again; False, without effect, if they are not free.

    True for a running attempt, which has its slots.
    """
    guard = state.executor.guards.get(attempt)
    if guard is None or guard.suspended_at is None:
        return True
    if not has_room_for(state, guard):
        return False
    guard.paused_ns += now - guard.suspended_at
    guard.suspended_at, guard.is_waiting = None, False
    claim.suspended -= 1
    return True
