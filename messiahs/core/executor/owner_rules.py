"""Applying the rules of a machine's owner to the attempts that run there (MESSIAHS 2; 5.3.2 task_status).

While any attempt runs, the rules are evaluated after every measurement, every second, and when a duration ends.
`rule_timing` decides which acts are due; this file performs them and reports each to the task's origin at once. An
attempt ended by a rule is revoked: its task is tried again elsewhere, and its shape gets no new places for a while.
"""

from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.executor.owner_acts import (
    CAUSES,
    Why,
    bar,
    end_action,
    end_for_owner,
    is_executing,
    restore_suspended,
    resume,
    revoke_for,
    suspend,
    why_of,
    why_of_dial,
)
from messiahs.core.executor.revocation import is_moving_out, revocation
from messiahs.core.executor.running_facts import running_attempts, running_queries
from messiahs.core.interface.actions import (
    Action,
    Answer,
    Decision,
    MeasureAttempts,
    ResumeAttempt,
    SendControl,
    SuspendAttempt,
)
from messiahs.core.interface.attempts import AttemptsMeasured
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import RevokeRequested
from messiahs.core.interface.messages import Substate
from messiahs.core.interface.policies import Act, RunningQuery, RunningRule
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant, after
from messiahs.core.state.executor import GrantedClaim, Guard
from messiahs.core.state.module import ModuleState
from messiahs.core.state.rule_timing import Due, Memory, Standing, acted, decide, next_evaluation
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.withheld import is_withheld_from

_EVALUATION_INTERVAL_NS = 1 * SECOND
_LENT_AGAIN = "its owner lends this machine again"
_SHORTEST_INTERVAL_NS = 50 * MILLISECOND
"""Attempts that start in quick succession are evaluated together."""


def expect_evaluation(state: ModuleState, now: Instant) -> None:
    """Schedule an evaluation of the rules soon: an attempt has started."""
    if state.policy.running or _reads_memory(state) or state.executor.is_withheld:
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
    is_concerned = rules or guards or _reads_memory(state) or state.executor.is_withheld
    running = running_attempts(state) if is_concerned else []
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
        actions.extend(_follow_dial(state, claim, attempt, now))
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
        if row is None or row.claim not in state.executor.claims or not is_executing(state, attempt):
            continue
        claim = state.executor.claims[row.claim]
        actions.append(Decision(what=CAUSES[act], task=str(attempt), text=text))
        end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=CAUSES[act], now=now)
        if bars:
            bar(state, claim, now)
        actions.extend(end_for_owner(state, claim, end, why=Why(text), now=now))
    return tuple(actions)


def barred_until(state: ModuleState, origin: SystemId, tdv: TDV, /, now: Instant) -> Instant | None:
    """Return until when tasks like one that was ended here a short while ago get no place; None if they do."""
    until = state.executor.revoked.get((origin, tdv))
    return until if until is not None and now < until else None


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
                restore_suspended(state, claim, attempt, is_withheld=False, now=now)
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
    return end_for_owner(state, claim, end, why=Why(revoked.text, is_of_rule=revoked.answers is None), now=now)


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


def _follow_dial(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...]:
    """Suspend an attempt that the policy lets run if the owner withholds the machine, and resume it afterwards."""
    guard, row = state.executor.guards[attempt], state.executor.attempts[attempt]
    if guard.memory.standing is not Standing.RUNNING or row.status.substate is Substate.VACATING:
        return ()
    if not is_withheld_from(state, claim.row.via):
        resumed = resume(state, claim, attempt, now)
        return (Decision(what=Act.RESUME, task=str(attempt), text=_LENT_AGAIN), *resumed) if resumed else ()
    why = why_of_dial(state, claim)
    if guard.suspended_at is not None and row.is_withheld and row.status.text == why.text:
        return ()
    decision = Decision(what=Act.SUSPEND, task=str(attempt), text=why.text)
    return (decision, *suspend(state, claim, attempt, why=why, now=now))


def _governs_suspension(rule: RunningRule) -> bool:
    return rule.act in (Act.SUSPEND, Act.RESUME) or (rule.act is Act.MOVE and rule.then is Act.SUSPEND)


def _resume_ungoverned(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant
) -> tuple[Action, ...]:
    """Resume an attempt that an earlier policy suspended, if no rule of this policy governs its suspension."""
    done = resume(state, claim, attempt, now)
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
            return suspend(state, claim, attempt, why=why_of(state, claim, due), now=now)
        case Act.RESUME:
            return resume(state, claim, attempt, now)
        case Act.VACATE | Act.KILL:
            return revoke_for(state, claim, attempt, due, now)
        case Act.MOVE:
            state.executor.guards[attempt].moving_text = why_of(state, claim, due).text
            return ()
