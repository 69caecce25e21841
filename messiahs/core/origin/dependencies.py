"""Tasks that wait for other tasks of their origin (not in the papers).

A submission states its dependencies once, on tasks that exist, so there are no cycles. Its tasks are in no shape, and
nothing searches for them, until each condition was met once; that is stored in its row. Where an array waits for
another one member by member, nothing is stored for a member: it waits as long as the other one has not ended. The step
in which a task ends also decides about those that wait for it, so both are stored in one transaction, and no restart
comes in between. A task whose condition can never be met is denied (`dependency_failed`).

A submission that takes outputs of others waits on when these have ended: the host makes the outputs its inputs, and
answers (`OutputsTaken`). Until its row has them, a restart asks the host anew.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from messiahs.core.interface.actions import Action, Decision, Store, TakeOutputs
from messiahs.core.interface.dependencies import DEPENDENCY_FAILED, BadEnds, Dependency, Outcome, Predecessor, When
from messiahs.core.interface.limits import MEMBER_LIMIT
from messiahs.core.interface.messages import DenyCode, Reason, TaskState
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.model.ids import TaskId
from messiahs.core.model.input_size import with_more_inputs
from messiahs.core.model.instants import Instant
from messiahs.core.origin.at_once import line_up
from messiahs.core.origin.awaited import (
    arrays_of,
    await_no_more,
    await_others,
    awaits_outputs,
    failures_in,
    open_in,
    unmet,
    waits_as_a_whole,
)
from messiahs.core.origin.completion import WhyDenied, end_waiting
from messiahs.core.origin.holds import apart, is_open
from messiahs.core.origin.how_ended import how_some_ended
from messiahs.core.origin.member_runs import Run, in_both, merged, run_of, take, without
from messiahs.core.origin.placement import place
from messiahs.core.origin.rounds import search_each
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import AwaitedChange, Shape, Submission


class Judged(NamedTuple):
    """A dependency, which says whether it is met, and whether it can be: by all, or not by the members in `failed`.

    If it cannot by any, `how` says in words how its task ended, as far as that is known.
    """

    dependency: Dependency
    outcome: Outcome
    failed: tuple[BadEnds, ...] = ()
    how: str = ""


FAILED_TEXT: Final = "did not end with exit code 0"


def judged(
    state: ModuleState, predecessors: Iterable[Predecessor], runs: Iterable[Run], /
) -> list[Judged] | Predecessor:
    """Return dependencies with their present outcomes, or one whose task has ended in a way that is not known.

    `runs` are the members that have to wait with `EACH` for those with their numbers.
    """
    members, outcomes = tuple(runs), list[Judged]()
    for each in predecessors:
        found = _each_present(state, each, members) if each.dependency.when == When.EACH else _present(state, each)
        if found is None:
            return each
        outcomes.append(found)
    return outcomes


def failure_of(outcomes: Iterable[Judged]) -> str:
    """Return which condition can never be met by any member, as text; empty if all can."""
    failed = (each for each in outcomes if each.outcome is Outcome.FAILED)
    return next((failed_text(each.dependency.on, each.how) for each in failed), "")


def failed_text(on: TaskId | str, how: str, /) -> str:
    """Return that a task did not end well, and how it ended, in words; empty if that is not known."""
    return f"{on} {FAILED_TEXT}" + (f" ({how})" if how else "")


def first_failure_of(outcomes: Iterable[Judged]) -> str:
    """Return which condition can never be met by some member, as text; empty if all can."""
    firsts = ((each.dependency.on, min(each.failed, key=attrgetter("runs"))) for each in outcomes if each.failed)
    return next((_members_text(on, first.runs[:1], first.how) for on, first in firsts), "")


def with_outcomes(row: SubmissionRow, outcomes: Iterable[Judged]) -> tuple[Dependency, ...]:
    """Return the dependencies of a submission of which members run again; but for `EACH`, what was met stays met."""
    found = {(each.dependency.on, each.dependency.when): each.dependency for each in outcomes}
    present = ((each, found.get((each.on, each.when), each)) for each in row.after)
    return tuple(replace(each, is_met=now.is_met and (each.is_met or each.when != When.EACH)) for each, now in present)


def queue(
    state: ModuleState, submission: Submission, runs: list[Run], /, *, outcomes: Iterable[Judged] = (), now: Instant
) -> tuple[Action, ...]:
    """Let members wait for the tasks on which their submission depends, or else for a place, as far as not on hold.

    Those whose conditions can never be met, by the `outcomes`, are denied.
    """
    outcomes = tuple(outcomes)
    if not _waits(submission.row) and not any(each.failed or each.outcome is Outcome.FAILED for each in outcomes):
        shapes = line_up(state, submission, apart(submission, runs))
        return search_each(state, shapes, now)
    await_others(state, submission, runs)
    return decide_awaiting(state, submission, runs, outcomes=outcomes, now=now)


def decide_awaiting(
    state: ModuleState, submission: Submission, runs: list[Run], /, *, outcomes: Iterable[Judged], now: Instant
) -> tuple[Action, ...]:
    """Deny those members that wait for others in vain, by the `outcomes`, and queue those that need not wait."""
    outcomes = tuple(outcomes)
    if failure := failure_of(outcomes):
        return _deny(state, submission, [run_of(submission.row, submission.row.id)], failure, now)
    denied = (_deny_each(state, submission, each.dependency.on, each.failed, now) for each in outcomes if each.failed)
    actions = list(chain.from_iterable(denied))
    released: dict[int, Shape] = {}
    if submission.row.id in state.origin.submissions:
        actions.extend(_release(state, submission, None, runs, released))
    return (*actions, *search_each(state, released.values(), now))


def settle(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Handle the changes of awaited tasks in this step: place those that waited for them, and deny those in vain.

    The members that others of their array have let in are placed, too.
    """
    actions = _place_admitted(state, now)
    return (*actions, *_settle_awaited(state, now)) if state.origin.awaited_changes else actions


def has_changed(state: ModuleState) -> bool:
    """Return whether something is left to settle in this step."""
    return bool(state.origin.awaited_changes or state.origin.admitted)


def _place_admitted(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    numbers, state.origin.admitted = state.origin.admitted, {}
    shapes = [shape for number in numbers if (shape := state.origin.shapes_by_number.get(number)) is not None]
    return tuple(action for shape in shapes for action in place(state, shape, now))


def _settle_awaited(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Deny first, then place: a member that waits for two others does not run if both end, and the second one badly."""
    actions: list[Action] = []
    ready: list[tuple[Submission, TaskId | None, tuple[Run, ...]]] = []
    # Tasks that are denied meanwhile add changes of their own.
    for change in state.origin.awaited_changes:
        index = state.origin.awaited_each if change.members else state.origin.awaited
        for key in tuple(index.get(change.on, ())):
            submission = state.origin.submissions[key]
            if not change.members:
                actions.extend(_on_change(state, submission, change, now))
                ready.append((submission, None, (run_of(submission.row, key),)))
            elif change.is_good:
                ready.append((submission, change.on, change.members))
            else:
                failed = (BadEnds(runs=change.members, how=change.how),)
                actions.extend(_deny_each(state, submission, change.on, failed, now))
                ready.append((submission, change.on, ()))
    state.origin.awaited_changes.clear()
    shapes: dict[int, Shape] = {}
    for submission, on, runs in ready:
        if submission.row.id in state.origin.submissions:
            actions.extend(_release(state, submission, on, runs, shapes))
    return (*actions, *search_each(state, shapes.values(), now))


def waiting_in(state: ModuleState, row: SubmissionRow, runs: Iterable[Run], /) -> list[Run]:
    """Return which members of a submission that is restored wait for others, among those without an attempt."""
    among = list(runs)
    if waits_as_a_whole(row):
        return among
    return in_both(among, (run for on in arrays_of(row) for run in open_in(state, on)))


def take_outputs(submission: Submission, /) -> Iterator[Action]:
    """Let the host take the outputs for which a submission waits, once, if nothing else has to happen before."""
    after = submission.row.after
    if submission.is_taking or not awaits_outputs(submission.row) or not all(each.is_met for each in _for_all(after)):
        return
    submission.is_taking = True
    yield TakeOutputs(submission=submission.row.id, after=tuple(each for each in after if each.outputs))


def on_outputs_taken(state: ModuleState, event: OutputsTaken, now: Instant) -> tuple[Action, ...]:
    """Add the outputs of others to the inputs of the tasks that waited for them, and queue these; or deny them all.

    A denied one keeps its wish, so that a retry asks for the same outputs.
    """
    submission = state.origin.submissions.get(event.submission)
    if submission is None or not awaits_outputs(submission.row):
        return ()
    submission.why_not_taken = event.delay
    if event.delay:
        return ()
    submission.is_taking = False
    row = submission.row
    runs = [run_of(row, row.id)]
    if event.problem:
        return _deny(state, submission, runs, event.problem, now)
    command = replace(row.command, inputs=(*row.command.inputs, *event.inputs))
    tdv = with_more_inputs(row.tdv, command.inputs)
    submission.row = replace(row, tdv=tdv, command=command, taken=len(event.inputs))
    return (Store(row=submission.row), *decide_awaiting(state, submission, runs, outcomes=(), now=now))


def _waits(row: SubmissionRow) -> bool:
    return awaits_outputs(row) or bool(unmet(row))


def _for_all(after: Iterable[Dependency]) -> Iterator[Dependency]:
    return (each for each in after if each.when != When.EACH)


def _on_change(state: ModuleState, submission: Submission, change: AwaitedChange, /, now: Instant) -> Iterator[Action]:
    how = change.how or _how_of(change.submission)
    outcomes = [Judged(each, _after_change(state, each, change), how=how) for each in submission.row.after]
    failure = failure_of(outcomes)
    if failure:
        yield from _deny(state, submission, [run_of(submission.row, submission.row.id)], failure, now)
        return
    after = tuple(replace(each.dependency, is_met=each.outcome is Outcome.MET) for each in outcomes)
    yield from _with_after(state, submission, after)


def _with_after(state: ModuleState, submission: Submission, after: tuple[Dependency, ...], /) -> Iterator[Action]:
    """Note which conditions are met; nothing is done if nothing has changed."""
    if after == submission.row.after:
        return
    await_no_more(state, submission.row)
    submission.row = replace(submission.row, after=after)
    await_others(state, submission, ())
    yield Store(row=submission.row)


def _release(
    state: ModuleState,
    submission: Submission,
    on: TaskId | None,
    runs: Iterable[Run],
    shapes: dict[int, Shape],
    /,
) -> Iterator[Action]:
    """Queue those members that wait for no task any more, among some for which `on` has ended well.

    Once none waits for others, all conditions are met. Outputs of others are taken first, for all members.
    """
    row = submission.row
    if waits_as_a_whole(row):
        yield from take_outputs(submission)
        return
    # What has ended well remains so, and those for which the other one has failed were denied.
    blocked = [run for array in arrays_of(row) if array != on for run in open_in(state, array)]
    free = list(without(in_both(submission.dependent, runs), merged(blocked)))
    take(submission.dependent, *free)
    if not submission.dependent:
        yield from _with_after(state, submission, tuple(replace(each, is_met=True) for each in row.after))
    if free:
        tasks = row.id._replace(member=free[0][0]) if free[0][0] == free[-1][1] else row.id
        yield Decision(what="released", task=str(tasks), text="all that it waited for has happened")
    for shape in line_up(state, submission, apart(submission, free)):
        shapes[shape.number] = shape


def _deny_each(
    state: ModuleState, submission: Submission, on: TaskId, failed: tuple[BadEnds, ...], now: Instant, /
) -> Iterator[Action]:
    """Deny the waiting members for which those of an array with their numbers did not end well.

    What waits is searched once, however many ways there are in which they ended.
    """
    taken = take(submission.dependent, *(run for each in failed for run in each.runs))
    others = list(without([run_of(submission.row, submission.row.id)], taken))
    for each in failed:
        runs = list(without(each.runs, others))
        if runs:
            yield from _end_denied(state, submission, runs, _members_text(on, runs, each.how), now)


def _members_text(on: TaskId, runs: Iterable[Run], how: str) -> str:
    (first, last), *others = runs
    if first == last and not others:
        return failed_text(on._replace(member=first), how)
    return failed_text(f"its member of {on}", how)


def _how_of(array: Submission) -> str:
    return how_some_ended(array.ended, members=array.row.members)


def _deny(
    state: ModuleState, submission: Submission, runs: Iterable[Run], failure: str, now: Instant, /
) -> tuple[Action, ...]:
    return _end_denied(state, submission, take(submission.dependent, *runs), failure, now)


def _end_denied(
    state: ModuleState, submission: Submission, taken: Iterable[Run], failure: str, now: Instant, /
) -> tuple[Action, ...]:
    """Deny members that were taken from those that wait."""
    reason = Reason(module=state.system, code=DenyCode.REQUIREMENT_UNMET, rule=DEPENDENCY_FAILED, text=failure)
    return end_waiting(state, submission.row.id, taken, final=TaskState.DENIED, why=WhyDenied((reason,)), now=now)


def _present(state: ModuleState, predecessor: Predecessor) -> Judged | None:
    """Return the outcome of a dependency; None if its task has ended, and the host has not read how."""
    dependency = predecessor.dependency
    on, submission = dependency.on, state.origin.submissions.get(dependency.on.submission)
    if submission is not None and is_open(state, submission, task=on):
        outcome, how = _while_open(state, dependency, submission), _how_of(submission)
    elif predecessor.is_good is None:
        return None
    else:
        outcome, how = _at_end(dependency, is_good=predecessor.is_good), predecessor.how
    return Judged(replace(dependency, is_met=outcome is Outcome.MET), outcome, how=how)


def _each_present(state: ModuleState, predecessor: Predecessor, runs: tuple[Run, ...]) -> Judged | None:
    """Return what members that wait for those of an array can do; None if the end of one of those is not known."""
    on = predecessor.dependency.on
    still_open = open_in(state, on)
    ended = list(without(runs, still_open))
    failed = in_both(ended, (run for each in predecessor.bad for run in each.runs))
    if list(without(without(ended, failed), predecessor.good)):
        return None
    outcome = Outcome.OPEN if in_both(runs, still_open) else Outcome.MET
    return Judged(
        replace(predecessor.dependency, is_met=outcome is Outcome.MET), outcome, tuple(_among(failed, predecessor.bad))
    )


def _among(failed: list[Run], bad: Iterable[BadEnds]) -> Iterator[BadEnds]:
    """Yield those of ended members that are in some ascending runs."""
    others = list(without([(1, MEMBER_LIMIT)], failed))
    for each in bad:
        runs = tuple(without(each.runs, others))
        if runs:
            yield BadEnds(runs=runs, how=each.how)


def _after_change(state: ModuleState, dependency: Dependency, change: AwaitedChange) -> Outcome:
    if dependency.is_met or dependency.on != change.on or dependency.when == When.EACH:
        return Outcome.MET if dependency.is_met else Outcome.OPEN
    if dependency.on.member:
        has_ended, is_good = change.is_good is not None, change.is_good is True
    else:
        has_ended, is_good = change.submission.open_members == 0, not failures_in(change.submission)
    return _at_end(dependency, is_good=is_good) if has_ended else _while_open(state, dependency, change.submission)


def _at_end(dependency: Dependency, *, is_good: bool) -> Outcome:
    return Outcome.MET if is_good or dependency.when != When.OK else Outcome.FAILED


def _while_open(state: ModuleState, dependency: Dependency, submission: Submission) -> Outcome:
    on = dependency.on
    match dependency.when:
        case When.STARTED if _has_started(state, on) if on.member else submission.has_all_started:
            return Outcome.MET
        case When.OK if not on.member and failures_in(submission):
            return Outcome.FAILED
        case _:
            return Outcome.OPEN


def _has_started(state: ModuleState, member: TaskId) -> bool:
    row = state.origin.tasks.get(member)
    return row is not None and row.started_at is not None
