"""Tasks whose executor wants to be rid of them, at their origin (MESSIAHS 6.2 task_revoke).

The paper lets every module on the way try to place the task anew. Here hops only pass the message on, because the
origin alone binds attempts: it looks for another place while the attempt still runs, tells the executor to end it once
there is one, and binds the next attempt when it has ended. Where no other place is found, the task is not aborted: the
executor does what its owner's rule says then, and the task waits for another place like any that was revoked.
"""

from dataclasses import replace

from messiahs.core.actions import Action, Report, ReportCode, SendControl, Store
from messiahs.core.ids import AttemptId, SystemId
from messiahs.core.instants import Instant
from messiahs.core.messages import ClaimEnd, TaskKill, TaskRevoke
from messiahs.core.placing import longer, look_now, place
from messiahs.core.rows import HistoryEntry
from messiahs.core.state import HeldClaim, ModuleState


def on_task_revoke(state: ModuleState, revoke: TaskRevoke, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Look for other places for the attempts of a claim that are named, and for no others of it any more."""
    claim = state.origin.claims.get(revoke.claim)
    if claim is None:
        return (SendControl(to=sender, message=ClaimEnd(claim=revoke.claim)),)
    if claim.row.via != sender:
        return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(revoke.claim)),)
    moving, named = claim.shape.moving, frozenset(revoke.attempts)
    may_stay = [each for each in moving if each in claim.bound and each not in named]
    for attempt in may_stay:
        # What has ended cannot stay: its outputs are on their way home, and its place waits.
        if attempt not in state.origin.fetching:
            del moving[attempt]
    # A kill that was lost on its way; the executor has not heard it, or it would not ask again.
    told = tuple(attempt for attempt in revoke.attempts if attempt in claim.bound and moving.get(attempt))
    actions: list[Action] = []
    if told:
        kill = TaskKill(claim=revoke.claim, attempts=told, is_move=True)
        actions.append(SendControl(to=claim.row.via, message=kill))
    fresh = [attempt for attempt in revoke.attempts if _is_movable(state, claim, attempt)]
    for attempt in fresh:
        moving[attempt] = False
        actions.append(_note(state, claim, attempt, text=revoke.text, now=now))
    claim.shape.is_filled = False
    if fresh and claim.shape.request is None:
        return (*actions, *look_now(state, claim.shape, now))
    return (*actions, *place(state, claim.shape, now))


def _is_movable(state: ModuleState, claim: HeldClaim, attempt: AttemptId) -> bool:
    if attempt not in claim.bound or attempt in claim.shape.moving or attempt in state.origin.fetching:
        return False
    return not state.origin.tasks[attempt.task].is_cancelled


def _note(state: ModuleState, claim: HeldClaim, attempt: AttemptId, *, text: str, now: Instant) -> Store:
    row = state.origin.tasks[attempt.task]
    entry = HistoryEntry(at=now, event="moving", attempt=row.attempt, module=claim.row.id.executor, text=text)
    row = replace(row, history=longer(row.history, entry))
    state.origin.tasks[row.id] = row
    return Store(row=row)
