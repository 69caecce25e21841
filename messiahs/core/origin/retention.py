"""Ended tasks are kept for the retention time of the policy, and then forgotten (not in the papers).

A submission is forgotten as a whole, once its last member has ended that long ago and none depends on it that has not
ended. Its own row goes first, so that from then on nobody finds it. The members of a large array follow in pages, with
pauses, so that other work goes on; a row of its own says so, and after a restart they continue.

Instants of one origin only grow, so neither the clock of an executor nor one that is set back matters. A machine that
was off, or whose clock was set ahead while it was, may find that the whole retention has passed: its tasks are then
kept for that long once more. So are those that ended under a release without retention.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, takewhile
from typing import Final

from messiahs.core.interface.actions import Action, Answer, Decision, DropOutputs, Forget, Store
from messiahs.core.interface.events import CleanRequested
from messiahs.core.interface.retention_rows import ForgettingRow
from messiahs.core.interface.rows import RowKind, SubmissionRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import MILLISECOND, Instant, after
from messiahs.core.origin.notifications import forget as forget_notification
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import EndedSubmission

PAGE: Final = 256
"""About how many rows are forgotten in one step."""
PAUSE_NS: Final = 50 * MILLISECOND
"""Time between two of these steps."""
SMALL_MEMBERS: Final = 64
"""An array of at most so many members is forgotten in one step."""


def note_open(state: ModuleState, row: SubmissionRow) -> None:
    """Note that a submission has not ended: those on which it depends are kept."""
    retention = state.origin.retention
    for table in (retention.ended, retention.needed, retention.due):
        table.pop(row.id, None)
    if row.after:
        retention.dependents.update(_predecessors(row))


def note_ended(state: ModuleState, row: SubmissionRow, now: Instant, /) -> None:
    """Note that a submission has ended, which other ones may have been kept for."""
    retention = state.origin.retention
    _enter(state, row)
    for on in _predecessors(row):
        retention.dependents[on] -= 1
        if not retention.dependents[on]:
            del retention.dependents[on]
            if on in retention.needed:
                retention.due[on] = retention.needed.pop(on)
    wake(state, now)


def restore(
    state: ModuleState,
    ended: Iterable[SubmissionRow],
    *,
    forgetting: Iterable[ForgettingRow],
    stored_at: Instant | None,
    now: Instant,
) -> tuple[Action, ...]:
    """Enter stored rows; `stored_at` is when the module last stored anything."""
    for row in sorted(ended, key=lambda row: (row.ended_at or 0, row.id)):
        _enter(state, row)
    retention, period_ns = state.origin.retention, state.policy.timeouts.retention_ns
    retention.forgetting.update({row.id: (1, row.members) for row in forgetting})
    has_passed = period_ns is not None and stored_at is not None and after(stored_at, period_ns) <= now
    actions: tuple[Action, ...] = ()
    if retention.ended and (state.counters.kept_since is None or has_passed):
        state.counters = replace(state.counters, kept_since=now)
        actions = (Store(row=state.counters),)
    wake(state, now)
    return actions


def has_key(state: ModuleState, key: ClientKey) -> bool:
    """Return whether a submission with a key is known; one that is part of a workflow has its `part_key`."""
    return key in state.origin.keys


def knows(state: ModuleState, submission: TaskId) -> bool:
    """Return whether a submission is there: it has not ended, or is not forgotten."""
    return submission in state.origin.submissions or ended_at(state, submission) is not None


def ended_at(state: ModuleState, submission: TaskId) -> Instant | None:
    """Return when a submission that is not forgotten has ended; None for any other one."""
    known = ended_submission(state, submission)
    return None if known is None else known.ended_at


def ended_submission(state: ModuleState, submission: TaskId) -> EndedSubmission | None:
    """Return what is known of a submission that has ended and is not forgotten; None for any other one."""
    retention = state.origin.retention
    tables = (retention.ended, retention.needed, retention.due)
    return next((table[submission] for table in tables if submission in table), None)


def ended_since(state: ModuleState, since: Instant, *, most: int) -> list[TaskId]:
    """Return the submissions that have ended since an instant and are not due to be forgotten, the latest first."""
    latest = reversed(state.origin.retention.ended.items())
    return list(islice((task for task, _ in takewhile(lambda each: each[1].ended_at >= since, latest)), most))


def wake(state: ModuleState, now: Instant) -> None:
    """Set the timer for what is forgotten next, by the present policy."""
    retention, at = state.origin.retention, None
    if retention.due or retention.forgetting:
        at = now
    elif retention.ended:
        at = _due_at(state, next(iter(retention.ended.values())))
    if at is None:
        state.timers.cancel(TimerKind.RETENTION, state.system)
        return
    if at <= now:
        # Whatever ends meanwhile does not postpone it.
        present = state.timers.deadline_of(TimerKind.RETENTION, state.system)
        at = min(after(now, PAUSE_NS), present if present is not None else after(now, PAUSE_NS))
    state.timers.set(TimerKind.RETENTION, state.system, at)


def on_policy_changed(state: ModuleState, now: Instant) -> None:
    """Let the retention time of another policy hold for all that is not forgotten yet."""
    retention = state.origin.retention
    if retention.needed or retention.due:
        known = {**retention.needed, **retention.due, **retention.ended}
        retention.ended = dict(sorted(known.items(), key=lambda each: (each[1].ended_at, each[0])))
        retention.needed.clear()
        retention.due.clear()
    wake(state, now)


def on_clean_requested(state: ModuleState, event: CleanRequested, now: Instant) -> tuple[Action, ...]:
    """Forget submissions at the request of a user; those that have not ended, or that others need, are left alone."""
    retention, actions = state.origin.retention, list[Action]()
    for task in event.tasks:
        if retention.dependents[task]:
            continue
        ended = [table.pop(task) for table in (retention.ended, retention.needed, retention.due) if task in table]
        for one in ended:
            actions.extend(forget(state, task, one, why="it was cleaned up", room=PAGE - len(actions)))
    wake(state, now)
    return (*actions, Answer(answer_to=event.answer_to))


def dependent_on(state: ModuleState, submission: TaskId) -> TaskId | None:
    """Return a submission that depends on another one and has not ended; None if there is none."""
    if not state.origin.retention.dependents[submission]:
        return None
    live = state.origin.submissions.items()
    return next((other for other, one in live if submission in _predecessors(one.row)), None)


def on_retention_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Forget about a page of rows of submissions that are due."""
    actions: list[Action] = []
    while len(actions) < PAGE:
        if state.origin.retention.forgetting:
            actions.extend(_forget_members(state, PAGE - len(actions)))
            continue
        found = _next_due(state, now)
        if found is None:
            break
        actions.extend(forget(state, *found, why="it ended long enough ago"))
    wake(state, now)
    return tuple(actions)


def forget(
    state: ModuleState, submission: TaskId, ended: EndedSubmission, /, *, why: str, room: int = SMALL_MEMBERS
) -> Iterator[Action]:
    """Forget a submission that has ended, and is in no table any more.

    The members of a large array follow later, and those of any array for which there is no `room` in this step.
    """
    if state.origin.keys.get(ended.key) == submission:
        del state.origin.keys[ended.key]
    yield Forget(key=(RowKind.SUBMISSION, submission))
    if ended.is_notified:
        yield from forget_notification(state, submission)
    if ended.members > max(0, min(SMALL_MEMBERS, room)):
        yield Store(row=ForgettingRow(id=submission, members=ended.members))
        state.origin.retention.forgetting[submission] = (1, ended.members)
    else:
        members = range(1, ended.members + 1) if ended.members else (0,)
        yield from (Forget(key=(RowKind.TASK, submission._replace(member=member))) for member in members)
    yield Decision(what="forgotten", task=str(submission), text=why)
    yield DropOutputs(submission=submission)


def _forget_members(state: ModuleState, most: int) -> Iterator[Action]:
    forgetting = state.origin.retention.forgetting
    submission, (first, last) = next(iter(forgetting.items()))
    end = min(first + most, last + 1)
    yield from (Forget(key=(RowKind.TASK, submission._replace(member=member))) for member in range(first, end))
    if end <= last:
        forgetting[submission] = (end, last)
        return
    del forgetting[submission]
    yield Forget(key=(RowKind.FORGETTING, submission))


def _next_due(state: ModuleState, now: Instant) -> tuple[TaskId, EndedSubmission] | None:
    """Take a submission that is to be forgotten from its table; None if there is none."""
    retention = state.origin.retention
    for table in (retention.due, retention.ended):
        while table:
            submission, ended = next(iter(table.items()))
            due_at = _due_at(state, ended)
            if table is retention.ended and (due_at is None or due_at > now):
                return None
            del table[submission]
            if not retention.dependents[submission]:
                return submission, ended
            retention.needed[submission] = ended
    return None


def _due_at(state: ModuleState, ended: EndedSubmission) -> Instant | None:
    period_ns, since = state.policy.timeouts.retention_ns, state.counters.kept_since
    return None if period_ns is None else after(max(ended.ended_at, since or ended.ended_at), period_ns)


def _enter(state: ModuleState, row: SubmissionRow) -> None:
    assert row.ended_at is not None
    state.origin.retention.ended[row.id] = EndedSubmission(
        key=row.key,
        members=row.members,
        ended_at=row.ended_at,
        workflow_size=row.workflow_size,
        is_notified=row.notification is not None,
    )


def _predecessors(row: SubmissionRow) -> list[TaskId]:
    return [dependency.on.submission for dependency in row.after]
