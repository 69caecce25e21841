"""Applying the rules of a machine's owner to the attempts that run there (MESSIAHS 2; 5.3.2 task_status).

While any attempt runs, the rules are evaluated after every measurement, every second, and when a duration ends.
`rule_timing` decides which acts are due; this file performs them and reports each to the task's origin at once. An
attempt ended by a rule is revoked: its task is tried again elsewhere, and its shape gets no new places for a while.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from messiahs.core.executor.claims import status_actions
from messiahs.core.executor.revocation import is_moving_out, revocation
from messiahs.core.executor.running_facts import running_attempts, running_queries
from messiahs.core.executor.suspended_attempts import reclaim_slots
from messiahs.core.interface.actions import (
    Action,
    Answer,
    Decision,
    EndAttempt,
    MeasureAttempts,
    ResumeAttempt,
    SendControl,
    Store,
    SuspendAttempt,
)
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AttemptsMeasured, RevokeRequested
from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.interface.policies import Act, RunningQuery, RunningRule
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant, after
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import GrantedClaim, Guard
from messiahs.core.state.module import ModuleState
from messiahs.core.state.rule_timing import Due, Memory, Standing, acted, decide, next_evaluation
from messiahs.core.task_filter.local_facts import own_facts

_EVALUATION_INTERVAL_NS = 1 * SECOND
_SHORTEST_INTERVAL_NS = 50 * MILLISECOND
"""Attempts that start in quick succession are evaluated together."""
_CAUSES = {Act.KILL: Cause.REVOKED, Act.VACATE: Cause.VACATED}


class _Why(NamedTuple):
    """Why the owner acts on an attempt, and whether a rule provides this text for others."""

    text: str = ""
    is_of_rule: bool = False


_NO_TEXT = _Why()


def expect_evaluation(state: ModuleState, now: Instant) -> None:
    """Schedule an evaluation of the rules soon: an attempt has started."""
    if state.policy.running or _reads_memory(state):
        evaluated_at = state.executor.evaluated_at
        at = now if evaluated_at is None else max(now, after(evaluated_at, _SHORTEST_INTERVAL_NS))
        state.timers.set(TimerKind.OWNER_RULES, state.system, at)


def restart_durations(state: ModuleState, now: Instant) -> None:
    """Count the durations of a new policy's rules from now; acts of the old policy remain done."""
    for guard in state.executor.guards.values():
        guard.memory = replace(guard.memory, since=())
    if running_attempts(state):
        state.timers.set(TimerKind.OWNER_RULES, state.system, now)


def on_evaluation(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Perform the acts that are due, request a measurement of memory if a rule reads it, and schedule the next call."""
    actions = evaluate(state, now)
    running = tuple(attempt for _, attempt in running_attempts(state))
    if running and _reads_memory(state):
        return (*actions, MeasureAttempts(attempts=running))
    return actions


def on_attempts_measured(state: ModuleState, event: AttemptsMeasured, now: Instant) -> tuple[Action, ...]:
    """Record the memory that attempts use, and perform the acts that are due."""
    for attempt, memory_bytes in event.memory:
        guard = state.executor.guards.get(attempt)
        if guard is not None:
            guard.mem_used = memory_bytes
    return evaluate(state, now)


def evaluate(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Apply to every running attempt the acts that are due now.

    Suspended attempts come first, the longest suspended at the front: they may need their slots back. If the policy has
    no rules, attempts suspended by an earlier policy are resumed.
    """
    rules, guards = state.policy.running, state.executor.guards
    running = running_attempts(state) if rules or guards or _reads_memory(state) else []
    if not running:
        return ()
    state.executor.evaluated_at = now
    actions: list[Action] = []
    next_at = after(now, _EVALUATION_INTERVAL_NS)
    claims = {claim.row.id: claim for claim, _ in running}
    revocations = {claim_id: revocation(state, claim) for claim_id, claim in claims.items()}
    counts_waiting = any(rule.reads_waiting for rule in rules)
    queries = running_queries(state, running, here=own_facts(state, now), counts_waiting=counts_waiting, now=now)
    for (claim, attempt), query in zip(running, queries, strict=True):
        guard = guards.setdefault(attempt, Guard(slots=claim.need.slots))
        actions.extend(_evaluate_attempt(state, claim, attempt, query, now=now))
        ends = next_evaluation(rules, guard.memory, now)
        next_at = next_at if ends is None else min(next_at, ends)
    state.timers.set(TimerKind.OWNER_RULES, state.system, next_at)
    for claim_id, before in revocations.items():
        revoked = revocation(state, claims[claim_id])
        if (revoked.attempts, revoked.answers) != (before.attempts, before.answers):
            actions.append(SendControl(to=claims[claim_id].row.via, message=revoked))
    return tuple(actions)


def on_revoke_requested(state: ModuleState, event: RevokeRequested, now: Instant) -> tuple[Action, ...]:
    """Revoke attempts at the request of the administrator, as a rule would; their tasks are tried again elsewhere."""
    text, answer = event.text or "the administrator of the machine revoked it", Answer(answer_to=event.answer_to)
    return (answer, *revoke(state, event.attempts, kills=event.kills, bars=True, text=text, now=now))


def revoke(
    state: ModuleState, attempts: Iterable[AttemptId], *, kills: bool, bars: bool, text: str, now: Instant
) -> tuple[Action, ...]:
    """Revoke attempts, at once or with the policy's grace; if it `bars`, tasks like theirs get no place for a while.

    Attempts that have ended, or are being ended because their claim has, are skipped.
    """
    act, grace_ns = (Act.KILL, 0) if kills else (Act.VACATE, state.policy.timeouts.kill_grace_ns)
    actions: list[Action] = []
    for attempt in attempts:
        row = state.executor.attempts.get(attempt)
        if row is None or row.claim not in state.executor.claims or not _is_executing(state, attempt):
            continue
        claim = state.executor.claims[row.claim]
        actions.append(Decision(what=_CAUSES[act], task=str(attempt), text=text))
        end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=_CAUSES[act], now=now)
        if bars:
            bar(state, claim, now)
        actions.extend(_end_for_owner(state, claim, end, why=_Why(text), now=now))
    return tuple(actions)


def barred_until(state: ModuleState, origin: SystemId, tdv: TDV, /, now: Instant) -> Instant | None:
    """Return until when tasks like one that was ended here a short while ago get no place; None if they do."""
    until = state.executor.revoked.get((origin, tdv))
    return until if until is not None and now < until else None


def restore_suspended(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> None:
    """Restore the suspended state of an attempt after a restart."""
    memory = Memory(standing=Standing.SUSPENDED)
    state.executor.guards[attempt] = Guard(slots=claim.need.slots, memory=memory, suspended_at=now)
    claim.suspended += 1


def continue_after_restart(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, *, suspended_ns: int | None, now: Instant
) -> tuple[Action, ...]:
    """Continue with an attempt that has run since before a restart, in its stored state, whatever it does now.

    `suspended_ns` is how long it has been suspended, or None if it is not.
    """
    status = state.executor.attempts[attempt].status
    expect_evaluation(state, now)
    match status.substate:
        case Substate.SUSPENDED:
            state.executor.guards[attempt].suspended_at = Instant(now - (suspended_ns or 0))
            return (SuspendAttempt(attempt=attempt),)
        case Substate.VACATING:
            if suspended_ns is not None:
                # It was not informed before the restart, and its slots may be lent out.
                restore_suspended(state, claim, attempt, now)
            # The rule is not stored, so the longest grace applies; a back end that began the end keeps its own grace.
            graces_ns = [rule.grace_ns or 0 for rule in state.policy.running]
            grace_ns = max(state.policy.timeouts.kill_grace_ns, *graces_ns, 0)
            return (end_action(state, claim, attempt, grace_ns=grace_ns, cause=Cause(status.cause), now=now),)
        case _:
            return () if suspended_ns is None else (ResumeAttempt(attempt=attempt),)


def move_out(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...]:
    """End an attempt for which its origin has another place; if it may stay by now, inform the origin instead."""
    if is_moving_out(state, attempt):
        return ()
    revoked = revocation(state, claim)
    if attempt not in revoked.attempts:
        return (SendControl(to=claim.row.via, message=revoked),)
    grace_ns = state.policy.timeouts.kill_grace_ns
    end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=Cause.MOVED, now=now)
    if revoked.answers is None:
        bar(state, claim, now)
    return _end_for_owner(state, claim, end, why=_Why(revoked.text, is_of_rule=revoked.answers is None), now=now)


def forget_guard(
    state: ModuleState, claim: GrantedClaim | None, attempt: AttemptId, /, now: Instant
) -> tuple[Action, ...]:
    """Forget the owner-rule state of an attempt that has ended; the place of a suspended attempt is given up.

    If it ended before its suspension took effect, the next attempt may have started in its place: that one is suspended
    instead.
    """
    state.executor.offered.pop(attempt, None)
    guard = state.executor.guards.pop(attempt, None)
    if guard is None or guard.suspended_at is None or claim is None:
        return ()
    claim.suspended -= 1
    if claim.row.id not in state.executor.claims:
        claim.row = replace(claim.row, places=max(0, claim.row.places - 1))
        return ()
    next_one = _next_in_its_place(state, claim, attempt)
    if next_one is not None:
        restore_suspended(state, claim, next_one, now)
        ended = state.executor.attempts[attempt].status
        return _report(state, claim, next_one, Substate.SUSPENDED, why=_Why(ended.text, ended.is_rule_text))
    claim.row = replace(claim.row, places=max(0, claim.row.places - 1))
    return (Store(row=claim.row),)


def _next_in_its_place(state: ModuleState, claim: GrantedClaim, attempt: AttemptId) -> AttemptId | None:
    """Return the attempt that may have started in the place of a suspended one, if all other places are taken."""
    guards = state.executor.guards
    unsuspended = [
        each
        for each in claim.attempts
        if each != attempt and _is_executing(state, each) and (each not in guards or guards[each].suspended_at is None)
    ]
    if len(unsuspended) < claim.row.places - claim.suspended:
        return None
    return next((each for each in unsuspended if each not in claim.started), None)


def end_action(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, *, grace_ns: int, cause: Cause, now: Instant
) -> EndAttempt:
    """Return the action that ends an attempt; a suspended one gets no grace if its slots are lent out."""
    is_awake = reclaim_slots(state, claim, attempt, now)
    if state.policy.running or state.executor.guards:
        guard = state.executor.guards.setdefault(attempt, Guard(slots=claim.need.slots))
        guard.memory = replace(guard.memory, standing=Standing.VACATING, moving=None, moving_until=None)
    return EndAttempt(attempt=attempt, grace_ns=grace_ns if is_awake else 0, cause=cause)


def _reads_memory(state: ModuleState) -> bool:
    """Return whether any rule or part in force reads the memory that tasks use."""
    policy = state.policy
    parts = policy.selection.reads_memory, policy.transfer.reads_memory, policy.migration.reads_memory
    return any(parts) or any(rule.reads_memory for rule in policy.running)


def _evaluate_attempt(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, query: RunningQuery, /, *, now: Instant
) -> tuple[Action, ...]:
    guard, rules = state.executor.guards[attempt], state.policy.running
    guard.is_waiting = False
    if not rules:
        return _without_rules(state, claim, attempt, now)
    actions: list[Action] = []
    if guard.memory.standing is Standing.SUSPENDED and not any(map(_governs_suspension, rules)):
        actions.extend(_resume_ungoverned(state, claim, attempt, now))
    # Each act changes the standing of the attempt, so their number is bounded.
    for _ in Act:
        guard.memory, due = decide(rules, guard.memory, query, now)
        done = _perform(state, claim, attempt, due, now) if due is not None else None
        if due is None or done is None:
            break
        guard.memory = acted(guard.memory, due, now)
        actions.append(Decision(what=due.act, task=str(attempt), text=due.rule.rule))
        actions.extend(done)
    if guard.memory.moving is not None:
        bar(state, claim, now)
    return tuple(actions)


def _without_rules(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...]:
    """Resume an attempt that an earlier policy suspended, and cancel a move that it requested."""
    done, guard = _resume_ungoverned(state, claim, attempt, now), state.executor.guards[attempt]
    guard.memory = Memory(standing=guard.memory.standing)
    return done


def _governs_suspension(rule: RunningRule) -> bool:
    return rule.act in (Act.SUSPEND, Act.RESUME) or (rule.act is Act.MOVE and rule.then is Act.SUSPEND)


def _resume_ungoverned(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant
) -> tuple[Action, ...]:
    """Resume an attempt that an earlier policy suspended, if no rule of this policy governs its suspension."""
    done = _resume(state, claim, attempt, now)
    guard = state.executor.guards[attempt]
    if guard.memory.standing is Standing.SUSPENDED and done is not None:
        guard.memory = replace(guard.memory, standing=Standing.RUNNING)
    return done or ()


def _perform(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...] | None:
    """Perform an act that is due; None if that is not possible now."""
    match due.act:
        case Act.SUSPEND:
            return _suspend(state, claim, attempt, due, now)
        case Act.RESUME:
            return _resume(state, claim, attempt, now)
        case Act.VACATE | Act.KILL:
            return _revoke(state, claim, attempt, due, now)
        case Act.MOVE:
            state.executor.guards[attempt].moving_text = _why(state, claim, due).text
            return ()


def _suspend(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...]:
    """Suspend an attempt, and return queued attempts of its claim: their places will be lent out."""
    guard = state.executor.guards[attempt]
    if guard.suspended_at is None:
        guard.suspended_at = now
        claim.suspended += 1
    mark_changed(state, now)
    reported = _report(state, claim, attempt, Substate.SUSPENDED, why=_why(state, claim, due))
    queued = [each for each in claim.attempts if each not in claim.started and _is_executing(state, each)]
    # One of them may just have started: it continues, and is subject to the rules once its start is reported.
    given_back = (EndAttempt(attempt=each, grace_ns=0, cause=Cause.VACATED, only_if_queued=True) for each in queued)
    return (*reported, SuspendAttempt(attempt=attempt), *given_back)


def _resume(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...] | None:
    """Resume an attempt if its slots are free; else keep them for it from now on, and return None."""
    guard = state.executor.guards[attempt]
    if guard.suspended_at is None:
        return ()
    if not reclaim_slots(state, claim, attempt, now):
        guard.is_waiting = True
        mark_changed(state, now)
        return None
    mark_changed(state, now)
    return (*_report(state, claim, attempt, Substate.RUNNING), ResumeAttempt(attempt=attempt))


def _revoke(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...]:
    grace_ns = state.policy.timeouts.kill_grace_ns if due.grace_ns is None else due.grace_ns
    end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=_CAUSES[due.act], now=now)
    bar(state, claim, now)
    return _end_for_owner(state, claim, end, why=_why(state, claim, due), now=now)


def _end_for_owner(
    state: ModuleState, claim: GrantedClaim, end: EndAttempt, *, why: _Why, now: Instant
) -> tuple[Action, ...]:
    """End an attempt for the machine's owner, and report it to its origin."""
    mark_changed(state, now)
    return (*_report(state, claim, end.attempt, Substate.VACATING, why=why, cause=end.cause), end)


def bar(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Grant no new places here to tasks like those of a claim for a while."""
    revoked = state.executor.revoked
    for key in [key for key, until in revoked.items() if until <= now]:
        del revoked[key]
    revoked[claim.row.origin, claim.row.tdv] = after(now, state.policy.timeouts.bar_ns)


def _report(
    state: ModuleState,
    claim: GrantedClaim,
    attempt: AttemptId,
    substate: Substate,
    /,
    *,
    why: _Why = _NO_TEXT,
    cause: Cause = Cause.NONE,
) -> tuple[Action, ...]:
    """Store the substate of an attempt, and report it to its origin."""
    row = state.executor.attempts[attempt]
    status = replace(row.status, substate=substate, cause=cause, text=why.text, is_rule_text=why.is_of_rule)
    row = replace(row, status=status)
    state.executor.attempts[attempt] = row
    claim.unreported.pop(attempt, None)
    return (Store(row=row), *status_actions(claim, (row.status,)))


def _why(state: ModuleState, claim: GrantedClaim, due: Due) -> _Why:
    """Return the reason as the origin may see it: the text of the rule, or for local users else the rule itself."""
    if due.rule.text:
        return _Why(due.rule.text, is_of_rule=True)
    return _Why(due.rule.rule) if claim.row.via == state.system else _NO_TEXT


def _is_executing(state: ModuleState, attempt: AttemptId) -> bool:
    return state.executor.attempts[attempt].status.state is TaskState.EXECUTING
