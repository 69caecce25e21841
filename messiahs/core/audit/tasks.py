"""Counting the attempts that cross a link: each once, by the messages that bring and report it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from messiahs.core.audit.rows import is_outdated, numbered
from messiahs.core.border.pseudonyms import shown_submission, shown_user
from messiahs.core.border.sides import is_hidden
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed, CrossedTasks
from messiahs.core.interface.messages import TaskState, TaskStatus, TaskTransfer
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.state.audit import TasksKey
from messiahs.core.state.module import ModuleState

OPEN_LIMIT: Final = 1_024
"""Rows that may change; beyond it the one used least lately is closed, and its submission gets another one."""
_RUNNING_LIMIT: Final = 4_096
"""Attempts of one row that have not ended; further ones are counted when there is room, or when they end."""
_LATEST_LIMIT: Final = 1_024
_MEMBER_BITS: Final = 32


@dataclass(slots=True)
class _Change:
    """What one message says about the attempts of one submission (mutable)."""

    brought: dict[AttemptId, int] = field(default_factory=dict)
    """Attempts with the sizes of their inputs."""
    ended: dict[AttemptId, tuple[TaskState, int]] = field(default_factory=dict)
    """Attempts with their final states and the sizes of their outputs."""


def note_transfer(
    state: ModuleState, neighbor: SystemId, transfer: TaskTransfer, /, *, is_outward: bool, now: Instant
) -> tuple[Action, ...]:
    """Count the tasks that a message brings."""
    changes: dict[TaskId, _Change] = {}
    for task in transfer.tasks:
        size = sum(file.size_bytes for file in task.command.inputs)
        changes.setdefault(task.attempt.task.submission, _Change()).brought[task.attempt] = size
    return _noted(state, neighbor, transfer.claim, changes, is_outward=is_outward, now=now)


def note_status(
    state: ModuleState, neighbor: SystemId, status: TaskStatus, /, *, is_outward: bool, now: Instant
) -> tuple[Action, ...]:
    """Count the tasks that a message reports, of which some may have been brought straight, and those that ended."""
    changes: dict[TaskId, _Change] = {}
    for each in status.attempts:
        change = changes.setdefault(each.attempt.task.submission, _Change())
        change.brought[each.attempt] = 0
        if each.state is not TaskState.EXECUTING:
            change.ended[each.attempt] = (each.state, sum(output.size_bytes for output in each.outputs))
    return _noted(state, neighbor, status.claim, changes, is_outward=is_outward, now=now)


def restore(state: ModuleState, rows: Iterable[AuditRow]) -> None:
    """Enter the stored rows that may change."""
    for row in sorted(rows, key=lambda each: each.latest_at):
        assert row.tasks is not None, "only rows of tasks stay open"
        state.audit.tasks[row.neighbor, row.is_outward, row.tasks.submission] = row


def _noted(
    state: ModuleState,
    neighbor: SystemId,
    claim: ClaimId,
    changes: dict[TaskId, _Change],
    /,
    *,
    is_outward: bool,
    now: Instant,
) -> tuple[Action, ...]:
    actions: list[Action] = []
    for submission, change in changes.items():
        key = (neighbor, is_outward, submission)
        before = state.audit.tasks.pop(key, None)
        row = before
        if row is None:
            row, counted = numbered(state, _new_row(state, key, claim, now))
            actions.extend(counted)
        state.audit.tasks[key] = after = _counted(row, change, now)
        if before is None or replace(after, latest_at=before.latest_at) != before:
            actions.append(Store(row=after))
    return (*actions, *_within_limit(state))


def _new_row(state: ModuleState, key: TasksKey, claim: ClaimId, now: Instant) -> AuditRow:
    neighbor, is_outward, submission = key
    user, home, is_shown = _whose(state, claim, neighbor)
    is_pseudonym = is_outward and is_shown
    passed = state.hop.passed.get(claim)
    hides_id = is_outward and passed is not None and passed.hides_origin
    tasks = CrossedTasks(
        submission=submission,
        user=user,
        shown_submission=shown_submission(state, submission) if hides_id else None,
        shown_user=shown_user(state, user, home=home, to=neighbor) if is_pseudonym else "",
    )
    return AuditRow(
        number=0,
        neighbor=neighbor,
        what=Crossed.TASKS,
        is_outward=is_outward,
        began_at=now,
        latest_at=now,
        tasks=tasks,
    )


def _whose(state: ModuleState, claim: ClaimId, neighbor: SystemId) -> tuple[str, SystemId, bool]:
    """Return the user of a claim's tasks, their origin, and whether the neighbor sees a pseudonym instead."""
    held, passed = state.origin.claims.get(claim), state.hop.passed.get(claim)
    granted = state.executor.claims.get(claim)
    if held is not None:
        stated, home, side = held.row.tdv.description(), state.system, state.system
    elif passed is not None:
        stated, home, side = passed.tdv.description(), passed.origin or SystemId(""), passed.toward_origin
    elif granted is not None:
        stated, home, side = granted.row.tdv.description(), granted.row.origin, granted.row.via
    else:
        return "", SystemId(""), False
    return str(stated.get("user", "")), home, is_hidden(state, side, viewer=neighbor)


def _counted(row: AuditRow, change: _Change, now: Instant) -> AuditRow:
    tasks = row.tasks
    assert tasks is not None, "rows of tasks have them"
    running, latest = dict.fromkeys(tasks.running), dict.fromkeys(tasks.latest)
    ended, count = Counter(dict(tasks.ended)), row.count
    input_bytes, output_bytes = tasks.input_bytes, tasks.output_bytes
    for attempt, size in change.brought.items():
        number = _number_of(attempt)
        is_new = number not in running and number not in latest
        if is_new and (attempt in change.ended or len(running) < _RUNNING_LIMIT):
            running[number] = None
            count, input_bytes = count + 1, input_bytes + size
    for attempt, (final, size) in change.ended.items():
        number = _number_of(attempt)
        if number in running:
            del running[number]
            latest[number] = None
            ended[final] += 1
            output_bytes += size
    noted = replace(
        tasks,
        ended=tuple(ended.items()),
        input_bytes=input_bytes,
        output_bytes=output_bytes,
        running=tuple(running),
        latest=tuple(latest)[-_LATEST_LIMIT:],
    )
    return replace(row, count=count, latest_at=now, tasks=noted)


def _number_of(attempt: AttemptId) -> int:
    """Return a number that identifies an attempt in its submission."""
    return attempt.number << _MEMBER_BITS | attempt.task.member


def _within_limit(state: ModuleState) -> Iterable[Action]:
    while len(state.audit.tasks) > OPEN_LIMIT:
        row = state.audit.tasks.pop(next(iter(state.audit.tasks)))
        assert row.tasks is not None, "rows of tasks have them"
        closed = replace(row, tasks=replace(row.tasks, running=(), latest=()), is_closed=True)
        yield Forget(key=(RowKind.OPEN_AUDIT, row.number))
        if not is_outdated(state, row):
            yield Store(row=closed)
