"""Counting the attempts that cross a link: each once, by the messages that bring and report it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from messiahs.core.audit.rows import is_outdated, note_kept, numbered
from messiahs.core.border.pseudonyms import shown_submission, shown_user
from messiahs.core.border.sides import crosses, is_border, is_hidden
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed, CrossedTasks
from messiahs.core.interface.messages import TaskState, TaskStatus, TaskTransfer
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.state.audit import Audit, OpenRow, TasksKey
from messiahs.core.state.module import ModuleState

OPEN_LIMIT: Final = 1_024
"""Rows that may change; beyond it the neighbor with most of them has the one closed that it used least lately.

Its submission gets another one.
"""
_RUNNING_LIMIT: Final = 4_096
"""Attempts of one row that have not ended; further ones are counted when there is room, or when they end."""
_LATEST_LIMIT: Final = 1_024
_UNLISTED_LIMIT: Final = 16_384
"""Submissions with attempts that were brought and are in no row; a further one replaces the oldest."""
_MEMBER_BITS: Final = 32


_News = tuple[AttemptId, int, TaskState | None, int]
"""An attempt, the size of its inputs, its final state if it has ended, and the size of its outputs."""


def note_transfer(
    state: ModuleState, neighbor: SystemId, transfer: TaskTransfer, /, *, is_outward: bool, now: Instant
) -> tuple[Action, ...]:
    """Count the tasks that a message brings. The sizes of their inputs are in no later message, and stored at once."""
    news: list[_News] = []
    for task in transfer.tasks:
        inputs = task.command.inputs
        news.append((task.attempt, sum(file.size_bytes for file in inputs) if inputs else 0, None, 0))
    state.audit.is_due |= any(size for _, size, _, _ in news)
    closed = _note(state, neighbor, transfer.claim, news, is_outward=is_outward, now=now)
    if _pass_here(state, transfer.claim):
        for attempt, _, _, _ in news:
            key = (neighbor, is_outward, attempt.task.submission)
            row = state.audit.tasks.get(key)
            if row is not None and _number_of(attempt) not in row.running:
                _note_unlisted(state.audit, key, 1)
    return closed


def note_status(
    state: ModuleState, neighbor: SystemId, status: TaskStatus, /, *, is_outward: bool, now: Instant
) -> tuple[Action, ...]:
    """Count the tasks that a message reports, of which some may have been brought straight, and those that ended.

    A report of a claim whose tasks pass this border counts for those that were brought, and for no others; so does the
    answer for a claim that has ended here, whose origin may name tasks that never came.
    """
    news: list[_News] = []
    for each in status.attempts:
        final = None if each.state is TaskState.EXECUTING else each.state
        news.append((each.attempt, 0, final, sum(output.size_bytes for output in each.outputs) if each.outputs else 0))
    if _pass_here(state, status.claim) or not _is_known(state, status.claim):
        news = _brought(state.audit, (neighbor, is_outward), news)
    return _note(state, neighbor, status.claim, news, is_outward=is_outward, now=now)


def _pass_here(state: ModuleState, claim: ClaimId) -> bool:
    """Return whether this border lets the tasks of a claim reach their executor by way of itself only."""
    passed = state.hop.passed.get(claim)
    # A claim of an earlier release has no route, and its tasks go straight.
    return (
        passed is not None and passed.route is not None and crosses(state, passed.toward_origin, passed.toward_executor)
    )


def _is_known(state: ModuleState, claim: ClaimId) -> bool:
    return claim in state.hop.passed or claim in state.executor.claims or claim in state.origin.claims


def _brought(audit: Audit, way: tuple[SystemId, bool], news: Iterable[_News]) -> list[_News]:
    """Leave out attempts that were not brought: neither a row lists them, nor is one left that no row lists."""
    kept: list[_News] = []
    for each in news:
        key, number = (*way, each[0].task.submission), _number_of(each[0])
        row = audit.tasks.get(key)
        if row is None or not (number in row.running or number in row.latest):
            if key not in audit.unlisted:
                continue
            if row is None or each[2] is not None or len(row.running) < _RUNNING_LIMIT:
                _note_unlisted(audit, key, -1)
        kept.append(each)
    return kept


def _note_unlisted(audit: Audit, key: TasksKey, change: int) -> None:
    count = audit.unlisted.pop(key, 0) + change
    if count > 0:
        audit.unlisted[key] = count
    if len(audit.unlisted) > _UNLISTED_LIMIT:
        del audit.unlisted[next(iter(audit.unlisted))]


def restore(state: ModuleState, rows: Iterable[AuditRow]) -> None:
    """Count all stored rows, and enter those that may change."""
    rows = sorted(rows, key=lambda each: each.number)
    for row in rows:
        note_kept(state, row)
    for row in sorted((each for each in rows if not each.is_closed), key=lambda each: each.latest_at):
        assert row.tasks is not None, "only rows of tasks stay open"
        state.audit.tasks[row.neighbor, row.is_outward, row.tasks.submission] = _opened(row)


def _opened(row: AuditRow) -> OpenRow:
    tasks = row.tasks
    assert tasks is not None, "rows of tasks have them"
    return OpenRow(
        begun=row,
        latest_at=row.latest_at,
        count=row.count,
        input_bytes=tasks.input_bytes,
        output_bytes=tasks.output_bytes,
        ended=dict(tasks.ended),
        running=dict.fromkeys(tasks.running),
        latest=dict.fromkeys(tasks.latest),
    )


def _note(
    state: ModuleState,
    neighbor: SystemId,
    claim: ClaimId,
    news: Iterable[_News],
    /,
    *,
    is_outward: bool,
    now: Instant,
) -> tuple[Action, ...]:
    audit = state.audit
    for submission, group in groupby(news, key=lambda each: each[0].task[:3]):
        key, of_it = (neighbor, is_outward, TaskId(*submission)), tuple(group)
        row = audit.tasks.pop(key, None)
        if row is None and all(_was_refused(each) for each in of_it):
            continue
        is_changed = row is None
        if row is None:
            begun, counted = numbered(state, _new_row(state, key, claim, now))
            audit.waiting.extend(counted)
            row = _opened(begun)
        audit.tasks[key] = row
        for each in of_it:
            is_changed |= _count(row, each)
        if is_changed:
            row.latest_at = now
            audit.changed[key] = None
    return tuple(_within_limit(state))


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


def _count(row: OpenRow, news: _News) -> bool:
    """Count an attempt in its row; return whether that changes the row."""
    attempt, input_bytes, final, output_bytes = news
    number = _number_of(attempt)
    is_running = number in row.running
    is_new = not is_running and number not in row.latest
    if is_new and _was_refused(news):
        return False
    if is_new and (final is not None or len(row.running) < _RUNNING_LIMIT):
        row.count += 1
        row.input_bytes = min(INTEGER_HIGHEST, row.input_bytes + input_bytes)
        row.running[number] = None
    elif not is_running or final is None:
        return False
    if final is not None:
        del row.running[number]
        row.latest[number] = None
        if len(row.latest) > _LATEST_LIMIT:
            del row.latest[next(iter(row.latest))]
        row.ended[final] = row.ended.get(final, 0) + 1
        row.output_bytes = min(INTEGER_HIGHEST, row.output_bytes + output_bytes)
    return True


def _was_refused(news: _News) -> bool:
    """Return whether the executor of an attempt that was not counted before never took it."""
    return news[2] is TaskState.DENIED


def _number_of(attempt: AttemptId) -> int:
    """Return a number of 64 bits that identifies an attempt in its submission: both numbers have 32 on the wire."""
    return attempt.number << _MEMBER_BITS | attempt.task.member


def _within_limit(state: ModuleState) -> Iterator[Action]:
    audit = state.audit
    if len(audit.tasks) <= OPEN_LIMIT:
        return
    counts = Counter(neighbor for neighbor, _, _ in audit.tasks)
    while len(audit.tasks) > OPEN_LIMIT:
        most = max(counts, key=counts.__getitem__)
        key = next(each for each in audit.tasks if each[0] == most)
        counts[most] -= 1
        row = audit.tasks.pop(key).present()
        audit.changed.pop(key, None)
        assert row.tasks is not None, "rows of tasks have them"
        if is_border(state):
            _note_unlisted(audit, key, len(row.tasks.running))
        yield Forget(key=(RowKind.OPEN_AUDIT, row.number))
        if not is_outdated(state, row):
            yield Store(row=replace(row, tasks=replace(row.tasks, running=(), latest=()), is_closed=True))
