"""Resuming after a restart, from stored rows and from the attempts that the executor back end reports as running.

Every action is idempotent under its attempt id, so actions that may have been performed before are simply repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from messiahs.core import shut_off
from messiahs.core.audit.tasks import restore as restore_audit
from messiahs.core.border.shown_ids import enter_claim, restore_submissions
from messiahs.core.border.sides import is_border
from messiahs.core.epochs import on_older_copy
from messiahs.core.executor.attempts import on_attempt_ended, start_action
from messiahs.core.executor.claims import forget_attempt, watch
from messiahs.core.executor.kept_results import note_ended
from messiahs.core.executor.lending import restore as restore_lending
from messiahs.core.executor.local_ids import enter_row
from messiahs.core.executor.owner_acts import restore_suspended
from messiahs.core.executor.owner_rules import continue_after_restart
from messiahs.core.interface.actions import Action, DiscardAttempt, EndAttempt, Forget
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.membership_rows import ShutOffRow
from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.retention_rows import ForgettingRow
from messiahs.core.interface.rows import (
    AttemptRow,
    CountersRow,
    GrantedClaimRow,
    HeldClaimRow,
    HiddenSubmissionRow,
    PassedClaimRow,
    RememberedRow,
    Row,
    RowKind,
    SubmissionRow,
    TaskRow,
)
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.books import restore as restore_ledger
from messiahs.core.membership import relations
from messiahs.core.model.ids import AttemptId, IdsGiven, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.at_once import line_up
from messiahs.core.origin.awaited import await_others
from messiahs.core.origin.completion import ended_in
from messiahs.core.origin.delivery import send_unconfirmed
from messiahs.core.origin.dependencies import take_outputs, waiting_in
from messiahs.core.origin.holds import apart
from messiahs.core.origin.member_runs import merged, run_of, runs_among, without
from messiahs.core.origin.notifications import resume as resume_notifications
from messiahs.core.origin.placement import hold, place
from messiahs.core.origin.retention import restore as restore_retention
from messiahs.core.origin.rounds import search_everywhere
from messiahs.core.origin.shape_queue import shape_of
from messiahs.core.origin.submission import enter
from messiahs.core.origin.task_kill import is_cancelled
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim
from messiahs.core.task_filter.matching import need_of

_RENEWAL_BITS = 48
_REBOOTED = "the machine was rebooted"
_OLDER_COPY = "the module continues from an older copy of its state, after which it may have run"
_UNKNOWN = "the executor back end no longer knows it"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAttempt:
    """An attempt that the back end reports: queued, running, or ended if `ended` is set.

    A running one has run for `ran_ns`, and has been suspended for `suspended_ns` (None: it is not suspended).
    """

    attempt: AttemptId
    is_running: bool
    ran_ns: int = 0
    suspended_ns: int | None = None
    ended: AttemptEnded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """The remains of a module that has stopped.

    If the machine `has_rebooted`, or if the rows are an older copy, an attempt that the back end does not report may
    have run, and does not start again; otherwise it had not been started yet. For an older copy, `forgotten` bounds the
    ids issued since. `stored_at` is when rows were last stored.
    """

    rows: tuple[Row, ...] = ()
    running: tuple[RunningAttempt, ...] = ()
    has_rebooted: bool = False
    forgotten: IdsGiven | None = None
    stored_at: Instant | None = None


def resume(state: ModuleState, remains: Remains, now: Instant) -> tuple[Action, ...]:
    """Restore the state from the rows and continue; `state` must be new."""
    members: dict[TaskId, list[TaskRow]] = {}
    submissions: list[SubmissionRow] = []
    held: list[HeldClaimRow] = []
    attempts: list[AttemptRow] = []
    hidden: list[HiddenSubmissionRow] = []
    audited: list[AuditRow] = []
    actions: list[Action] = []
    relations.restore(state, remains.rows)
    restore_lending(state, remains.rows)
    for row in remains.rows:
        match row:
            case CountersRow():
                state.counters = row
            case SubmissionRow():
                submissions.append(row)
            case TaskRow():
                members.setdefault(row.id.submission, []).append(row)
            case HeldClaimRow():
                held.append(row)
            case GrantedClaimRow():
                _resume_granted(state, row, now)
            case PassedClaimRow():
                actions.extend(_resume_passed(state, row))
            case HiddenSubmissionRow():
                hidden.append(row)
            case AttemptRow():
                attempts.append(row)
            case RememberedRow():
                if row.system in state.neighbors:
                    state.remembered[row.system] = row
            case ShutOffRow():
                shut_off.restore(state, row)
            case AuditRow():
                audited.append(row)
            case _:
                # Entered before or after all others.
                continue
    actions.extend(restore_submissions(state, hidden))
    restore_audit(state, audited)
    for submission in sorted(submissions, key=lambda row: row.id):
        actions.extend(_resume_submission(state, submission, members.get(submission.id, [])))
    for claim in held:
        _resume_held(state, claim, now)
    _resume_bindings(state, now)
    restore_ledger(state, remains.rows, attempts=attempts, now=now)
    actions.extend(_resume_attempts(state, attempts, remains, now))
    if remains.forgotten is not None:
        actions.extend(on_older_copy(state, remains.forgotten, now))
    # Before any search: the own searches would otherwise take the places to which these tasks were bound.
    actions.extend(_resume_sending(state, now))
    actions.extend(relations.resume(state, now))
    actions.extend(_resume_retention(state, submissions, remains, now))
    for shape in tuple(state.origin.shapes.values()):
        if shape.claims or not shape.count:
            actions.extend(place(state, shape, now))
    return (*actions, *search_everywhere(state, now))


def _resume_granted(state: ModuleState, row: GrantedClaimRow, now: Instant) -> None:
    requirement = state.parse("")
    assert not isinstance(requirement, BadPredicate), "the empty predicate is always true"
    # A lease that expired while the module was down may not have been handled yet.
    has_expired = row.lease_until <= now
    if has_expired:
        row = replace(row, is_ending=True)
    left = GrantedPhase.EXPIRED if has_expired else GrantedPhase.ENDING
    need = need_of(row.tdv, requirement)
    claim = GrantedClaim(
        row=row,
        need=replace(need, slots=row.slots or need.slots, uses=row.uses),
        granted=max(1, row.places),
        phase=left if row.is_ending else GrantedPhase.OPEN,
    )
    # Renewals from before the restart may still be answered, and must not be confused with new ones.
    claim.renewals = state.randomness.bits(_RENEWAL_BITS)
    watch(state, claim, now)


def _resume_passed(state: ModuleState, row: PassedClaimRow) -> tuple[Action, ...]:
    """Restore a claim that passes through here, or forget it if one of its two neighbors has left the topology.

    The same holds for a claim of which something is hidden, if this system is no border any more.

    Its messages can no longer be forwarded, so its final one would never arrive. The remaining neighbor learns of the
    end when it is linked: its query is answered with `is_forgotten`, its status with a claim_end (claim_messages.py).
    The origin waits until the lease expires in any case, since its attempts may still run.
    """
    is_hiding = row.shown is not None or row.hides_origin
    are_there = row.toward_origin in state.neighbors and row.toward_executor in state.neighbors
    if are_there and (not is_hiding or is_border(state)):
        state.hop.passed[row.id] = row
        enter_claim(state, row)
        return ()
    return (Forget(key=(RowKind.PASSED_CLAIM, row.id)),)


def _resume_submission(state: ModuleState, row: SubmissionRow, tried: list[TaskRow]) -> tuple[Action, ...]:
    state.origin.keys[row.key] = row.id
    if row.ended_at is not None:
        return ()
    open_tasks = [task for task in tried if task.state is TaskState.EXECUTING]
    started = sum(task.started_at is not None for task in open_tasks)
    submission = enter(state, row, ended=ended_in(row, tried), started=started)
    for task in open_tasks:
        state.origin.tasks[task.id] = task
    queued = {task.id.member for task in open_tasks if task.claim is None}
    settled = runs_among(sorted({task.id.member for task in tried} - queued))
    untried = without(((end.first, end.last) for end in row.untried), runs_among(sorted(queued)))
    waiting = list(without([run_of(row, row.id)], merged((*settled, *untried))))
    dependent = waiting_in(state, row, waiting)
    await_others(state, submission, dependent)
    line_up(state, submission, apart(submission, list(without(waiting, dependent))))
    return tuple(take_outputs(submission))


def _resume_retention(
    state: ModuleState, submissions: list[SubmissionRow], remains: Remains, now: Instant, /
) -> tuple[Action, ...]:
    ended = (row for row in submissions if row.ended_at is not None)
    forgetting = (row for row in remains.rows if isinstance(row, ForgettingRow))
    kept = restore_retention(state, ended, forgetting=forgetting, stored_at=remains.stored_at, now=now)
    return (*kept, *resume_notifications(state, remains.rows))


def _resume_held(state: ModuleState, row: HeldClaimRow, now: Instant) -> None:
    # Its lease counts from now: an answer may have reached the executor just before the restart.
    claim = HeldClaim(row=row, shape=shape_of(state, (row.tdv, row.requirement)), window=0)
    hold(state, claim, now)
    claim.leased_at = None


def _resume_bindings(state: ModuleState, now: Instant) -> None:
    for row in tuple(state.origin.tasks.values()):
        claim = state.origin.claims.get(row.claim) if row.claim is not None else None
        if claim is None:
            continue
        attempt = AttemptId(row.id, row.attempt)
        claim.bound[attempt] = row.bound_at if row.bound_at is not None else now
        claim.unconfirmed[attempt] = None


def _resume_sending(state: ModuleState, now: Instant) -> Iterator[Action]:
    for holding in state.origin.claims.values():
        yield from send_unconfirmed(state, holding)
        if any(is_cancelled(state, attempt) for attempt in holding.bound):
            state.timers.set(TimerKind.KILL, holding.row.id, now)


def _resume_attempts(state: ModuleState, rows: list[AttemptRow], remains: Remains, now: Instant, /) -> list[Action]:
    known = {attempt.attempt: attempt for attempt in remains.running}
    actions: list[Action] = []
    for row in rows:
        enter_row(state, row)
        claim = state.executor.claims.get(row.claim)
        if claim is not None:
            claim.attempts[row.id] = now
            claim.live += row.status.state is TaskState.EXECUTING
            if row.status.state is not TaskState.EXECUTING:
                note_ended(state, claim, row.id)
        elif row.status.state is not TaskState.EXECUTING:
            actions.extend(forget_attempt(state, row.id))
    for attempt in remains.running:
        if attempt.attempt not in state.executor.attempts:
            actions.extend(_end_unknown(attempt))
    for row in rows:
        if row.status.state is TaskState.EXECUTING:
            found = known.get(row.id)
            has_begun = row.status.substate in (Substate.SUSPENDED, Substate.VACATING)
            is_older = remains.forgotten is not None
            if found is None and (remains.has_rebooted or is_older or has_begun):
                text = _REBOOTED if remains.has_rebooted else _OLDER_COPY if is_older else _UNKNOWN
                lost = AttemptEnded(attempt=row.id, cause=Cause.LOST, text=text)
                found = RunningAttempt(attempt=row.id, is_running=False, ended=lost)
            actions.extend(_resume_attempt(state, row, found, now))
    return actions


def _end_unknown(attempt: RunningAttempt) -> tuple[Action, ...]:
    if attempt.ended is not None:
        return (DiscardAttempt(attempt=attempt.attempt),)
    return (EndAttempt(attempt=attempt.attempt, grace_ns=0, cause=Cause.UNBOUND),)


def _resume_attempt(
    state: ModuleState, row: AttemptRow, found: RunningAttempt | None, now: Instant, /
) -> tuple[Action, ...]:
    claim = state.executor.claims.get(row.claim)
    if claim is not None and row.status.substate is Substate.SUSPENDED:
        restore_suspended(state, claim, row.id, is_withheld=row.is_withheld, now=now)
    if found is not None and found.ended is not None:
        return on_attempt_ended(state, found.ended, now)
    if claim is None:
        # Its claim ended before the restart, so the attempt ends too.
        return (EndAttempt(attempt=row.id, grace_ns=0, cause=Cause.UNBOUND),)
    if claim.phase is GrantedPhase.EXPIRED:
        # The timeout of its lease is already due, and ends it.
        return ()
    if found is None or not found.is_running:
        return (start_action(state, claim, row),)
    claim.started[row.id] = Instant(now - found.ran_ns - (found.suspended_ns or 0))
    if row.status.substate is Substate.QUEUED:
        status = replace(row.status, substate=Substate.RUNNING)
        state.executor.attempts[row.id] = replace(row, status=status)
    continued = continue_after_restart(state, claim, row.id, suspended_ns=found.suspended_ns, now=now)
    return (start_action(state, claim, row), *continued)
