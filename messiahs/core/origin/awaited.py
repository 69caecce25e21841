"""Which submissions wait for others, and what has happened in this step to tasks for which some wait.

Not in the papers. These changes are handled at its end (dependencies.py), one after the other: a chain of tasks
that can never run may be long.
"""

from collections.abc import Collection, Iterable
from itertools import chain

from messiahs.core.interface.dependencies import Dependency, When
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import TaskId
from messiahs.core.origin.member_runs import Run, merged
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import AwaitedChange, Submission


def unmet(row: SubmissionRow) -> tuple[Dependency, ...]:
    """Return the dependencies of a submission whose conditions are not met."""
    return tuple(dependency for dependency in row.after if not dependency.is_met)


def waits_as_a_whole(row: SubmissionRow) -> bool:
    """Return whether no member of a submission may be placed yet: a condition is open, or outputs are not taken."""
    return awaits_outputs(row) or any(each.when != When.EACH for each in unmet(row))


def awaits_outputs(row: SubmissionRow) -> bool:
    """Return whether outputs of others have to become inputs of a submission before it is placed."""
    return not row.taken and any(each.outputs for each in row.after)


def arrays_of(row: SubmissionRow) -> tuple[TaskId, ...]:
    """Return the arrays for which a submission waits, or waited, member by member."""
    return tuple(dependency.on for dependency in row.after if dependency.when == When.EACH)


def await_others(state: ModuleState, submission: Submission, runs: Iterable[Run], /) -> None:
    """Let waiting members wait for the tasks on which their submission depends."""
    submission.dependent.extend(runs)
    for dependency in unmet(submission.row):
        _index_of(state, dependency).setdefault(dependency.on, {})[submission.row.id] = None


def await_no_more(state: ModuleState, row: SubmissionRow, /) -> None:
    """Forget what a submission waited for."""
    for dependency in row.after:
        index = _index_of(state, dependency)
        waiting = index.get(dependency.on, {})
        waiting.pop(row.id, None)
        if not waiting:
            index.pop(dependency.on, None)


def open_in(state: ModuleState, array: TaskId) -> list[Run]:
    """Return the members of an array that have not ended, as ascending runs."""
    submission = state.origin.submissions.get(array)
    if submission is None:
        return []
    queued = (run[1:] for shape in state.origin.shapes.values() for run in shape.waiting if run[0] == array)
    tried = ((task.member, task.member) for task in state.origin.tasks if task.submission == array)
    return merged(chain(queued, tried, submission.aside, submission.dependent, submission.behind))


def note_ended(
    state: ModuleState,
    submission: Submission,
    runs: Collection[Run],
    /,
    *,
    is_good: bool,
    how: str,
    had_started: bool = False,
) -> None:
    """Note that members of a submission have ended in one step, and are counted, if others wait for them or all of it.

    A single task is the run (0, 0); `how` says in words how each has ended. About the whole nothing is noted unless
    that may decide something: it has its first failure, or all of it has ended, or from now on no member is open that
    has not started.
    """
    key, count = submission.row.id, sum(last - first + 1 for first, last in runs)
    if key in state.origin.awaited_each:
        change = AwaitedChange(on=key, submission=submission, is_good=is_good, how=how, members=tuple(runs))
        state.origin.awaited_changes.append(change)
    if not state.origin.awaited:
        return
    if count == 1:
        ended = [key._replace(member=first) for first, _ in runs if first]
    else:
        of_it = (on for on in state.origin.awaited if on.submission == key)
        ended = [on for on in of_it if any(first <= on.member <= last for first, last in runs)]
    is_first_failure = not is_good and failures_in(submission) == count
    is_decided = is_first_failure or not submission.open_members or (not had_started and submission.has_all_started)
    _note(state, submission, chain(ended, (key,) if is_decided else ()), is_good=is_good, how=how)


def note_started(state: ModuleState, row: TaskRow, /, *, had_started: bool) -> None:
    """Count that a task has started, or has to start again; note it, if others wait for it, or for all of it."""
    submission, has_started = state.origin.submissions[row.id.submission], row.started_at is not None
    submission.started += has_started - had_started
    if has_started > had_started and state.origin.awaited:
        whole = (row.id.submission,) if submission.has_all_started else ()
        _note(state, submission, dict.fromkeys((row.id, *whole)), is_good=None)


def failures_in(submission: Submission) -> int:
    """Return how many members of a submission ended other than with exit code 0."""
    return sum(count for ending, count in submission.ended.items() if not is_good_ending(*ending))


def is_good_ending(state: TaskState, exit_code: int | None) -> bool:
    """Return whether a task that ended so has ended well."""
    return state is TaskState.FINISHED and exit_code == 0


def _index_of(state: ModuleState, dependency: Dependency) -> dict[TaskId, dict[TaskId, None]]:
    return state.origin.awaited_each if dependency.when == When.EACH else state.origin.awaited


def _note(
    state: ModuleState,
    submission: Submission,
    tasks: Iterable[TaskId],
    /,
    *,
    is_good: bool | None,
    how: str = "",
) -> None:
    for on in tasks:
        if on in state.origin.awaited:
            is_array = submission.row.members and not on.member
            change = AwaitedChange(on=on, submission=submission, is_good=is_good, how="" if is_array else how)
            state.origin.awaited_changes.append(change)
