"""The end of an attempt at its origin: its task ends too, or waits for the next attempt (MESSIAHS 6.2)."""

from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.causes import OUTPUT_CAUSES, Cause
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import AttemptStatus, Substate, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.terminals import ONE_ATTEMPT
from messiahs.core.origin.awaited import note_started
from messiahs.core.origin.completion import end_task
from messiahs.core.origin.holds import queue_again
from messiahs.core.origin.placement import forget_round
from messiahs.core.origin.relocation import stay
from messiahs.core.origin.resting import NOT_STARTED, end_delays, note_failed_start
from messiahs.core.origin.suspended_time import with_suspension
from messiahs.core.origin.task_history import longer
from messiahs.core.origin.time_limits import forget_clock
from messiahs.core.relay.deliveries import note_no_result, note_result
from messiahs.core.relay.reachability import avoid
from messiahs.core.state.lives import HeldPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim, Shape

_NEVER_BEGUN: Final = (*NOT_STARTED, Cause.NEVER_ARRIVED, Cause.UNREACHABLE, Cause.REFUSED)
_ARRIVED_AFTER_NS: Final = 5 * SECOND
"""An attempt that an honest executor does not accept is denied on its arrival, so that early."""
_REPORTED: Final = (Cause.MOVED, Cause.VACATED, Cause.REVOKED)
"""Ends that executors report themselves, with how long the attempt has run."""


def settle(state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /) -> tuple[Action, ...]:
    """Unbind an attempt that has ended: its task ends with its result, or waits for the next attempt."""
    row = state.origin.tasks[status.attempt.task]
    is_asked = row.is_revoked or claim.shape.moving.get(status.attempt, False)
    is_held = _has_arrived(claim, status.attempt, now)
    _unbind(state, claim, status.attempt)
    overdue = row.result if row.is_cancelled else None
    if overdue is not None:
        # The task has been shown as ended: the late report only adds what is measured and left of it.
        status = replace(
            overdue,
            outputs=status.outputs,
            ran_ns=max(status.ran_ns, overdue.ran_ns),
            usage=status.usage,
            containment=status.containment,
        )
    row = with_suspension(row, is_suspended=False, now=now)
    row = replace(row, claim=None, result=status, history=longer(row.history, _end(claim, status, now)))
    if row.is_revoked:
        row, status = _after_revocation(row, status)
    if row.is_wanted_again:
        row = replace(row, is_cancelled=False, is_wanted_again=False, failures=0, result=None)
        return _try_again(state, claim.shape, row)
    if row.is_cancelled:
        return end_task(state, row, TaskState.KILLED if overdue is None else overdue.state, now=now)
    submission = state.origin.submissions[row.id.submission].row
    is_too_late = submission.deadline_at is not None and submission.deadline_at <= now
    if status.state in (TaskState.REVOKED, TaskState.DENIED):
        # Bound to the same claim again, it could be refused or lost in an endless loop.
        claim.enter(HeldPhase.ENDING)
        claim.shape.has_lost = True
        _note_if_not_started(state, claim, status, now, waits=submission.waits)
        if status.cause == Cause.MOVED:
            _leave(state, claim)
        # A machine that says so without having been asked has ended the task itself.
        is_move, has_run = is_asked and status.cause == Cause.MOVED, row.started_at is not None
        if not is_move and note_no_result(state, claim, status, now, has_run=has_run, is_held=is_held):
            avoid(state, claim.row.machine, via=claim.row.via, is_final=False, now=now)
        if submission.command.terminal and _may_have_run(row, status, is_own=claim.row.via == state.system):
            return end_task(state, replace(row, result=_last(status)), TaskState.ABORTED, now=now)
        if is_too_late:
            return end_task(
                state, replace(row, reasons=claim.shape.reasons, search=claim.shape.search), TaskState.DENIED, now=now
            )
        return _try_again(state, claim.shape, replace(row, result=None))
    end_delays(claim.shape)
    claim.results += 1
    note_result(state, claim, now)
    is_wanted_again = row.failures < submission.retries and not is_too_late
    if _exited_by_itself(status) and status.exit_code and is_wanted_again:
        return _try_again(state, claim.shape, replace(row, result=None, failures=row.failures + 1))
    return end_task(state, row, status.state, now=now)


def _has_arrived(claim: HeldClaim, attempt: AttemptId, now: Instant) -> bool:
    """Return whether an attempt was bound, or its inputs moved last, so long ago that its executor has it."""
    bound_at = claim.bound.get(attempt, now)
    return now - max(bound_at, claim.moving_at or bound_at) >= _ARRIVED_AFTER_NS


def _unbind(state: ModuleState, claim: HeldClaim, attempt: AttemptId) -> None:
    claim.bound.pop(attempt, None)
    claim.unconfirmed.pop(attempt, None)
    claim.listed.pop(attempt, None)
    forget_clock(state, claim, attempt)
    if stay(claim.shape, attempt):
        # The place found for it is available to other attempts, or not needed.
        claim.shape.is_filled = False


def _note_if_not_started(
    state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /, *, waits: bool
) -> None:
    note_failed_start(state, claim, status, now)
    if status.cause in NOT_STARTED and not waits:
        # The next round decides whether another machine gets the task or it is denied.
        forget_round(state, claim.shape)


def _after_revocation(row: TaskRow, status: AttemptStatus) -> tuple[TaskRow, AttemptStatus]:
    """Return a task that was revoked by hand as one that its executor has revoked, unless it has ended by itself."""
    if status.state in (TaskState.KILLED, TaskState.REVOKED, TaskState.DENIED):
        cause = Cause.MOVED if row.is_barred else Cause.REVOKED
        status = replace(status, state=TaskState.REVOKED, cause=cause)
    return replace(row, is_cancelled=False, is_wanted_again=False, is_revoked=False, is_barred=False), status


def _exited_by_itself(status: AttemptStatus) -> bool:
    return status.state is TaskState.FINISHED or status.cause in OUTPUT_CAUSES


def _last(status: AttemptStatus) -> AttemptStatus:
    """Return the status of a lost attempt that no other one follows, since it had a terminal."""
    return replace(status, text="; ".join(filter(None, (status.text, ONE_ATTEMPT))))


def _may_have_run(row: TaskRow, status: AttemptStatus, /, *, is_own: bool) -> bool:
    """Return whether an attempt that was lost can have begun.

    One whose start was reported has, whatever its executor says at its end: only the own machine, which `is_own`, is
    believed that the preparation has failed that follows the report.
    """
    if row.started_at is not None:
        return not (is_own and status.cause in NOT_STARTED)
    return status.cause not in _NEVER_BEGUN and (status.cause not in _REPORTED or bool(status.ran_ns))


def _end(claim: HeldClaim, status: AttemptStatus, now: Instant) -> HistoryEntry:
    is_explained = status.state is TaskState.REVOKED or status.cause in (Cause.UNREACHABLE, Cause.REFUSED)
    return HistoryEntry(
        at=now,
        event=status.cause or status.state,
        attempt=status.attempt.number,
        module=claim.row.id.executor,
        text=status.text if is_explained else _exit_text(status),
        exit_code=status.exit_code,
    )


def _exit_text(status: AttemptStatus) -> str:
    """Return how an attempt failed; empty if it did not, or if nothing is known."""
    if status.signal is not None:
        return f"signal {status.signal}"
    return f"exit code {status.exit_code}" if status.exit_code else ""


def _leave(state: ModuleState, claim: HeldClaim) -> None:
    """Bind no more tasks of a shape to a machine from which one has moved: the task could return there."""
    for held in (state.origin.claims[each] for each in claim.shape.claims):
        if held.row.machine == claim.row.machine:
            held.enter(HeldPhase.ENDING)
    claim.shape.is_filled = False


def _try_again(state: ModuleState, shape: Shape, row: TaskRow) -> tuple[Action, ...]:
    had_started = row.started_at is not None
    row = replace(row, substate=Substate.QUEUED, executed_on="", started_at=None, suspended_ns=0)
    state.origin.tasks[row.id] = row
    note_started(state, row, had_started=had_started)
    queue_again(state, shape, row.id)
    return (Store(row=row),)
