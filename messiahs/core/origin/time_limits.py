"""The time limit of tasks as counted by their origin, so that an executor alone does not decide how long tasks run.

That is so where the lease does not bound it (not_after.py): at executors of the own site with longer leases.

The executor ends a task at its limit, counted from when the inputs are in place. It reports the task as running while
it copies them, so the origin adds time for that. A task reported as running for a tenth plus ten seconds longer is
aborted for its user, and killed as if it had been cancelled. The count is not stored, and it is cautious: it stops
while the task is reported as suspended, and restarts after a silence longer than the interval of renewals, since the
task may have been suspended meanwhile.
"""

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import AttemptStatus, Substate, TaskState, TaskStatusQuery
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, TaskId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.core.origin.array_members import command_of
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim
from messiahs.core.state.run_clock import RunClock
from messiahs.core.task_filter.matching import time_limit_ns

GRACE_NS = 10 * SECOND
COPYING_NS_PER_BYTE = 250
"""Allowed copying time of inputs: an executor copies at least 4 MB each second."""
ASK_AGAIN_NS = 1 * MINUTE


def note_status(claim: HeldClaim, now: Instant) -> None:
    """Record a report on a claim; after a long silence the counts of its attempts restart."""
    longest_ns = 2 * claim.row.lease_ns // RENEWALS_PER_LEASE
    if claim.status_at is not None and now - claim.status_at > longest_ns:
        claim.clocks.clear()
    claim.status_at = now


def count(state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /) -> AttemptStatus | None:
    """Count how long an attempt is reported as running, and return its end if that is too long."""
    limit_ns = allowed_ns(state, claim, status.attempt.task)
    if limit_ns is None:
        return None
    clock = claim.clocks.setdefault(status.attempt, RunClock())
    if status.substate is not Substate.RUNNING:
        if clock.since is not None:
            clock.ran_ns, clock.since = clock.ran_ns + now - clock.since, None
        return None
    if clock.since is None:
        clock.since = now
        state.timers.set(TimerKind.LIMIT, status.attempt.task, after(now, limit_ns - clock.ran_ns))
    ran_ns = clock.ran_ns + now - clock.since
    if ran_ns < limit_ns:
        return None
    text = "its executor let it run past its time limit"
    return AttemptStatus(
        attempt=status.attempt, state=TaskState.ABORTED, cause=Cause.TIME_LIMIT, text=text, ran_ns=ran_ns
    )


def on_limit_timeout(state: ModuleState, task: TaskId, now: Instant) -> tuple[Action, ...]:
    """Query the status of a task that should have ended by now; the answer decides."""
    row = state.origin.tasks.get(task)
    claim = state.origin.claims.get(row.claim) if row is not None and row.claim is not None else None
    if row is None or claim is None:
        return ()
    attempt = AttemptId(task, row.attempt)
    clock = claim.clocks.get(attempt)
    if clock is None or clock.since is None:
        return ()
    state.timers.set(TimerKind.LIMIT, task, after(now, ASK_AGAIN_NS))
    query = TaskStatusQuery(claim=claim.row.id, attempts=(attempt,))
    return (SendControl(to=claim.row.via, message=query),)


def forget_clock(state: ModuleState, claim: HeldClaim, attempt: AttemptId, /) -> None:
    """Stop counting the time of an attempt that has ended."""
    if claim.clocks.pop(attempt, None) is not None:
        state.timers.cancel(TimerKind.LIMIT, attempt.task)


def allowed_ns(state: ModuleState, claim: HeldClaim, task: TaskId, /) -> int | None:
    """Return how long an attempt may run as its origin counts it, in ns; None without a time limit."""
    limit_ns = time_limit_ns(claim.row.tdv)
    submission = state.origin.submissions.get(task.submission)
    if limit_ns is None or submission is None:
        return None
    inputs_bytes = sum(file.size_bytes for file in command_of(submission.row, task).inputs)
    return with_grace_ns(limit_ns) + COPYING_NS_PER_BYTE * inputs_bytes


def with_grace_ns(limit_ns: int) -> int:
    """Return a time limit with a tenth and the grace that its executor has for ending the task, in ns."""
    return limit_ns + limit_ns // 10 + GRACE_NS
