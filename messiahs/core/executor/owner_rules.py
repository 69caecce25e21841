"""What the rules of a machine's owner do to the attempts that run there (MESSIAHS 2; 5.3.2 task_status).

The rules are looked at whenever the machine was measured, every second, and when a duration ends, while anything runs.
`protecting` says what is due; here it is done, and told to the task's origin at once. What the owner's rules end is
revoked: its task is tried again elsewhere, and shapes of which a task was revoked get no new places for a while.
"""

from dataclasses import replace

from messiahs.core.executor.claims import status_actions
from messiahs.core.executor.revocation import is_moving_out, revocation
from messiahs.core.executor.running_facts import running_attempts, running_queries
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
from messiahs.core.task_filter.local_resources import wake

"""Causes: an owner's rule let an attempt vacate its machine, or killed it."""
_LOOK_NS = 1 * SECOND
_LEAST_NS = 50 * MILLISECOND
"""Attempts that start one after the other are looked at together."""
_PENALTY_NS = 60 * SECOND
"""How long a shape of which a task was revoked gets no new places here."""
_CAUSES = {Act.KILL: Cause.REVOKED, Act.VACATE: Cause.VACATED}


def expect_evaluation(state: ModuleState, now: Instant) -> None:
    """Look at the rules soon: an attempt has begun."""
    if state.policy.running or _reads_memory(state):
        evaluated_at = state.executor.evaluated_at
        at = now if evaluated_at is None else max(now, after(evaluated_at, _LEAST_NS))
        state.timers.set(TimerKind.OWNER_RULES, state.system, at)


def count_anew(state: ModuleState, now: Instant) -> None:
    """Count the durations of the rules of a new policy from now; what the old one has done stays done."""
    for guard in state.executor.guards.values():
        guard.memory = replace(guard.memory, since=())
    if running_attempts(state):
        state.timers.set(TimerKind.OWNER_RULES, state.system, now)


def on_evaluation(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Do what is due, have the memory measured if a rule asks for it, and look again after a while."""
    actions = look(state, now)
    running = tuple(attempt for _, attempt in running_attempts(state))
    if running and _reads_memory(state):
        return (*actions, MeasureAttempts(attempts=running))
    return actions


def on_attempts_measured(state: ModuleState, event: AttemptsMeasured, now: Instant) -> tuple[Action, ...]:
    """Note what memory attempts use, and do what is due for that."""
    for attempt, memory_bytes in event.memory:
        guard = state.executor.guards.get(attempt)
        if guard is not None:
            guard.mem_used = memory_bytes
    return look(state, now)


def look(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Do to every attempt that runs here what the policy's rules want done now.

    Those that are suspended come first, the longest of them before the others: they may want their slots back. Without
    any rules, whatever an earlier policy has suspended goes on.
    """
    rules, guards = state.policy.running, state.executor.guards
    running = running_attempts(state) if rules or guards or _reads_memory(state) else []
    if not running:
        return ()
    state.executor.evaluated_at = now
    actions: list[Action] = []
    next_at = after(now, _LOOK_NS)
    claims = {claim.row.id: claim for claim, _ in running}
    said = {claim_id: revocation(state, claim) for claim_id, claim in claims.items()}
    counts_waiting = any(rule.reads_waiting for rule in rules)
    queries = running_queries(state, running, here=own_facts(state, now), counts_waiting=counts_waiting, now=now)
    for (claim, attempt), query in zip(running, queries, strict=True):
        guard = guards.setdefault(attempt, Guard(slots=claim.need.slots))
        actions.extend(_look_at(state, claim, attempt, query, now=now))
        ends = next_evaluation(rules, guard.memory, now)
        next_at = next_at if ends is None else min(next_at, ends)
    state.timers.set(TimerKind.OWNER_RULES, state.system, next_at)
    for claim_id, before in said.items():
        revoked = revocation(state, claims[claim_id])
        if (revoked.attempts, revoked.answers) != (before.attempts, before.answers):
            actions.append(SendControl(to=claims[claim_id].row.via, message=revoked))
    return tuple(actions)


def on_revoke_requested(state: ModuleState, event: RevokeRequested, now: Instant) -> tuple[Action, ...]:
    """Revoke attempts on behalf of the administrator, as a rule of the policy would; their tasks go elsewhere.

    What has ended, or is nobody's any more and ends already, is passed over.
    """
    actions: list[Action] = [Answer(answer_to=event.answer_to)]
    act, grace_ns = (Act.KILL, 0) if event.kills else (Act.VACATE, state.policy.timeouts.kill_grace_ns)
    text = event.text or "the administrator of the machine revoked it"
    for attempt in event.attempts:
        row = state.executor.attempts.get(attempt)
        claim = state.executor.claims.get(row.claim) if row is not None else None
        if claim is None or not _is_executing(state, attempt):
            continue
        actions.append(Decision(what=_CAUSES[act], task=str(attempt), text=text))
        end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=_CAUSES[act], now=now)
        _bar(state, claim, now)
        actions.extend(_let_leave(state, claim, end, text=text, now=now))
    return tuple(actions)


def is_revoked(state: ModuleState, origin: SystemId, tdv: TDV, /, now: Instant) -> bool:
    """Say whether the owner's rules have ended a task of this origin and shape a short while ago."""
    until = state.executor.revoked.get((origin, tdv))
    return until is not None and now < until


def take_suspended(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> None:
    """Count an attempt as suspended that was so before a restart, whatever has become of it."""
    memory = Memory(standing=Standing.SUSPENDED)
    state.executor.guards[attempt] = Guard(slots=claim.need.slots, memory=memory, suspended_at=now)
    claim.suspended += 1


def take_up(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, *, suspended_ns: int | None, now: Instant
) -> tuple[Action, ...]:
    """Go on with an attempt that runs since before a restart: it stands as it was stored, whatever it does now.

    `suspended_ns` is how long it has been suspended, None if it is not.
    """
    status = state.executor.attempts[attempt].status
    expect_evaluation(state, now)
    match status.substate:
        case Substate.SUSPENDED:
            state.executor.guards[attempt].suspended_at = Instant(now - (suspended_ns or 0))
            return (SuspendAttempt(attempt=attempt),)
        case Substate.VACATING:
            if suspended_ns is not None:
                # It was not told before the restart, and its slots may be lent out.
                take_suspended(state, claim, attempt, now)
            # Which of the rules it was, nobody has stored; an executor that knows of an earlier end keeps to that.
            graces_ns = [rule.grace_ns or 0 for rule in state.policy.running]
            grace_ns = max(state.policy.timeouts.kill_grace_ns, *graces_ns, 0)
            return (end_action(state, claim, attempt, grace_ns=grace_ns, cause=Cause(status.cause), now=now),)
        case _:
            return () if suspended_ns is None else (ResumeAttempt(attempt=attempt),)


def move_out(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...]:
    """End an attempt for which its origin has another place; one that may stay by now does, and the origin is told."""
    if is_moving_out(state, attempt):
        return ()
    revoked = revocation(state, claim)
    if attempt not in revoked.attempts:
        return (SendControl(to=claim.row.via, message=revoked),)
    grace_ns = state.policy.timeouts.kill_grace_ns
    end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=Cause.MOVED, now=now)
    if revoked.answers is None:
        _bar(state, claim, now)
    return _let_leave(state, claim, end, text=revoked.text, now=now)


def forget_guard(
    state: ModuleState, claim: GrantedClaim | None, attempt: AttemptId, /, now: Instant
) -> tuple[Action, ...]:
    """Let go of what is known of an attempt that has ended; the place of one that was suspended is others' by now.

    If it ended before its executor heard that it is suspended, the next one may have begun in its place: that one is
    suspended instead.
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
        take_suspended(state, claim, next_one, now)
        return _tell(state, claim, next_one, Substate.SUSPENDED, text=state.executor.attempts[attempt].status.text)
    claim.row = replace(claim.row, places=max(0, claim.row.places - 1))
    return (Store(row=claim.row),)


def _next_in_its_place(state: ModuleState, claim: GrantedClaim, attempt: AttemptId) -> AttemptId | None:
    """Give the attempt that may have begun in the place of a suspended one, if the other places are taken."""
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
    """End an attempt; one that is suspended has no time to do so by itself if others have its slots."""
    can_hear = wake(state, claim, attempt, now)
    if state.policy.running or state.executor.guards:
        guard = state.executor.guards.setdefault(attempt, Guard(slots=claim.need.slots))
        guard.memory = replace(guard.memory, standing=Standing.VACATING, moving=None, moving_until=None)
    return EndAttempt(attempt=attempt, grace_ns=grace_ns if can_hear else 0, cause=cause)


def _reads_memory(state: ModuleState) -> bool:
    """Say whether any rule in force asks for the memory that tasks use."""
    policy = state.policy
    parts = policy.selection.reads_memory, policy.transfer.reads_memory, policy.migration.reads_memory
    return any(parts) or any(rule.reads_memory for rule in policy.running)


def _look_at(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, query: RunningQuery, /, *, now: Instant
) -> tuple[Action, ...]:
    guard, rules = state.executor.guards[attempt], state.policy.running
    guard.is_waiting = False
    if not rules:
        return _stand_alone(state, claim, attempt, now)
    actions: list[Action] = []
    if guard.memory.standing is Standing.SUSPENDED and not any(map(_governs_suspension, rules)):
        actions.extend(_resume_ungoverned(state, claim, attempt, now))
    # Each act changes how the attempt stands, so that a few are all there can be.
    for _ in Act:
        guard.memory, due = decide(rules, guard.memory, query, now)
        done = _perform(state, claim, attempt, due, now) if due is not None else None
        if due is None or done is None:
            break
        guard.memory = acted(guard.memory, due, now)
        actions.append(Decision(what=due.act, task=str(attempt), text=due.rule.rule))
        actions.extend(done)
    if guard.memory.moving is not None:
        _bar(state, claim, now)
    return tuple(actions)


def _stand_alone(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...]:
    """Let an attempt go on that an earlier policy had suspended, and stay where it wanted it to move."""
    done = _resume_ungoverned(state, claim, attempt, now)
    guard = state.executor.guards[attempt]
    guard.memory = Memory(standing=guard.memory.standing)
    return done


def _governs_suspension(rule: RunningRule) -> bool:
    return rule.act in (Act.SUSPEND, Act.RESUME) or (rule.act is Act.MOVE and rule.then is Act.SUSPEND)


def _resume_ungoverned(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant
) -> tuple[Action, ...]:
    """Resume an attempt that an earlier policy suspended if no rule of this one says how long it stays so."""
    done = _resume(state, claim, attempt, now)
    guard = state.executor.guards[attempt]
    if guard.memory.standing is Standing.SUSPENDED and done is not None:
        guard.memory = replace(guard.memory, standing=Standing.RUNNING)
    return done or ()


def _perform(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...] | None:
    """Do what is due; None if that is not possible now."""
    match due.act:
        case Act.SUSPEND:
            return _suspend(state, claim, attempt, due, now)
        case Act.RESUME:
            return _resume(state, claim, attempt, now)
        case Act.VACATE | Act.KILL:
            return _revoke(state, claim, attempt, due, now)
        case Act.MOVE:
            state.executor.guards[attempt].moving_text = _text(state, claim, due)
            return ()


def _suspend(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...]:
    """Stop an attempt, and give back what waits in its claim: its places are others' by the time they are free."""
    guard = state.executor.guards[attempt]
    if guard.suspended_at is None:
        guard.suspended_at = now
        claim.suspended += 1
    mark_changed(state, now)
    told = _tell(state, claim, attempt, Substate.SUSPENDED, text=_text(state, claim, due))
    queued = [each for each in claim.attempts if each not in claim.started and _is_executing(state, each)]
    # One of them may have begun a moment ago: it goes on, and the rules judge it once its start was reported.
    given_back = (EndAttempt(attempt=each, grace_ns=0, cause=Cause.VACATED, only_if_queued=True) for each in queued)
    return (*told, SuspendAttempt(attempt=attempt), *given_back)


def _resume(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...] | None:
    """Let an attempt go on, if its slots are free; else they are kept for it from now on."""
    guard = state.executor.guards[attempt]
    if guard.suspended_at is None:
        return ()
    if not wake(state, claim, attempt, now):
        guard.is_waiting = True
        mark_changed(state, now)
        return None
    mark_changed(state, now)
    return (*_tell(state, claim, attempt, Substate.RUNNING), ResumeAttempt(attempt=attempt))


def _revoke(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...]:
    grace_ns = state.policy.timeouts.kill_grace_ns if due.grace_ns is None else due.grace_ns
    end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=_CAUSES[due.act], now=now)
    _bar(state, claim, now)
    return _let_leave(state, claim, end, text=_text(state, claim, due), now=now)


def _let_leave(
    state: ModuleState, claim: GrantedClaim, end: EndAttempt, *, text: str, now: Instant
) -> tuple[Action, ...]:
    """End an attempt for its machine's owner, and say so to its origin."""
    mark_changed(state, now)
    return (*_tell(state, claim, end.attempt, Substate.VACATING, text=text, cause=end.cause), end)


def _bar(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Give tasks like those of a claim no new places here for a while."""
    revoked = state.executor.revoked
    for key in [key for key, until in revoked.items() if until <= now]:
        del revoked[key]
    revoked[claim.row.origin, claim.row.tdv] = after(now, _PENALTY_NS)


def _tell(
    state: ModuleState,
    claim: GrantedClaim,
    attempt: AttemptId,
    substate: Substate,
    /,
    *,
    text: str = "",
    cause: Cause = Cause.NONE,
) -> tuple[Action, ...]:
    """Store what an attempt does now, and say so to its origin."""
    row = state.executor.attempts[attempt]
    row = replace(row, status=replace(row.status, substate=substate, cause=cause, text=text))
    state.executor.attempts[attempt] = row
    claim.unreported.pop(attempt, None)
    return (Store(row=row), *status_actions(claim, (row.status,)))


def _text(state: ModuleState, claim: GrantedClaim, due: Due) -> str:
    """Give what an origin is told of the reason: a rule is its owner's, and only own users read it."""
    return due.rule.text or (due.rule.rule if claim.row.via == state.system else "")


def _is_executing(state: ModuleState, attempt: AttemptId) -> bool:
    return state.executor.attempts[attempt].status.state is TaskState.EXECUTING
