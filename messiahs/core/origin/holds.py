"""Tasks on hold at their origin: they are in no shape, so nothing searches for them, until they are released.

Not in the papers. A hold is stored in the row of the submission, as runs of members, so that it survives a restart and
a hold of a whole array costs one row. A running task may be on hold, too: that counts once it waits again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

from messiahs.core.interface.by_hand import HoldRun
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId
from messiahs.core.origin.at_once import admit, is_behind
from messiahs.core.origin.member_runs import Run, without
from messiahs.core.origin.shape_queue import add_again, shapes_with
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape, Submission

HOLD_LIMIT = 64
"""Runs of members on hold in one submission, which are stored in one row, and of which its status shows each."""


def hold_of(row: SubmissionRow, member: int) -> HoldRun | None:
    """Return the hold of a member (0 for a single task); None without one."""
    return next((hold for hold in row.holds if hold.first <= member <= hold.last), None)


def with_hold(row: SubmissionRow, hold: HoldRun, /) -> tuple[HoldRun, ...]:
    """Return the holds of a submission with another one, which replaces those of the same members.

    Without a reason it replaces no hold that has one. Neighbors with equal reasons become one, as old as the older one.
    """
    kept = () if hold.text else tuple(each for each in row.holds if each.text)
    cut = without_hold(replace(row, holds=tuple(each for each in row.holds if each not in kept)), [_run(hold)])
    added = _parts(hold, sorted(map(_run, kept)))
    holds: list[HoldRun] = []
    for each in sorted((*kept, *cut, *added), key=attrgetter("first")):
        if holds and holds[-1].last + 1 == each.first and holds[-1].text == each.text:
            holds[-1] = replace(holds[-1], last=each.last, since=min(holds[-1].since, each.since))
        else:
            holds.append(each)
    return tuple(holds)


def without_hold(row: SubmissionRow, runs: Sequence[Run], /) -> tuple[HoldRun, ...]:
    """Return the holds of a submission without those of some members, in ascending runs."""
    return tuple(part for hold in row.holds for part in _parts(hold, runs))


def too_many_holds(row: SubmissionRow, holds: tuple[HoldRun, ...]) -> str:
    """Return why a submission cannot have these holds; empty if it can."""
    if len(holds) <= max(HOLD_LIMIT, len(row.holds)):
        return ""
    text = f"at most {HOLD_LIMIT} parts of {row.id} can be on hold"
    return f"{text}: release the whole of it, or hold the whole of it with a reason"


def apart(submission: Submission, runs: Sequence[Run], /) -> list[Run]:
    """Set the waiting members aside that are on hold, and return the others; `runs` are ascending."""
    free = list(without(runs, sorted(map(_run, submission.row.holds))))
    set_aside(submission, without(runs, free))
    return free


def set_aside(submission: Submission, runs: Iterable[Run]) -> None:
    """Note waiting members that are on hold."""
    for first, last in runs:
        if submission.aside and submission.aside[-1][1] + 1 == first:
            submission.aside[-1] = (submission.aside[-1][0], last)
        else:
            submission.aside.append((first, last))


def is_aside(submission: Submission, member: int) -> bool:
    """Return whether a member waits on hold."""
    return any(first <= member <= last for first, last in submission.aside)


def is_open(state: ModuleState, submission: Submission, *, task: TaskId) -> bool:
    """Return whether a task has not ended; of a submission that is not all ended, one has not."""
    if not task.member or task in state.origin.tasks or is_aside(submission, task.member):
        return True
    if is_behind(submission, task.member):
        return True
    if any(first <= task.member <= last for first, last in submission.dependent):
        return True
    waiting = (run for shape in shapes_with(state, task) for run in shape.waiting)
    return any(run[0] == task.submission and run[1] <= task.member <= run[2] for run in waiting)


def held_in(submission: Submission) -> int:
    """Return how many members wait on hold."""
    return sum(last - first + 1 for first, last in submission.aside)


def queue_again(state: ModuleState, shape: Shape, task: TaskId, /) -> None:
    """Queue a task that was tried before in front of all others, or set it aside if it is on hold."""
    submission = state.origin.submissions[task.submission]
    if hold_of(submission.row, task.member) is None:
        add_again(state, shape, task)
    else:
        set_aside(submission, [(task.member, task.member)])
        admit(state, submission)


def _run(hold: HoldRun) -> Run:
    return hold.first, hold.last


def _parts(hold: HoldRun, out: Sequence[Run]) -> list[HoldRun]:
    """Return a hold of the same members, except those of some runs."""
    return [replace(hold, first=first, last=last) for first, last in without([_run(hold)], out)]
