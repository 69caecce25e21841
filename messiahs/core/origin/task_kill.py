"""Killing bound attempts of tasks that have ended for their user, at the origin: cancelled and overdue ones.

Such a task is shown as ended at once. It stays bound until its executor reports that the attempt has ended, or until
its lease expires: until then it may still run, and a retry waits. An attempt that may not have arrived is not sent
again; the executor is queried for it by name, and never starts it if it does not have it.
"""

from collections.abc import Iterable

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.messages import TaskKill, TaskStatusQuery
from messiahs.core.interface.rows import TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim

KILL_AGAIN_NS = 10 * SECOND


def kill(state: ModuleState, claim: HeldClaim, attempts: Iterable[AttemptId], now: Instant, /) -> tuple[Action, ...]:
    """Kill attempts of a claim whose tasks are marked as cancelled, now and repeatedly until their executor answers."""
    attempts = tuple(attempts)
    state.timers.set(TimerKind.KILL, claim.row.id, after(now, KILL_AGAIN_NS))
    return (*kill_again(state, claim, attempts), *_ask_for_unconfirmed(claim, attempts))


def kill_again(state: ModuleState, claim: HeldClaim, attempts: Iterable[AttemptId], /) -> tuple[Action, ...]:
    """Send a kill once more; those of tasks that were moved by hand also bar the machine to tasks of their shape."""
    groups: dict[bool, list[AttemptId]] = {}
    for attempt in attempts:
        groups.setdefault(state.origin.tasks[attempt.task].is_barred, []).append(attempt)
    messages = (
        TaskKill(claim=claim.row.id, attempts=tuple(group), is_barring=is_barring)
        for is_barring, group in groups.items()
    )
    return tuple(SendControl(to=claim.row.via, message=message) for message in messages)


def on_kill_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Repeat the kill of attempts that their executor has not reported as ended."""
    claim = state.origin.claims.get(claim_id)
    attempts = [each for each in claim.bound if is_cancelled(state, each)] if claim is not None else []
    attempts = [each for each in attempts if each not in state.origin.fetching]
    if claim is None or not attempts:
        return ()
    state.timers.set(TimerKind.KILL, claim_id, after(now, KILL_AGAIN_NS))
    running = tuple(each for each in attempts if each not in claim.unconfirmed)
    return (*kill_again(state, claim, running), *_ask_for_unconfirmed(claim, attempts))


def is_cancelled(state: ModuleState, attempt: AttemptId) -> bool:
    """Return whether the task of a bound attempt is cancelled or overdue."""
    return state.origin.tasks[attempt.task].is_cancelled


def may_run_until(state: ModuleState, row: TaskRow) -> Instant | None:
    """Return the latest instant until which a cancelled or overdue task may still run; None if it does not run."""
    if not row.is_cancelled or row.claim is None or AttemptId(row.id, row.attempt) in state.origin.fetching:
        return None
    return state.timers.deadline_of(TimerKind.HELD_LEASE, row.claim)


def killed_but_open(state: ModuleState, submission: TaskId) -> tuple[TaskRow, ...]:
    """Return the tasks of a submission whose attempts may run on after a cancel; empty if others have not ended."""
    live = state.origin.submissions.get(submission)
    if live is None:
        return ()
    tried = (row for row in state.origin.tasks.values() if row.id.submission == submission)
    killed = tuple(row for row in tried if row.is_cancelled and not row.is_wanted_again)
    return killed if len(killed) + sum(live.ended.values()) == max(1, live.row.members) else ()


def _ask_for_unconfirmed(claim: HeldClaim, attempts: Iterable[AttemptId]) -> tuple[Action, ...]:
    unconfirmed = tuple(each for each in attempts if each in claim.unconfirmed)
    if not unconfirmed:
        return ()
    return (SendControl(to=claim.row.via, message=TaskStatusQuery(claim=claim.row.id, attempts=unconfirmed)),)
