"""Arrays of which only some members may be placed or run at once; the others wait behind them (not in the papers).

Nothing about their order is stored: after a restart the bound members count first, and those with the lowest numbers
follow. The next member is queued in the step in which one ends or is put on hold, so that it can follow in the same
claim. A member whose attempt may still run counts until its end is known.
"""

from collections.abc import Iterable

from messiahs.core.model.ids import TaskId
from messiahs.core.origin.member_runs import Run, without
from messiahs.core.origin.shape_queue import add_members
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape, Submission


def line_up(state: ModuleState, submission: Submission, runs: Iterable[Run], /) -> tuple[Shape, ...]:
    """Queue members that may be placed, as far as their array allows, and return the shapes in which some wait now."""
    if not submission.row.at_once:
        return add_members(state, submission.row, runs)
    submission.behind[:] = sorted((*submission.behind, *runs))
    return _next_of(state, submission)


def admit(state: ModuleState, submission: Submission) -> None:
    """Queue the members that may follow after others have ended or were put on hold; their step places them."""
    if submission.behind:
        state.origin.admitted |= dict.fromkeys(shape.number for shape in _next_of(state, submission))


def is_behind(submission: Submission, member: int) -> bool:
    """Return whether a member waits until fewer others are placed or run."""
    return any(first <= member <= last for first, last in submission.behind)


def waits_behind(state: ModuleState, task: TaskId) -> bool:
    """Return whether a task waits until fewer others of its array are placed or run."""
    submission = state.origin.submissions.get(task.submission)
    return submission is not None and is_behind(submission, task.member)


def _next_of(state: ModuleState, submission: Submission) -> tuple[Shape, ...]:
    room = submission.row.at_once - submission.admitted
    taken: list[Run] = []
    for first, last in submission.behind:
        if room > 0:
            taken.append((first, min(last, first + room - 1)))
            room -= last - first + 1
    submission.behind[:] = without(tuple(submission.behind), taken)
    return add_members(state, submission.row, taken) if taken else ()
