"""The end of tasks at their origin: one task with its result, or many that were never tried."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from messiahs.core.interface.actions import Action, Decision, Store, TaskEnded
from messiahs.core.interface.dependencies import Dependency, Predecessor
from messiahs.core.interface.ended_members import EndedMembers, UntriedEnd
from messiahs.core.interface.messages import Reason, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import untried_endings
from messiahs.core.origin.at_once import admit
from messiahs.core.origin.awaited import await_no_more, is_good_ending, note_ended
from messiahs.core.origin.how_ended import how_ended
from messiahs.core.origin.member_runs import Run, count_in, in_both, merged, runs_among, tasks_in, without
from messiahs.core.origin.notifications import note_end
from messiahs.core.origin.retention import note_ended as keep_for_now
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Submission


class WhyDenied(NamedTuple):
    """Why tasks were denied, and what the last search for their places has asked, if there was one."""

    reasons: tuple[Reason, ...] = ()
    search: SearchRecord | None = None


NO_DENIAL: Final = WhyDenied()
"""Of tasks that end otherwise."""


def end_task(state: ModuleState, row: TaskRow, final: TaskState, /, *, now: Instant) -> tuple[Action, ...]:
    """Store the final state of a task; the end of the last member also ends its submission."""
    assert final is not TaskState.EXECUTING
    row = replace(row, state=final, substate=None, claim=None, ended_at=now)
    live = state.origin.tasks.pop(row.id, None)
    submission, run = state.origin.submissions[row.id.submission], (row.id.member, row.id.member)
    had_started = live is not None and live.started_at is not None
    submission.started -= had_started
    submission.ended[ending_of(row)] += 1
    note_ended(state, submission, [run], is_good=has_ended_well(row), how=how_ended(row), had_started=had_started)
    admit(state, submission)
    decision = Decision(what=row.state, task=str(row.id), text=_summary(row))
    return (Store(row=row), decision, *_end_submission(state, row.id, now), TaskEnded(task=row.id))


def end_waiting(
    state: ModuleState,
    submission: TaskId,
    runs: Iterable[Run],
    /,
    *,
    final: TaskState,
    why: WhyDenied = NO_DENIAL,
    now: Instant,
) -> tuple[Action, ...]:
    """End members of a submission that were removed from its queue.

    Members that were never tried are stored as runs in the row of their submission: a million cost one row. A single
    one is stored as a row of its own, so that ending members one by one does not grow the submission.
    """
    among = merged(runs)
    tried = tried_in(state, submission, among)
    if count_in(among) == 1 and not tried:
        tried = [TaskRow(id=submission._replace(member=among[0][0]))]
    actions: list[Action] = []
    for row in tried:
        ended = replace(
            row, reasons=why.reasons, search=why.search or row.search, is_cancelled=final is TaskState.KILLED
        )
        actions.extend(end_task(state, ended, final, now=now))
    untried = list(without(among, runs_among([row.id.member for row in tried])))
    if untried:
        actions.extend(_end_untried(state, submission, untried, final, why=why, now=now))
    return tuple(actions)


def tried_in(state: ModuleState, submission: TaskId, runs: Iterable[Run], /) -> list[TaskRow]:
    """Return the rows of the members of a submission that were tried and have not ended, among ascending runs."""
    among, live = tuple(runs), state.origin.tasks
    if count_in(among) <= len(live):
        return [live[task] for task in tasks_in(submission, among) if task in live]
    members = in_both(among, runs_among(sorted(task.member for task in live if task.submission == submission)))
    return [live[task] for task in tasks_in(submission, members)]


def ending_of(row: TaskRow) -> tuple[TaskState, int | None]:
    """Return the state and the exit code with which a task ended."""
    return row.state, row.result.exit_code if row.result is not None else None


def ended_in(submission: SubmissionRow, stored: Collection[TaskRow]) -> Counter[tuple[TaskState, int | None]]:
    """Count how the tasks of a submission have ended that have; `stored` are all their rows."""
    ended = Counter(ending_of(row) for row in stored if row.state is not TaskState.EXECUTING)
    for state, count in untried_endings(submission, stored):
        ended[state, None] += count
    return ended


def has_ended_well(row: TaskRow) -> bool:
    """Return whether a task has ended well, as far as others wait for that."""
    return is_good_ending(*ending_of(row))


class MemberEnds(NamedTuple):
    """Members of an array with a stored row: those that have ended, with exit code 0 or not, and the others."""

    good: tuple[int, ...] = ()
    bad: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def ends_in(rows: Iterable[TaskRow]) -> MemberEnds:
    """Return how members have ended, by their rows."""
    good, bad, others = list[int](), list[int](), list[int]()
    for row in rows:
        kind = others if row.state is TaskState.EXECUTING else good if has_ended_well(row) else bad
        kind.append(row.id.member)
    return MemberEnds(tuple(good), tuple(bad), tuple(others))


def with_ends_of_members(dependency: Dependency, submission: SubmissionRow, ends: MemberEnds, /) -> Predecessor:
    """Return a dependency on each member of an array, with how those have ended that have.

    A million members that ended untried are as fast as one.
    """
    good, bad, others = (runs_among(sorted(members)) for members in ends)
    untried = without(((run.first, run.last) for run in submission.untried), merged((*good, *bad, *others)))
    return Predecessor(dependency=dependency, good=tuple(good), bad=tuple(sorted((*bad, *untried))))


def _end_untried(
    state: ModuleState, key: TaskId, runs: list[Run], final: TaskState, *, why: WhyDenied, now: Instant
) -> Iterator[Action]:
    submission, count = state.origin.submissions[key], count_in(runs)
    end = partial(UntriedEnd, state=final, ended_at=now, reasons=why.reasons, search=why.search)
    ends = (end(first=first, last=last) for first, last in runs)
    submission.row = replace(submission.row, untried=(*submission.row.untried, *ends))
    submission.ended[final, None] += count
    note_ended(state, submission, runs, is_good=False, how=how_ended(TaskRow(id=key, state=final)))
    admit(state, submission)
    yield Decision(what=final, task=str(key), text=f"{count} tasks that were never tried")
    yield from _end_submission(state, key, now) or (Store(row=submission.row),)
    yield TaskEnded(task=key)


def _end_submission(state: ModuleState, task: TaskId, now: Instant) -> tuple[Action, ...]:
    """End the submission of a task if no member of it remains."""
    key = task.submission
    submission = state.origin.submissions[key]
    if submission.open_members:
        return ()
    del state.origin.submissions[key]
    await_no_more(state, submission.row)
    state.timers.cancel(TimerKind.DEADLINE, key)
    row = replace(submission.row, ended_at=now, endings=_endings(submission))
    keep_for_now(state, row, now)
    endings = [ending for ending, count in submission.ended.items() if count]
    return (Store(row=row), *note_end(state, row, endings, now))


def _endings(submission: Submission) -> tuple[EndedMembers, ...]:
    """Return the final counts of an array; a single task has none, since its row holds the result."""
    if not submission.row.members:
        return ()
    return tuple(
        EndedMembers(state=state, exit_code=exit_code, count=count)
        for (state, exit_code), count in submission.ended.items()
        if count
    )


def _summary(row: TaskRow) -> str:
    result = row.result
    if result is None:
        return ""
    how = f"exit code {result.exit_code}" if result.exit_code is not None else f"signal {result.signal}"
    return f"{result.cause or how} on {row.executed_on}, attempt {row.attempt}"
