"""Tasks at their executor: accepting, starting, ending and reporting them (MESSIAHS 5.3.2, 5.3.3)."""

from dataclasses import replace

from messiahs.core.executor.allocation import assign
from messiahs.core.executor.claims import (
    SHRINK_NS,
    on_leaving_attempt_ended,
    regrow,
    retire,
)
from messiahs.core.executor.kept_results import as_kept, note_ended
from messiahs.core.executor.leases import answer_renewal
from messiahs.core.executor.limits_of_tasks import explained, limits_of, run_limit_ns
from messiahs.core.executor.local_ids import enter_row, new_id, row_of
from messiahs.core.executor.owner_acts import bar, end_action, forget_guard
from messiahs.core.executor.owner_rules import expect_evaluation, move_out
from messiahs.core.executor.quantum import end_quantum
from messiahs.core.executor.reports import REPORT_AFTER_NS, answer_actions, on_query_of_all, on_taken
from messiahs.core.executor.revocation import call_off
from messiahs.core.interface.actions import (
    Action,
    Decision,
    DiscardAttempt,
    Report,
    ReportCode,
    SendControl,
    StartAttempt,
    Store,
    SuspendAttempt,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import LOST_CAUSES, Cause
from messiahs.core.interface.messages import (
    AttemptStatus,
    BoundTask,
    ClaimEnd,
    Command,
    Substate,
    TaskKill,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
    TaskTransfer,
)
from messiahs.core.interface.policies import Accepted
from messiahs.core.interface.rows import AttemptRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.books import note_run
from messiahs.core.ledger.parties import asker_of
from messiahs.core.model.environments import environment_in
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.images import image_in
from messiahs.core.model.instants import Instant, after
from messiahs.core.model.neighbors import Relation
from messiahs.core.relay.byte_route import deny_transfer, may_access
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.acceptance import judge, refusal_of, summary_of
from messiahs.core.task_filter.containment import note_lacking, why_not_contained
from messiahs.core.task_filter.withheld import why_withheld

_HELD_LIMIT = 1_280
"""Attempts of one claim that have not ended."""
_ATTEMPT_LIMIT = 8_192
"""Attempts of one claim whose results the origin has not acknowledged yet."""


def on_task_transfer(
    state: ModuleState, transfer: TaskTransfer, *, sender: SystemId, key: bytes, now: Instant
) -> tuple[Action, ...]:
    """Accept tasks of a claim: each is judged by `accept` again; a task that is here already is only reported.

    `key` is the fingerprint of the sender's key. A sender without the right to the claim is told so at once: it may
    have another way.
    """
    claim = state.executor.claims.get(transfer.claim)
    if claim is None:
        return (Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(transfer.claim)),)
    if not may_access(claim.row, sender, key=key, ticket=transfer.ticket):
        return deny_transfer(transfer, sender, key=key)
    actions: list[Action] = [*answer_renewal(state, claim, 0), *regrow(state, claim, tasks=len(transfer.tasks))]
    # The answer is the same for all tasks of a claim, so the policy is asked once.
    refusal, why = _refusal(state, claim, now)
    if why:
        actions.append(Decision(what="refused", task=str(claim.row.id), text=why))
    statuses: list[AttemptStatus] = []
    for task in transfer.tasks:
        if not _may_hold(state, claim, task.attempt):
            actions.append(Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=str(task.attempt)))
            continue
        if task.attempt in claim.acknowledged:
            # It is late, or the origin restored an older copy of its database, and would wait without an answer.
            statuses.append(claim.acknowledged[task.attempt])
            continue
        row = row_of(state, claim.row.id, task.attempt)
        if row is None:
            row = _take(state, claim, task, refusal=_full(claim) or refusal, now=now)
            actions.append(Store(row=row))
            if row.status.state is TaskState.EXECUTING:
                actions.append(start_action(state, claim, row))
                continue
        statuses.append(row.status)
    actions.extend(answer_actions(state, claim, statuses))
    if claim.phase is GrantedPhase.SHRINKING:
        claim.enter(GrantedPhase.OPEN)
    state.timers.set(TimerKind.IDLE, claim.row.id, after(now, SHRINK_NS))
    mark_changed(state, now)
    return tuple(actions)


def start_action(state: ModuleState, claim: GrantedClaim, row: AttemptRow, /) -> StartAttempt:
    """Return the action that starts an attempt; a repeated start has no effect."""
    return StartAttempt(
        attempt=row.id,
        claim=claim.row.id,
        command=row.command,
        places=claim.row.places,
        limit_ns=run_limit_ns(state, claim),
        lease_until=claim.row.lease_until,
        limits=limits_of(state, claim),
        assigned=row.status.assigned,
        image=image_in(claim.row.tdv.pairs),
        account=claim.row.account,
        network=claim.row.network,
        environment=environment_in(claim.row.tdv.pairs),
    )


def on_attempt_started(state: ModuleState, event: AttemptStarted, now: Instant) -> tuple[Action, ...]:
    """Record the start of an attempt, and report it if the attempt runs for a while; a repeated event has no effect."""
    row = state.executor.attempts.get(event.attempt)
    claim = state.executor.claims.get(row.claim) if row is not None else None
    if row is None or claim is None or row.status.state is not TaskState.EXECUTING or event.attempt in claim.started:
        return ()
    claim.started[event.attempt] = now
    _note_wait(state, now - claim.attempts[event.attempt])
    expect_evaluation(state, now)
    guard = state.executor.guards.get(event.attempt)
    if guard is not None and guard.suspended_at is not None:
        # It started in the place of a suspended attempt, whose slots have been lent out.
        return (SuspendAttempt(attempt=event.attempt),)
    claim.unreported[event.attempt] = None
    # Not stored: after a restart the back end is asked which attempts are running.
    running = replace(row.status, substate=Substate.RUNNING)
    state.executor.attempts[event.attempt] = replace(row, status=running)
    if not state.timers.is_set(TimerKind.STATUS, row.claim):
        state.timers.set(TimerKind.STATUS, row.claim, after(now, REPORT_AFTER_NS))
    return ()


def on_attempt_ended(state: ModuleState, event: AttemptEnded, now: Instant) -> tuple[Action, ...]:
    """Keep the result until its origin acknowledges it, and report it at once (MESSIAHS 5.3.2 task_status).

    Results that arrive at the same instant are sent in one message.
    """
    row = state.executor.attempts.get(event.attempt)
    if row is None:
        return (DiscardAttempt(attempt=event.attempt),)
    if row.status.state is not TaskState.EXECUTING:
        return ()
    claim = state.executor.claims.get(row.claim)
    taken_by = claim or state.executor.released.get(row.claim)
    given_up = forget_guard(state, taken_by, event.attempt, now)
    # If the owner began the end, the reason is already in the row.
    row = replace(row, status=_status_of(explained(state, taken_by, event), row.status))
    if claim is not None:
        row = replace(row, status=as_kept(state, claim, row.status))
    state.executor.attempts[event.attempt] = row
    note_run(state, row.claim, event, now)
    note_lacking(state, taken_by, event, now)
    if claim is None:
        return on_leaving_attempt_ended(state, row, now)
    claim.live -= 1
    note_ended(state, claim, event.attempt)
    if not state.timers.is_set(TimerKind.IDLE, row.claim):
        state.timers.set(TimerKind.IDLE, row.claim, after(now, SHRINK_NS))
    if claim.started.pop(event.attempt, None) is None and not event.cause:
        _note_wait(state, max(0, now - claim.attempts[event.attempt] - event.ran_ns))
    if event.ran_ns > 0:
        claim.mean_run_ns = (3 * claim.mean_run_ns + event.ran_ns) // 4 if claim.mean_run_ns else event.ran_ns
    end_quantum(state, claim, now)
    mark_changed(state, now)
    claim.unreported[event.attempt] = None
    state.timers.set(TimerKind.STATUS, row.claim, now)
    return (Store(row=row), *given_up)


def on_task_status_ack(state: ModuleState, ack: TaskStatusAck, now: Instant) -> tuple[Action, ...]:
    """Forget acknowledged results, end attempts that are no longer bound, and extend the lease.

    An origin that still searches for places for attempts that may stay has missed a message, which is then repeated.
    """
    claim = state.executor.claims.get(ack.claim)
    if claim is None:
        return ()
    actions: list[Action] = []
    if ack.renewal:
        actions.extend(answer_renewal(state, claim, ack.renewal, lease_ns=ack.lease_ns))
    for attempt in (*ack.taken, *ack.unbound):
        row = row_of(state, ack.claim, attempt)
        if row is None:
            continue
        if row.status.state is TaskState.EXECUTING:
            actions.append(_end(state, claim, row.id, cause=Cause.UNBOUND, now=now))
        else:
            actions.extend(retire(state, claim, row.id))
    if ack.taken or ack.unbound:
        actions.extend(on_taken(state, claim))
    return (*actions, *call_off(state, claim, ack.moving))


def on_task_kill(state: ModuleState, kill: TaskKill, now: Instant) -> tuple[Action, ...]:
    """End attempts at the request of their origin; the final status follows (MESSIAHS 5.3.2 task_kill)."""
    claim = state.executor.claims.get(kill.claim)
    if claim is None:
        return ()
    actions: list[Action] = []
    if kill.is_barring:
        bar(state, claim, now)
    for attempt in kill.attempts:
        row = row_of(state, kill.claim, attempt)
        if row is None or row.status.state is not TaskState.EXECUTING:
            continue
        if kill.is_move:
            actions.extend(move_out(state, claim, row.id, now))
        else:
            actions.append(_end(state, claim, row.id, cause=Cause.KILLED, now=now))
    return tuple(actions)


def on_task_status_query(state: ModuleState, query: TaskStatusQuery, now: Instant) -> tuple[Action, ...]:
    """Report the named attempts, or without names all attempts of the claim (MESSIAHS 5.3.2).

    An unknown attempt is first stored as denied, since it may still be in transit: it never starts here. One message
    has as many of those stored as an origin can have bound; what else it names has no answer.
    """
    claim = state.executor.claims.get(query.claim)
    if claim is None:
        return ()
    if not query.attempts:
        return on_query_of_all(state, claim, now)
    actions: list[Action] = []
    statuses: list[AttemptStatus] = []
    for attempt in query.attempts:
        if len(actions) == _HELD_LIMIT or not _may_hold(state, claim, attempt):
            continue
        if attempt in claim.acknowledged:
            statuses.append(claim.acknowledged[attempt])
            continue
        row = row_of(state, claim.row.id, attempt)
        if row is None:
            row = _deny_permanently(state, claim, attempt, now)
            actions.append(Store(row=row))
        statuses.append(row.status)
    return (*actions, *answer_actions(state, claim, statuses))


def on_query_of_unknown_claim(state: ModuleState, query: TaskStatusQuery, *, sender: SystemId) -> tuple[Action, ...]:
    """Report attempts of a claim that has ended here as lost; without named attempts, report the end of the claim.

    No attempt can start under an unknown claim. An attempt that is still being ended, or that belongs to an earlier
    epoch of this module, is left out: for it the origin waits until its lease expires.
    """
    if not query.attempts:
        return (SendControl(to=sender, message=ClaimEnd(claim=query.claim, is_forgotten=True)),)
    statuses = tuple(
        AttemptStatus(attempt=attempt, state=TaskState.REVOKED, cause=Cause.LOST, text="its claim has ended")
        for attempt in query.attempts
        if row_of(state, query.claim, attempt) is None and query.claim.epoch == state.epoch
    )
    if not statuses:
        return ()
    return (SendControl(to=sender, message=TaskStatus(claim=query.claim, attempts=statuses, window=0)),)


def _may_hold(state: ModuleState, claim: GrantedClaim, attempt: AttemptId) -> bool:
    """Return whether an attempt can belong to this claim: it is a task of the claim's origin.

    Refused attempts are kept too, so the number of attempts that an origin may name is limited.
    """
    if attempt.task.system != claim.row.origin:
        return False
    is_here = attempt in claim.acknowledged or row_of(state, claim.row.id, attempt) is not None
    return is_here or len(claim.attempts) < _ATTEMPT_LIMIT


def _deny_permanently(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, now: Instant) -> AttemptRow:
    status = AttemptStatus(attempt=attempt, state=TaskState.DENIED, cause=Cause.NEVER_ARRIVED, text="it never arrived")
    return _entered(state, claim, Command(argv=()), status, now=now)


def _take(state: ModuleState, claim: GrantedClaim, task: BoundTask, *, refusal: str, now: Instant) -> AttemptRow:
    assigned = assign(state, claim) if not refusal else ()
    if assigned is None:
        refusal, assigned = "the counted things of the claim are in use", ()
    if refusal:
        # Stored, so that the attempt stays refused if it arrives again; its command would only make the row large.
        status = AttemptStatus(attempt=task.attempt, state=TaskState.DENIED, cause=Cause.REFUSED, text=refusal)
        return _entered(state, claim, Command(argv=()), status, now=now)
    status = AttemptStatus(attempt=task.attempt, state=TaskState.EXECUTING, substate=Substate.QUEUED, assigned=assigned)
    claim.live += 1
    return _entered(state, claim, task.command, status, now=now)


def _entered(
    state: ModuleState, claim: GrantedClaim, command: Command, status: AttemptStatus, *, now: Instant
) -> AttemptRow:
    row = AttemptRow(id=new_id(state, status.attempt), claim=claim.row.id, command=command, status=status)
    enter_row(state, row)
    claim.attempts[row.id] = now
    if status.state is not TaskState.EXECUTING:
        note_ended(state, claim, row.id)
    return row


def _full(claim: GrantedClaim) -> str:
    if claim.suspended and claim.live >= claim.row.places:
        return "tasks are suspended in the places of the claim"
    return "more tasks were bound to the claim than it may hold" if claim.live >= _HELD_LIMIT else ""


def _refusal(state: ModuleState, claim: GrantedClaim, now: Instant) -> tuple[str, str]:
    """Return the refusal text for the origin and the detailed reason for the local log.

    Both are empty if the tasks are accepted.
    """
    if claim.phase is GrantedPhase.EXPIRED:
        return "the claim has ended", ""
    if not claim.row.places:
        return "the places of the claim were given to others", ""
    if not state.has_space:
        return "the disk of the executor is full", ""
    if text := why_withheld(state, claim.row.via):
        return text, ""
    # It may have lost its sandboxes since it granted the claim.
    if text := why_not_contained(state, claim.row.tdv, is_foreign=claim.row.is_foreign, now=now):
        return text, ""
    via = state.neighbors.get(claim.row.via)
    relation = via.relation if via is not None else Relation.SELF
    asker = asker_of(state, claim.row.via, relation, now)
    verdict = judge(state, claim.row.tdv, asker, slots=0, now=now)
    if isinstance(verdict, Accepted):
        return "", ""
    return verdict.text or verdict.code, summary_of(refusal_of(state, claim.row.tdv, asker, verdict, slots=0, now=now))


def _note_wait(state: ModuleState, waited_ns: int) -> None:
    """Add the time that an attempt waited here for its start to the mean."""
    state.executor.mean_wait_ns += (waited_ns - state.executor.mean_wait_ns) // 8


def _end(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, *, cause: Cause, now: Instant) -> Action:
    grace_ns = state.policy.timeouts.kill_grace_ns
    return end_action(state, claim, attempt, grace_ns=grace_ns, cause=cause, now=now)


def _status_of(event: AttemptEnded, last: AttemptStatus) -> AttemptStatus:
    if event.cause is Cause.KILLED:
        state = TaskState.KILLED
    elif event.cause in LOST_CAUSES:
        state = TaskState.REVOKED
    elif event.cause or event.signal is not None:
        state = TaskState.ABORTED
    else:
        state = TaskState.FINISHED
    is_owners = last.substate is Substate.VACATING and not event.text
    return AttemptStatus(
        attempt=last.attempt,
        state=state,
        exit_code=event.exit_code,
        signal=event.signal,
        cause=event.cause,
        text=last.text if is_owners else event.text,
        is_rule_text=is_owners and last.is_rule_text,
        ran_ns=event.ran_ns,
        usage=event.usage,
        containment=event.containment,
        outputs=event.outputs,
        assigned=last.assigned,
    )
