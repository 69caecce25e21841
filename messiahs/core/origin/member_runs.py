"""Runs of members of a submission, so that a million members cost what one does.

Not in the papers.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId

Run = tuple[int, int]
"""Numbers of members, first and last; a single task is member 0."""


def run_of(row: SubmissionRow, task: TaskId) -> Run:
    """Return the members that an id names: a single one, or all of a submission."""
    return (task.member, task.member) if task.member or not row.members else (1, row.members)


def runs_among(members: Sequence[int]) -> list[Run]:
    """Group ascending numbers into runs."""
    if not members:
        return []
    gaps = [(before, after) for before, after in pairwise(members) if after != before + 1]
    firsts = [members[0], *(after for _, after in gaps)]
    lasts = [*(before for before, _ in gaps), members[-1]]
    return list(zip(firsts, lasts, strict=True))


def without(runs: Iterable[Run], out: Sequence[Run]) -> Iterator[Run]:
    """Yield what remains of runs without the members of others; `out` is ascending and has no member twice."""
    for run in runs:
        first, last = run
        place = bisect_left(out, first, key=itemgetter(1))
        while place < len(out) and out[place][0] <= last:
            if first < out[place][0]:
                yield first, out[place][0] - 1
            first = out[place][1] + 1
            place += 1
        if first <= last:
            yield first, last


def take(waiting: list[Run], *runs: Run) -> list[Run]:
    """Remove and return the members of runs that are among those waiting, in ascending runs."""
    wanted = merged(runs)
    taken = in_both(waiting, wanted)
    if taken:
        waiting[:] = without(tuple(waiting), wanted)
    return taken


def count_in(runs: Iterable[Run]) -> int:
    """Return the number of members in runs."""
    return sum(last - first + 1 for first, last in runs)


def merged(runs: Iterable[Run]) -> list[Run]:
    """Return runs in ascending order, without a member twice; adjacent ones become one."""
    found: list[Run] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def in_both(runs: Iterable[Run], others: Iterable[Run]) -> list[Run]:
    """Return the members that are in both, as ascending runs."""
    found: list[Run] = []
    within, place = merged(others), 0
    for first, last in merged(runs):
        while place < len(within) and within[place][0] <= last:
            begin, end = within[place]
            if end >= first:
                found.append((max(first, begin), min(last, end)))
            if end > last:
                break
            place += 1
    return found


def tasks_in(submission: TaskId, runs: Iterable[Run]) -> list[TaskId]:
    """Return the tasks of a submission that are in runs, in their order."""
    system, epoch, number, _ = submission
    # There may be a million, and `_replace` takes ten times as long.
    return [TaskId(system, epoch, number, member) for first, last in runs for member in range(first, last + 1)]
