"""The report of an executor to a claim's origin on attempts that are to run elsewhere (MESSIAHS 5.3.2 task_revoke).

A message may be lost with a link. So every renewal of the lease names the moving attempts again, and the origin's
answer to it lists those that it moves. If the list includes an attempt that may stay after all, the origin is informed
again.
"""

from messiahs.core.executor.local_ids import row_of
from messiahs.core.interface.actions import SendControl
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Substate, TaskRevoke, TaskState
from messiahs.core.model.ids import AttemptId
from messiahs.core.relay.disclosure import as_shown
from messiahs.core.relay.search_memory import way_to
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState


def revocation(state: ModuleState, claim: GrantedClaim) -> TaskRevoke:
    """Return the attempts of a claim that are to run elsewhere, or are ending for that reason.

    Attempts that the owner's rules remove take precedence over the offer of the claim, which is then left out.
    """
    guards = {attempt: guard for attempt in claim.started if (guard := state.executor.guards.get(attempt)) is not None}
    moving = [(attempt, guard) for attempt, guard in guards.items() if guard.memory.moving is not None]
    ending = tuple(attempt for attempt in claim.started if is_moving_out(state, attempt))
    if moving or claim.offer is None:
        text = next((guard.moving_text for _, guard in moving), "")
        leaving = (*(attempt for attempt, _ in moving), *ending)
        return TaskRevoke(claim=claim.row.id, attempts=_named(state, leaving), text=text)
    offered = tuple(attempt for attempt in claim.offer.attempts if attempt in claim.started and attempt not in ending)
    revoked = TaskRevoke(
        claim=claim.row.id,
        attempts=_named(state, (*offered, *ending)),
        text=claim.offer.text,
        answers=claim.offer.search,
        toward=way_to(state, claim.offer.search),
    )
    return as_shown(state, revoked, to=claim.row.via)


def is_moving_out(state: ModuleState, attempt: AttemptId) -> bool:
    """Return whether an attempt is ending because there is another place for its task."""
    status = state.executor.attempts[attempt].status
    return status.substate is Substate.VACATING and status.cause == Cause.MOVED


def call_off(state: ModuleState, claim: GrantedClaim, moving: tuple[AttemptId, ...], /) -> tuple[SendControl, ...]:
    """Repeat the revocation to an origin that still moves a running attempt that may stay.

    Attempts that have ended are reported by other messages.
    """
    if not moving:
        return ()
    revoked = revocation(state, claim)
    rows = (row_of(state, claim.row.id, each) for each in moving if each not in revoked.attempts)
    if not any(row is not None and row.status.state is TaskState.EXECUTING for row in rows):
        return ()
    return (SendControl(to=claim.row.via, message=revoked),)


def _named(state: ModuleState, attempts: tuple[AttemptId, ...]) -> tuple[AttemptId, ...]:
    """Return attempts by the ids that their origin uses."""
    return tuple(state.executor.attempts[attempt].named for attempt in attempts)
