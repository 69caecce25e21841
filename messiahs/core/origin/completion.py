"""The end of tasks at their origin: one task with its result, or many that were never tried."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from messiahs.core.interface.actions import Action, Decision, Store, TaskEnded
from messiahs.core.interface.dependencies import BadEnds, Dependency, Predecessor
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

RUNS_TOLD: Final = 4_096
"""Maximum number of runs of members for which it is told how each ended: a row may have to store a text for each."""


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
    """Members of an array with a stored row: those that have ended, with exit code 0 or not, and the others.

    The `bad` ones are in groups, each with the words for how its members ended; two groups may have the same words.
    """

    good: tuple[int, ...] = ()
    bad: tuple[tuple[str, tuple[int, ...]], ...] = ()
    others: tuple[int, ...] = ()


def ends_in(rows: Iterable[TaskRow]) -> MemberEnds:
    """Return how members have ended, by their rows."""
    good, bad, others = list[int](), dict[str, list[int]](), list[int]()
    for row in rows:
        if row.state is TaskState.EXECUTING:
            others.append(row.id.member)
        elif has_ended_well(row):
            good.append(row.id.member)
        else:
            bad.setdefault(how_ended(row), []).append(row.id.member)
    return MemberEnds(tuple(good), tuple((how, tuple(members)) for how, members in bad.items()), tuple(others))


def with_ends_of_members(dependency: Dependency, submission: SubmissionRow, ends: MemberEnds, /) -> Predecessor:
    """Return a dependency on each member of an array, with how those have ended that have.

    A million members that ended untried are as fast as one.
    """
    tried: dict[str, list[int]] = {}
    for how, members in ends.bad:
        tried.setdefault(how, []).extend(members)
    bad = {how: runs_among(sorted(members)) for how, members in tried.items()}
    good, others = runs_among(sorted(ends.good)), runs_among(sorted(ends.others))
    known = merged((*good, *others, *chain.from_iterable(bad.values())))
    hows = {
        state: how_ended(TaskRow(id=submission.id, state=state)) for state in {run.state for run in submission.untried}
    }
    for run in submission.untried:
        bad.setdefault(hows[run.state], []).extend(without([(run.first, run.last)], known))
    return Predecessor(dependency=dependency, good=tuple(good), bad=tuple(_bad_ends(bad)))


def _bad_ends(bad: Mapping[str, list[Run]]) -> Iterator[BadEnds]:
    """Yield the runs of members by how they ended, or all in one if these are too many."""
    if len(bad) > 1 and sum(map(len, bad.values())) > RUNS_TOLD:
        yield BadEnds(runs=tuple(merged(chain.from_iterable(bad.values()))))
        return
    for how, runs in bad.items():
        if runs:
            yield BadEnds(runs=tuple(sorted(runs)), how=how)


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
