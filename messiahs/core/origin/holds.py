"""Tasks on hold at their origin: they are in no shape, so nothing searches for them, until they are released.

Not in the papers. A hold is stored in the row of the submission, as runs of members, so that it survives a restart and
a hold of a whole array costs one row. A running task may be on hold, too: that counts once it waits again.
"""

from collections.abc import Iterable, Iterator

from messiahs.core.interface.by_hand import HoldRun
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId
from messiahs.core.origin.shape_queue import add_again
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape, Submission

Run = tuple[int, int]
"""Numbers of members, first and last."""


def hold_of(row: SubmissionRow, member: int) -> HoldRun | None:
    """Return the hold of a member (0 for a single task); None without one."""
    return next((hold for hold in row.holds if hold.first <= member <= hold.last), None)


def with_hold(row: SubmissionRow, hold: HoldRun, /) -> tuple[HoldRun, ...]:
    """Return the holds of a submission with another one, which replaces those of the same members."""
    return (*without_hold(row, (hold.first, hold.last)), hold)


def without_hold(row: SubmissionRow, run: Run, /) -> tuple[HoldRun, ...]:
    """Return the holds of a submission without those of some members."""
    return tuple(
        HoldRun(first=first, last=last, since=hold.since, text=hold.text)
        for hold in row.holds
        for first, last in _without((hold.first, hold.last), run)
    )


def apart(submission: Submission, members: Iterable[int], /) -> Iterator[int]:
    """Yield the waiting members that are not on hold, and set the others aside."""
    row = submission.row
    for member in members:
        if row.holds and hold_of(row, member) is not None:
            set_aside(submission, member)
        else:
            yield member


def set_aside(submission: Submission, member: int) -> None:
    """Note a waiting member that is on hold."""
    if submission.aside and submission.aside[-1][1] + 1 == member:
        submission.aside[-1] = (submission.aside[-1][0], member)
    else:
        submission.aside.append((member, member))


def take_aside(submission: Submission, run: Run, /) -> list[int]:
    """Remove and return the members of a run that were set aside."""
    first, last = run
    taken = [member for begin, end in submission.aside for member in range(max(begin, first), min(end, last) + 1)]
    if taken:
        submission.aside[:] = [part for each in submission.aside for part in _without(each, run)]
    return sorted(taken)


def is_aside(submission: Submission, member: int) -> bool:
    """Return whether a member waits on hold."""
    return any(first <= member <= last for first, last in submission.aside)


def run_of(row: SubmissionRow, task: TaskId) -> Run:
    """Return the members that an id names: a single one, or all of a submission."""
    return (task.member, task.member) if task.member or not row.members else (1, row.members)


def queue_again(state: ModuleState, shape: Shape, task: TaskId, /) -> None:
    """Queue a task that was tried before in front of all others, or set it aside if it is on hold."""
    submission = state.origin.submissions[task.submission]
    if hold_of(submission.row, task.member) is None:
        add_again(state, shape, task)
    else:
        set_aside(submission, task.member)


def _without(run: Run, out: Run) -> tuple[Run, ...]:
    """Return the parts of a run that are outside of another one."""
    parts = ((run[0], min(run[1], out[0] - 1)), (max(run[0], out[1] + 1), run[1]))
    return tuple(part for part in parts if part[0] <= part[1])
