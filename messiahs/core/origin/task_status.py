"""Reports on bound tasks, received by their origin (MESSIAHS 5.3.2 task_status).

Only results of the bound attempt are accepted, and a task is finished only when its exit *and* its outputs are home.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import (
    AttemptStatus,
    ClaimEnd,
    Substate,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.origin.array_members import outputs_of, tdv_of
from messiahs.core.origin.awaited import note_started
from messiahs.core.origin.delivery import CUT_NS, explained, note_delivered, note_heard
from messiahs.core.origin.giving_way import yield_quantum
from messiahs.core.origin.not_after import do_all_run, is_bounded, is_needed
from messiahs.core.origin.output_fetch import abandon_fetch, fetch_action
from messiahs.core.origin.placement import bound_task, fill, send_tasks
from messiahs.core.origin.reported_outputs import accepted
from messiahs.core.origin.resting import await_status, watch_lease
from messiahs.core.origin.rounds import search_everywhere
from messiahs.core.origin.settlement import settle
from messiahs.core.origin.suspended_time import with_suspension
from messiahs.core.origin.task_history import longer
from messiahs.core.origin.task_kill import kill, kill_again
from messiahs.core.origin.time_limits import count, forget_clock, note_status
from messiahs.core.relay.deliveries import grow_with_time, lease_for, may_grow_with_time, window_at
from messiahs.core.relay.reachability import avoid
from messiahs.core.state.lives import HeldPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim
from messiahs.core.task_filter.matching import time_limit_ns

_MISSING_AFTER_NS = 5 * SECOND
"""Age from which a bound attempt counts as missing if a renewal does not list it; a younger one may be in transit."""
_HELD = (Substate.SUSPENDED, Substate.VACATING)


def on_task_status(state: ModuleState, status: TaskStatus, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Accept and acknowledge results, answer a renewal, and fill the places that became free.

    A claim that is not (or no longer) held is ended.
    """
    claim = state.origin.claims.get(status.claim)
    if claim is None:
        return (SendControl(to=sender, message=ClaimEnd(claim=status.claim)),)
    if not claim.is_from_path(sender):
        return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(status.claim)),)
    note_heard(claim, now)
    note_status(claim, now)
    claim.unknown_since = None
    note_delivered(claim, status)
    claim.window = status.window
    window = window_at(state, claim)
    actions: list[Action] = []
    taken: list[AttemptId] = []
    unbound: list[AttemptId] = []
    for attempt_status in status.attempts:
        if attempt_status.attempt not in claim.bound:
            unbound.append(attempt_status.attempt)
            continue
        claim.listed[attempt_status.attempt] = None
        if attempt_status.attempt in state.origin.fetching:
            continue
        if attempt_status.state is TaskState.EXECUTING:
            actions.extend(_on_progress(state, claim, attempt_status, now))
        else:
            actions.extend(_on_ended(state, claim, explained(state, claim, attempt_status, now), taken, now))
    renewal = status.renewal
    if renewal and not is_needed(state, claim, now):
        claim.unanswered, renewal = renewal, 0
    if status.renewal:
        actions.extend(_on_renewal(state, claim, now, is_answered=renewal > 0))
    if taken or unbound or renewal:
        ack = TaskStatusAck(
            claim=status.claim,
            taken=tuple(taken),
            unbound=tuple(unbound),
            renewal=renewal,
            moving=tuple(each for each in claim.shape.moving if each in claim.bound) if renewal else (),
            lease_ns=claim.row.lease_ns if renewal and claim.row.is_foreign else 0,
        )
        actions.append(SendControl(to=claim.row.via, message=ack))
    await_status(state, claim, now)
    actions.extend(fill(state, claim, now))
    if window_at(state, claim).bit_length() > window.bit_length():
        # Searches leave out machines that have as many tasks as they may; this one has room again.
        actions.extend(search_everywhere(state, now))
    return tuple(actions)


def on_inputs_moving(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Postpone the moment at which tasks of a claim count as missing: their inputs are being sent."""
    claim = state.origin.claims.get(claim_id)
    if claim is not None:
        claim.moving_at = now
    return ()


def on_query_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Query the status of a claim after a long silence: a link or a system may have failed."""
    claim = state.origin.claims.get(claim_id)
    if claim is None:
        return ()
    await_status(state, claim, now)
    return (SendControl(to=claim.row.via, message=TaskStatusQuery(claim=claim_id, attempts=())),)


def on_held_lease_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Count the attempts of a claim as lost: by now its executor has ended them."""
    claim = state.origin.claims.get(claim_id)
    if claim is None:
        return ()
    actions: list[Action] = []
    claim.enter(HeldPhase.ENDING)
    if claim.bound and claim.unanswered:
        # It is heard, and has not ended them: it gets no task while others may take these.
        avoid(state, claim.row.machine, via=claim.row.via, is_final=False, now=now)
    for attempt in tuple(claim.bound):
        actions.extend(abandon_fetch(state, attempt))
        text = "its lease expired without a report"
        status = AttemptStatus(attempt=attempt, state=TaskState.REVOKED, cause=Cause.LOST, text=text)
        actions.extend(settle(state, claim, status, now))
    return (*actions, *fill(state, claim, now))


def on_claim_end(state: ModuleState, end: ClaimEnd, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Bind no more tasks to a claim whose executor accepts none; it ends with its last attempt.

    An executor that has forgotten the claim is queried by name for its bound attempts; it denies unknown ones
    permanently. If a hop has forgotten the claim, no answer comes, and the attempts are lost when the lease expires.
    """
    claim = state.origin.claims.get(end.claim)
    if claim is None:
        return ()
    if not claim.is_from_path(sender):
        return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(end.claim)),)
    claim.enter(HeldPhase.ENDING)
    if not end.is_forgotten:
        # A claim_end with `is_forgotten` may come from a hop.
        note_heard(claim, now)
    elif claim.unknown_since is None:
        claim.unknown_since = now
    yield_quantum(state, claim.shape, now)
    if not end.is_forgotten or not claim.bound:
        return fill(state, claim, now)
    query = TaskStatusQuery(claim=end.claim, attempts=tuple(claim.bound))
    return (SendControl(to=claim.row.via, message=query), *fill(state, claim, now))


def _on_progress(state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /) -> tuple[Action, ...]:
    row = state.origin.tasks[status.attempt.task]
    # Otherwise an executor that lets it run on loses it with its lease, and it is bound anew (not_after.py).
    is_counted = not row.is_cancelled and not is_bounded(claim)
    overdue = count(state, claim, status, now) if is_counted else None
    if overdue is not None:
        forget_clock(state, claim, status.attempt)
        row = replace(row, is_cancelled=True, result=overdue)
        state.origin.tasks[row.id] = row
        decision = Decision(what=overdue.cause, task=str(row.id), text=overdue.text)
        return (Store(row=row), decision, *kill(state, claim, (status.attempt,), now))
    stored: tuple[Action, ...] = ()
    if row.substate is not status.substate:
        stored = _on_other_substate(state, claim, status, now)
    if not row.is_cancelled:
        return stored
    # The kill was lost, or it arrived before the task did.
    return (*stored, *kill_again(state, claim, (status.attempt,)))


def _on_other_substate(
    state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /
) -> tuple[Action, ...]:
    """Record the substate of an attempt; acts of the machine's owner are added to the task's history.

    The start is stored: after a restart of this module, a later report would move it.
    """
    row = state.origin.tasks[status.attempt.task]
    was_held = row.substate in _HELD
    is_owners_act = was_held or status.substate in _HELD
    had_started = row.started_at is not None
    started_at = now if not had_started and status.substate is Substate.RUNNING else row.started_at
    row = with_suspension(row, is_suspended=status.substate is Substate.SUSPENDED, now=now)
    row = replace(row, substate=status.substate, started_at=started_at, assigned=status.assigned)
    if not is_owners_act or status.substate is None:
        # What else changes is not stored: after a restart the next renewal reports it again.
        state.origin.tasks[row.id] = row
        note_started(state, row, had_started=had_started)
        return (Store(row=row),) if started_at is not None and not had_started else ()
    event = status.substate.value if status.substate in _HELD else "resumed"
    entry = HistoryEntry(at=now, event=event, attempt=row.attempt, module=claim.row.id.executor, text=status.text)
    row = replace(row, history=longer(row.history, entry))
    state.origin.tasks[row.id] = row
    note_started(state, row, had_started=had_started)
    return (Store(row=row),)


def _on_ended(
    state: ModuleState, claim: HeldClaim, status: AttemptStatus, taken: list[AttemptId], now: Instant, /
) -> tuple[Action, ...]:
    row = state.origin.tasks[status.attempt.task]
    submission = state.origin.submissions[row.id.submission].row
    declared = outputs_of(submission, row.id)
    status, undeclared = accepted(
        status, declared, tdv=tdv_of(submission, row.id.member), most_bytes=state.identity.outputs_bytes
    )
    reports: tuple[Action, ...] = ()
    if undeclared:
        text = f"{status.attempt} at {claim.row.id.executor}: {undeclared[0][:80]!r}, {len(undeclared)} in all"
        reports = (Report(neighbor=claim.row.via, code=ReportCode.UNDECLARED_OUTPUT, text=text),)
    if any(output.size_bytes for output in status.outputs):
        state.origin.fetching[status.attempt] = status
        row = with_suspension(row, is_suspended=False, now=now)
        state.origin.tasks[row.id] = replace(row, substate=Substate.STAGING)
        return (*reports, fetch_action(state, claim, status))
    taken.append(status.attempt)
    return (*reports, *settle(state, claim, status, now))


def _extend(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    """Restart the lease, which grows with what the machine has delivered, as far as its tasks need a longer one."""
    claim.unanswered = 0
    if may_grow_with_time(state, claim, now) and do_all_run(state, claim, now):
        grow_with_time(state, claim, now)
    before, limit_ns = claim.row, time_limit_ns(claim.row.tdv)
    if limit_ns is None or limit_ns > before.lease_ns:
        claim.row = replace(before, lease_ns=lease_for(state, claim))
    watch_lease(state, claim, now)
    return (Store(row=claim.row),) if claim.row != before else ()


def _on_renewal(state: ModuleState, claim: HeldClaim, now: Instant, *, is_answered: bool) -> tuple[Action, ...]:
    """Restart the lease if it is answered, and send again or query the bound attempts that the renewal does not list.

    An attempt that its executor has never reported is sent again for the length of a lease: systems may have been down.
    A short lease does not shorten the time of a task stream that is not answered. After that, or if the executor
    refused it or reported it once, it is queried by name, which ends it. One that may be in transit is sent again once
    it has become old: the next renewal may be minutes away. A machine of another site gets the lease that it has
    earned.
    """
    stored = _extend(state, claim, now) if is_answered else ()
    listed, claim.listed = claim.listed, {}
    ages_ns = {
        attempt: now - max(bound_at, claim.moving_at or bound_at)
        for attempt, bound_at in claim.bound.items()
        # A result whose outputs are being fetched was listed, and need not be listed by each renewal.
        if attempt not in listed and attempt not in state.origin.fetching
    }
    late = [attempt for attempt, age_ns in ages_ns.items() if age_ns > _MISSING_AFTER_NS]
    is_one_in_transit = any(attempt in claim.unconfirmed and attempt not in late for attempt in ages_ns)
    if is_one_in_transit and state.timers.deadline_of(TimerKind.RESEND, claim.row.id) is None:
        state.timers.set(TimerKind.RESEND, claim.row.id, after(now, _MISSING_AFTER_NS))
    longest_ns = max(claim.row.lease_ns, CUT_NS if claim.stream_failure else 0)
    if claim.refusal is not None or claim.phase is HeldPhase.UNREACHABLE:
        longest_ns = 0
    late_ones = {each for each in late if each in claim.unconfirmed and ages_ns[each] <= longest_ns}
    again = [each for each in late if each in late_ones and not state.origin.tasks[each.task].is_cancelled]
    missing = tuple(attempt for attempt in late if attempt not in again)
    resent = send_tasks(state, claim, [bound_task(state, attempt) for attempt in again])
    if not missing:
        return (*stored, *resent)
    query = TaskStatusQuery(claim=claim.row.id, attempts=missing)
    return (*stored, *resent, SendControl(to=claim.row.via, message=query))
