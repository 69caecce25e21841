"""What the owner of a machine does to an attempt that runs there, and how its origin learns of it (MESSIAHS 2).

Rules of the policy (owner_rules.py) and the owner's dial (lending.py) suspend attempts and let them run again, and end
them; the administrator ends them by hand. Each act is stored and reported at once. What the policy wants of an attempt
stands in the memory of its guard: one that is suspended while its memory says that it runs is held by the dial alone.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from messiahs.core.executor.reports import status_actions
from messiahs.core.executor.suspended_attempts import reclaim_slots
from messiahs.core.interface.actions import Action, EndAttempt, ResumeAttempt, Store, SuspendAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.interface.policies import Act
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant, after
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import GrantedClaim, Guard
from messiahs.core.state.module import ModuleState
from messiahs.core.state.rule_timing import Due, Memory, Standing
from messiahs.core.task_filter.withheld import is_withheld_from, why_withheld

CAUSES: Final = {Act.KILL: Cause.REVOKED, Act.VACATE: Cause.VACATED}


class Why(NamedTuple):
    """Why the owner acts on an attempt: whether a rule provides this text for others, or the dial alone holds it."""

    text: str = ""
    is_of_rule: bool = False
    is_of_dial: bool = False


_NO_TEXT: Final = Why()


def suspend(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, *, why: Why, now: Instant
) -> tuple[Action, ...]:
    """Suspend an attempt, and return queued attempts of its claim: their places will be lent out."""
    guard = state.executor.guards[attempt]
    if guard.suspended_at is None:
        guard.suspended_at = now
        claim.suspended += 1
    mark_changed(state, now)
    reported = _report(state, claim, attempt, Substate.SUSPENDED, why=why)
    return (*reported, SuspendAttempt(attempt=attempt), *give_back_queued(state, claim))


def give_back_queued(state: ModuleState, claim: GrantedClaim) -> tuple[Action, ...]:
    """End the attempts of a claim that wait; one that has just started is subject to the rules once that is known."""
    queued = [each for each in claim.attempts if each not in claim.started and is_executing(state, each)]
    return tuple(EndAttempt(attempt=each, grace_ns=0, cause=Cause.VACATED, only_if_queued=True) for each in queued)


def resume(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, now: Instant) -> tuple[Action, ...] | None:
    """Resume an attempt if its slots are free; else keep them for it from now on, and return None.

    One from which the owner withholds the machine stays suspended, for that reason alone from now on.
    """
    guard = state.executor.guards[attempt]
    if guard.suspended_at is None:
        return ()
    if is_withheld_from(state, claim.row.via):
        if state.executor.attempts[attempt].is_withheld:
            return ()
        return _report(state, claim, attempt, Substate.SUSPENDED, why=why_of_dial(state, claim))
    if not reclaim_slots(state, claim, attempt, now):
        guard.is_waiting = True
        mark_changed(state, now)
        return None
    mark_changed(state, now)
    return (*_report(state, claim, attempt, Substate.RUNNING), ResumeAttempt(attempt=attempt))


def revoke_for(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, due: Due, now: Instant, /
) -> tuple[Action, ...]:
    """End an attempt as a rule that is due says, and grant no place to tasks like it for a while."""
    grace_ns = state.policy.timeouts.kill_grace_ns if due.grace_ns is None else due.grace_ns
    end = end_action(state, claim, attempt, grace_ns=grace_ns, cause=CAUSES[due.act], now=now)
    bar(state, claim, now)
    return end_for_owner(state, claim, end, why=why_of(state, claim, due), now=now)


def end_for_owner(
    state: ModuleState, claim: GrantedClaim, end: EndAttempt, /, *, why: Why, now: Instant
) -> tuple[Action, ...]:
    """End an attempt for the machine's owner, and report it to its origin."""
    mark_changed(state, now)
    return (*_report(state, claim, end.attempt, Substate.VACATING, why=why, cause=end.cause), end)


def end_action(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, *, grace_ns: int, cause: Cause, now: Instant
) -> EndAttempt:
    """Return the action that ends an attempt; a suspended one gets no grace if its slots are lent out."""
    is_awake = reclaim_slots(state, claim, attempt, now)
    if state.policy.running or state.executor.guards or state.executor.is_withheld:
        guard = state.executor.guards.setdefault(attempt, Guard(slots=claim.need.slots))
        guard.memory = replace(guard.memory, standing=Standing.VACATING, moving=None, moving_until=None)
    return EndAttempt(attempt=attempt, grace_ns=grace_ns if is_awake else 0, cause=cause)


def bar(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Grant no new places here to tasks like those of a claim for a while."""
    revoked = state.executor.revoked
    for key in [key for key, until in revoked.items() if until <= now]:
        del revoked[key]
    revoked[claim.row.origin, claim.row.tdv] = after(now, state.policy.timeouts.bar_ns)


def why_of(state: ModuleState, claim: GrantedClaim, due: Due, /) -> Why:
    """Return the reason as the origin may see it: the text of the rule, or for local users else the rule itself."""
    if due.rule.text:
        return Why(due.rule.text, is_of_rule=True)
    return Why(due.rule.rule) if claim.row.via == state.system else _NO_TEXT


def why_of_dial(state: ModuleState, claim: GrantedClaim) -> Why:
    """Return why the owner's dial holds the attempts of a claim."""
    return Why(why_withheld(state, claim.row.via), is_of_dial=True)


def restore_suspended(
    state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /, *, is_withheld: bool, now: Instant
) -> None:
    """Restore the suspended state of an attempt after a restart; the policy lets one run that `is_withheld`."""
    memory = Memory(standing=Standing.RUNNING if is_withheld else Standing.SUSPENDED)
    state.executor.guards[attempt] = Guard(slots=claim.need.slots, memory=memory, suspended_at=now)
    claim.suspended += 1


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
        is_withheld = guard.memory.standing is not Standing.SUSPENDED and is_withheld_from(state, claim.row.via)
        restore_suspended(state, claim, next_one, is_withheld=is_withheld, now=now)
        ended = state.executor.attempts[attempt].status
        why = Why(ended.text, ended.is_rule_text, is_of_dial=is_withheld)
        return _report(state, claim, next_one, Substate.SUSPENDED, why=why)
    claim.row = replace(claim.row, places=max(0, claim.row.places - 1))
    return (Store(row=claim.row),)


def is_executing(state: ModuleState, attempt: AttemptId) -> bool:
    """Return whether an attempt has not ended."""
    return state.executor.attempts[attempt].status.state is TaskState.EXECUTING


def _next_in_its_place(state: ModuleState, claim: GrantedClaim, attempt: AttemptId) -> AttemptId | None:
    """Return the attempt that may have started in the place of a suspended one, if all other places are taken."""
    guards = state.executor.guards
    unsuspended = [
        each
        for each in claim.attempts
        if each != attempt and is_executing(state, each) and (each not in guards or guards[each].suspended_at is None)
    ]
    if len(unsuspended) < claim.row.places - claim.suspended:
        return None
    return next((each for each in unsuspended if each not in claim.started), None)


def _report(
    state: ModuleState,
    claim: GrantedClaim,
    attempt: AttemptId,
    substate: Substate,
    /,
    *,
    why: Why = _NO_TEXT,
    cause: Cause = Cause.NONE,
) -> tuple[Action, ...]:
    """Store the substate of an attempt, and report it to its origin."""
    row = state.executor.attempts[attempt]
    status = replace(row.status, substate=substate, cause=cause, text=why.text, is_rule_text=why.is_of_rule)
    row = replace(row, status=status, is_withheld=why.is_of_dial)
    state.executor.attempts[attempt] = row
    claim.unreported.pop(attempt, None)
    return (Store(row=row), *status_actions(state, claim, (row.status,)))
