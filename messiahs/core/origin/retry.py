"""The request of a local user to run failed tasks once more, under their old ids (MESSIAHS 1).

Members of an array that failed before they were tried wait again as if they were new: a million cost what one does.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.interface.actions import Action, Answer, Decision, Store
from messiahs.core.interface.causes import OUTPUT_CAUSES, Cause
from messiahs.core.interface.dependencies import Predecessor
from messiahs.core.interface.ended_members import UntriedEnd
from messiahs.core.interface.events import RetryRequested
from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.instants import Instant
from messiahs.core.model.task_files import InputFile
from messiahs.core.origin.array_members import row_of
from messiahs.core.origin.cancellation import want_again
from messiahs.core.origin.completion import ended_in, ending_of
from messiahs.core.origin.dependencies import Judged, failure_of, first_failure_of, judged, queue, with_outcomes
from messiahs.core.origin.holds import too_many_holds, without_hold
from messiahs.core.origin.member_runs import Run, count_in, in_both, merged, runs_among, without
from messiahs.core.origin.retention import ended_at, knows
from messiahs.core.origin.submission import enter, not_stored, without_end
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Submission

GONE = "is no longer known here: submit it anew"
"""The end of the answer to a retry of tasks that are forgotten."""
RETRY_FIRST = "retry that first, then this"
"""The end of the answer to a retry of tasks that wait for others, which have failed."""
_OWN_EXITS = (Cause.NONE, Cause.NOT_FOUND, *OUTPUT_CAUSES)
"""Causes with which a task that has an exit code has exited by itself."""


def on_retry_requested(state: ModuleState, event: RetryRequested, now: Instant) -> tuple[Action, ...]:
    """Queue failed tasks for a next attempt, under their old ids; those that already run again are left alone.

    As long as an end is not stored, the row of the task still shows it as executing, or that of the submission is one
    from before: the retry is then refused.
    """
    key, live = event.submission.id, state.origin.tasks
    submission = state.origin.submissions.get(key)
    if not knows(state, key):
        return (Answer(answer_to=event.answer_to, problem=f"{key} {GONE}"),)
    is_older = submission is None and event.submission.ended_at != ended_at(state, key)
    if is_older or any(row.state is TaskState.EXECUTING and row.id not in live for row in event.tried):
        return (not_stored(event.answer_to, key),)
    present = event.submission if submission is None else submission.row
    first, last = event.members
    among = (row for row in event.tried if first <= row.id.member <= last)
    failed = failed_in(among, is_of_killed=event.is_of_killed)
    untried = _untried_in(state, present, event)
    if first == last:
        # It has a row of its own from now on: one by one, many would make a long row of their submission.
        failed += [row_of(present, key._replace(member=end.first)) for end in untried]
        untried = []
    again = [row for row in failed if row.id not in live]
    never_ran = merged((*_runs_of(row for row in again if not row.attempt), *map(_run, untried)))
    # A member that was tried has waited for its other one, which has ended well for ever.
    outcomes = judged(state, event.after, never_ran)
    if isinstance(outcomes, Predecessor):
        return (without_end(event.answer_to, outcomes),)
    members = merged((*_runs_of(again), *map(_run, untried)))
    # Holds are of the earlier tries; in a submission that has ended, all are.
    holds = () if submission is None else without_hold(submission.row, members)
    problem = _why_not_again(submission, outcomes) or (submission and too_many_holds(submission.row, holds))
    if problem:
        return (Answer(answer_to=event.answer_to, problem=problem),)
    actions: list[Action] = [
        Answer(answer_to=event.answer_to, task=key, count=len(failed) + count_in(map(_run, untried)))
    ]
    for row in failed:
        if row.id in live and live[row.id].is_cancelled:
            actions.extend(want_again(state, live[row.id]))
    if not members:
        return (*actions, *_with_other_inputs(submission, event)) if failed else tuple(actions)
    if submission is None:
        submission = _reopen(state, event)
    reopened = Counter(map(ending_of, again))
    for end in untried:
        reopened[end.state, None] += count_in([_run(end)])
    submission.ended -= reopened
    actions.extend(_waits_again(state, row) for row in again)
    left = _left(present, event) if untried else present.untried
    changed = with_inputs(submission.row, event.inputs, members=event.members)
    submission.row = replace(changed, holds=holds, after=with_outcomes(changed, outcomes), untried=left)
    if submission.row != present:
        actions.append(Store(row=submission.row))
    actions.append(Decision(what="retry", task=str(key), text=f"{count_in(members)} tasks"))
    return (*actions, *queue(state, submission, members, now=now))


def failed_in(tried: Iterable[TaskRow], *, is_of_killed: bool) -> list[TaskRow]:
    """Return the tasks with a row that a retry runs again: those that failed.

    With `is_of_killed`, only those that did not exit by themselves: a cancel, a limit, a signal or the system ended
    them.
    """
    failed = [row for row in tried if has_failed(row)]
    return [row for row in failed if _was_killed(row)] if is_of_killed else failed


def failed_untried_in(
    row: SubmissionRow, members: Run, *, stored: Iterable[int], is_of_killed: bool
) -> list[UntriedEnd]:
    """Return the members without a stored row, among some, that a retry runs again, as runs of how they ended."""
    known = runs_among(sorted(set(stored)))
    return [
        replace(end, first=first, last=last)
        for end in row.untried
        if _runs_again(end, is_of_killed=is_of_killed)
        for first, last in without(in_both([_run(end)], [members]), known)
    ]


def with_inputs(row: SubmissionRow, inputs: Iterable[InputFile], /, *, members: Run) -> SubmissionRow:
    """Return a submission with other content of inputs: of those that all share, and of those that `members` have.

    Names that it does not have are left out.
    """
    new = {file.name: file for file in inputs}
    if not new:
        return row

    def renewed(files: tuple[InputFile, ...]) -> tuple[InputFile, ...]:
        return tuple(new.get(file.name, file) for file in files)

    first, last = members
    own = tuple(renewed(files) if first <= place <= last else files for place, files in enumerate(row.member_inputs, 1))
    return replace(row, command=replace(row.command, inputs=renewed(row.command.inputs)), member_inputs=own)


def has_failed(row: TaskRow) -> bool:
    """Return whether a task ended other than with exit code 0; a task killed by its user counts as failed."""
    if row.state is TaskState.EXECUTING:
        return row.is_cancelled and not row.is_wanted_again
    is_good = row.result is not None and row.result.exit_code == 0 and not row.result.cause
    return not is_good or row.state is TaskState.KILLED


def _was_killed(row: TaskRow) -> bool:
    if row.state in (TaskState.EXECUTING, TaskState.KILLED):
        # It is known to have failed, so an executing one was cancelled or is overdue.
        return True
    if row.state is TaskState.DENIED:
        return False
    # A shell whose program was killed at a limit, or a program that handles SIGTERM, has an exit code all the same.
    return row.result is None or row.result.exit_code is None or row.result.cause not in _OWN_EXITS


def _untried_in(state: ModuleState, row: SubmissionRow, event: RetryRequested) -> list[UntriedEnd]:
    live = (task.member for task in state.origin.tasks if task.submission == row.id)
    stored = (*live, *(row.id.member for row in event.tried))
    return failed_untried_in(row, event.members, stored=stored, is_of_killed=event.is_of_killed)


def _left(row: SubmissionRow, event: RetryRequested) -> tuple[UntriedEnd, ...]:
    """Return what remains of the members that ended untried after those of a retry wait again."""
    left: list[UntriedEnd] = []
    for end in row.untried:
        is_kept = not _runs_again(end, is_of_killed=event.is_of_killed)
        runs = [_run(end)] if is_kept else without([_run(end)], [event.members])
        left.extend(replace(end, first=first, last=last) for first, last in runs)
    return tuple(left)


def _runs_again(end: UntriedEnd, *, is_of_killed: bool) -> bool:
    return end.state is TaskState.KILLED or not is_of_killed


def _with_other_inputs(submission: Submission | None, event: RetryRequested) -> tuple[Action, ...]:
    """Replace inputs for attempts that follow when others have ended; nothing is queued for that."""
    if submission is None or not event.inputs:
        return ()
    submission.row = with_inputs(submission.row, event.inputs, members=event.members)
    return (Store(row=submission.row),)


def _reopen(state: ModuleState, event: RetryRequested) -> Submission:
    row = event.submission
    ended = Counter({(end.state, end.exit_code): end.count for end in row.endings})
    reopened = replace(row, ended_at=None, deadline_at=None, endings=(), holds=())
    return enter(state, reopened, ended=ended or ended_in(row, event.tried), started=0)


def _waits_again(state: ModuleState, row: TaskRow) -> Store:
    waiting = replace(
        row,
        state=TaskState.EXECUTING,
        substate=Substate.QUEUED,
        is_cancelled=False,
        is_wanted_again=False,
        failures=0,
        result=None,
        reasons=(),
        executed_on="",
        started_at=None,
        suspended_ns=0,
        ended_at=None,
    )
    state.origin.tasks[row.id] = waiting
    return Store(row=waiting)


def _why_not_again(submission: Submission | None, outcomes: list[Judged]) -> str:
    # While some of its members have not ended, the submission itself waits on, or waits no more.
    failure = first_failure_of(outcomes) or (failure_of(outcomes) if submission is None else "")
    return failure and f"{failure}: {RETRY_FIRST}"


def _runs_of(rows: Iterable[TaskRow]) -> list[Run]:
    return runs_among(sorted(row.id.member for row in rows))


def _run(end: UntriedEnd) -> Run:
    return end.first, end.last
