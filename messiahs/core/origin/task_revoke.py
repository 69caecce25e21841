"""Tasks that their executor wants to give up, at their origin (MESSIAHS 6.2 task_revoke).

In the paper, every module on the way tries to place the task again. Here hops only forward the message, because only
the origin binds attempts: it searches for another place while the attempt runs, asks the executor to end the attempt
once there is a place, and binds the next attempt when this one has ended. If the executor is behind the border of a
site, the first search goes to that border alone, which looks below itself: the task moves within the site if it can.
Without another place the task is not aborted: the executor follows its owner's rule, and the task waits for a place
like any other revoked task.

For an attempt that the executor only offers in answer to a task_request, the origin searches once, beginning with the
requester; if no system takes the attempt, it continues where it is.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import ClaimEnd, TaskKill, TaskRevoke
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.offers import is_free
from messiahs.core.origin.placement import place, promise, search_now
from messiahs.core.origin.relocation import stay
from messiahs.core.origin.task_history import longer
from messiahs.core.relay.search_memory import remember_way
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim


def on_task_revoke(state: ModuleState, revoke: TaskRevoke, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Search for other places for the named attempts of a claim, and stop searching for its other attempts."""
    claim = state.origin.claims.get(revoke.claim)
    if claim is None:
        return (SendControl(to=sender, message=ClaimEnd(claim=revoke.claim)),)
    if not claim.is_from_path(sender):
        return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(revoke.claim)),)
    shape = claim.shape
    _forget_others(state, claim, revoke)
    # A repeated request shows that a kill was lost on its way.
    killed = tuple(attempt for attempt in revoke.attempts if attempt in claim.bound and shape.moving.get(attempt))
    actions: list[Action] = []
    if killed:
        kill = TaskKill(claim=revoke.claim, attempts=killed, is_move=True)
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
    if fresh and claim.row.place:
        shape.near = claim.row.id
    if fresh and shape.phase is not ShapePhase.SEARCHING:
        return (*actions, *search_now(state, shape, now))
    return (*actions, *place(state, shape, now))


def _forget_others(state: ModuleState, claim: HeldClaim, revoke: TaskRevoke) -> None:
    """Stop moving the attempts of a claim that are not named, or that were named before for another reason."""
    shape, named = claim.shape, frozenset(revoke.attempts)
    is_offer = revoke.answers is not None
    for attempt in [attempt for attempt in shape.moving if attempt in claim.bound]:
        if attempt not in named:
            # An attempt that has ended cannot stay: its outputs are being fetched, and its new place is waiting.
            keeps_moving = attempt in state.origin.fetching
        else:
            keeps_moving = shape.moving[attempt] or is_offer is (attempt in shape.offered)
        if not keeps_moving:
            stay(shape, attempt)


def _is_open(claim: HeldClaim, revoke: TaskRevoke, now: Instant) -> bool:
    """Return whether an offer is to be searched for: it is new, and its shape was not promised a moment ago."""
    return revoke.answers != claim.offered_to and is_free(claim.shape, now)


def _may_be_taken(state: ModuleState, attempt: AttemptId) -> bool:
    """Return whether a task may restart elsewhere for a task_request: not after several moves."""
    history = state.origin.tasks[attempt.task].history
    return sum(entry.event == Cause.MOVED for entry in history) < state.policy.limits.moves


def _is_movable(state: ModuleState, claim: HeldClaim, attempt: AttemptId) -> bool:
    if attempt not in claim.bound or attempt in claim.shape.moving or attempt in state.origin.fetching:
        return False
    # Who types in a terminal would have to begin anew.
    has_terminal = state.origin.submissions[attempt.task.submission].row.command.terminal is not None
    return not has_terminal and not state.origin.tasks[attempt.task].is_cancelled


def _note(state: ModuleState, claim: HeldClaim, attempt: AttemptId, *, text: str, now: Instant) -> Store:
    row = state.origin.tasks[attempt.task]
    entry = HistoryEntry(at=now, event="moving", attempt=row.attempt, module=claim.row.id.executor, text=text)
    row = replace(row, history=longer(row.history, entry))
    state.origin.tasks[row.id] = row
    return Store(row=row)
