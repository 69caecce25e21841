"""Tasks whose executor wants to be rid of them, at their origin (MESSIAHS 6.2 task_revoke).

The paper lets every module on the way try to place the task anew. Here hops only pass the message on, because the
origin alone binds attempts: it looks for another place while the attempt still runs, tells the executor to end it once
there is one, and binds the next attempt when it has ended. Where no other place is found, the task is not aborted: the
executor does what its owner's rule says then, and the task waits for another place like any that was revoked.

What its executor only offers, because somebody asked for tasks and its policy lets them go, is looked for once, first
at whoever asked, and goes on where it is if nobody takes it.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import ClaimEnd, TaskKill, TaskRevoke
from messiahs.core.interface.rows import HistoryEntry
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.offers import is_free
from messiahs.core.origin.placement import longer, place, promise, search_now
from messiahs.core.origin.relocation import stay
from messiahs.core.relay.search_memory import remember_way
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim

_MOVES = 3
"""A task that has moved so often begins anew no more because somebody asks."""


def on_task_revoke(state: ModuleState, revoke: TaskRevoke, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Look for other places for the attempts of a claim that are named, and for no others of it any more."""
    claim = state.origin.claims.get(revoke.claim)
    if claim is None:
        return (SendControl(to=sender, message=ClaimEnd(claim=revoke.claim)),)
    if claim.row.via != sender:
        return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(revoke.claim)),)
    shape = claim.shape
    _forget_others(state, claim, revoke)
    # A kill that was lost on its way; the executor has not heard it, or it would not ask again.
    told = tuple(attempt for attempt in revoke.attempts if attempt in claim.bound and shape.moving.get(attempt))
    actions: list[Action] = []
    if told:
        kill = TaskKill(claim=revoke.claim, attempts=told, is_move=True)
        actions.append(SendControl(to=claim.row.via, message=kill))
    fresh = [attempt for attempt in revoke.attempts if _is_movable(state, claim, attempt)]
    if revoke.answers is not None:
        fresh = [attempt for attempt in fresh if _may_be_taken(state, attempt)] if _is_open(claim, revoke, now) else []
    for attempt in fresh:
        shape.moving[attempt] = False
        actions.append(_note(state, claim, attempt, text=revoke.text, now=now))
    shape.is_filled = False
    if fresh and revoke.answers is not None:
        claim.offered_to = revoke.answers
        shape.offered.update(dict.fromkeys(fresh))
        remember_way(state, revoke, sender=sender, now=now)
        return (*actions, *promise(state, shape, len(fresh), revoke.answers, now=now))
    if fresh and shape.phase is not ShapePhase.SEARCHING:
        return (*actions, *search_now(state, shape, now))
    return (*actions, *place(state, shape, now))


def _forget_others(state: ModuleState, claim: HeldClaim, revoke: TaskRevoke) -> None:
    """Let all attempts of a claim stay that are not named, and that were named before for another reason."""
    shape, named = claim.shape, frozenset(revoke.attempts)
    is_offer = revoke.answers is not None
    for attempt in [attempt for attempt in shape.moving if attempt in claim.bound]:
        if attempt not in named:
            # What has ended cannot stay: its outputs are on their way home, and its place waits.
            is_over = attempt in state.origin.fetching
        else:
            is_over = shape.moving[attempt] or is_offer is (attempt in shape.offered)
        if not is_over:
            stay(shape, attempt)


def _is_open(claim: HeldClaim, revoke: TaskRevoke, now: Instant) -> bool:
    """Say whether an offer is looked for: it is new, and nobody else was promised tasks of its shape a moment ago."""
    return revoke.answers != claim.offered_to and is_free(claim.shape, now)


def _may_be_taken(state: ModuleState, attempt: AttemptId) -> bool:
    """Say whether a task may begin anew because somebody asks: one that did so several times is left in peace."""
    history = state.origin.tasks[attempt.task].history
    return sum(entry.event == Cause.MOVED for entry in history) < _MOVES


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
