"""Tasks that wait for other tasks of their origin (not in the papers).

A submission states its dependencies once, on tasks that exist, so there are no cycles. Its tasks are in no shape, and
nothing searches for them, until each condition was met once; that is stored in its row. The step in which a task ends
also decides about those that wait for it, so both are stored in one transaction, and no restart comes in between. A
task whose condition can never be met is denied (`dependency_failed`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Decision, Store
from messiahs.core.interface.dependencies import DEPENDENCY_FAILED, Dependency, Outcome, Predecessor, When
from messiahs.core.interface.messages import DenyCode, Reason, TaskState
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.at_once import line_up
from messiahs.core.origin.awaited import await_no_more, await_others, failures_in, unmet
from messiahs.core.origin.completion import end_waiting
from messiahs.core.origin.holds import apart, is_open
from messiahs.core.origin.member_runs import Run, run_of, take, tasks_in
from messiahs.core.origin.placement import place, search_now
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import AwaitedChange, Shape, Submission

Judged = tuple[Dependency, Outcome]
"""A dependency, which says whether it is met, and whether it can be."""
FAILED_TEXT: Final = "did not end with exit code 0"


def judged(state: ModuleState, predecessors: Iterable[Predecessor]) -> list[Judged] | Predecessor:
    """Return dependencies with their present outcomes, or one whose task has ended in a way that is not known."""
    outcomes: list[Judged] = []
    for each in predecessors:
        outcome = _present(state, each)
        if outcome is None:
            return each
        outcomes.append((replace(each.dependency, is_met=outcome is Outcome.MET), outcome))
    return outcomes


def failure_of(outcomes: Iterable[Judged]) -> str:
    """Return which condition can never be met, as text; empty if all can."""
    failed = (each.on for each, outcome in outcomes if outcome is Outcome.FAILED)
    return next((f"{on} {FAILED_TEXT}" for on in failed), "")


def queue(
    state: ModuleState, submission: Submission, runs: list[Run], /, *, failure: str = "", now: Instant
) -> tuple[Action, ...]:
    """Let members wait for the tasks on which their submission depends, or else for a place, as far as not on hold.

    With a `failure` they are denied.
    """
    if not unmet(submission.row):
        shapes = line_up(state, submission, apart(submission, runs))
        return tuple(action for shape in shapes for action in search_now(state, shape, now))
    await_others(state, submission, runs)
    return _deny(state, submission, failure, now) if failure else ()


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
    actions: list[Action] = []
    shapes: dict[int, Shape] = {}
    # Tasks that are denied meanwhile add changes of their own.
    for change in state.origin.awaited_changes:
        for key in tuple(state.origin.awaited.get(change.on, ())):
            actions.extend(_on_change(state, state.origin.submissions[key], change, shapes, now))
    state.origin.awaited_changes.clear()
    return (*actions, *(action for shape in shapes.values() for action in search_now(state, shape, now)))


def _on_change(
    state: ModuleState, submission: Submission, change: AwaitedChange, shapes: dict[int, Shape], now: Instant, /
) -> Iterator[Action]:
    outcomes = [(each, _after_change(state, each, change)) for each in submission.row.after]
    failure = failure_of(outcomes)
    if failure:
        yield from _deny(state, submission, failure, now)
        return
    after = tuple(replace(each, is_met=outcome is Outcome.MET) for each, outcome in outcomes)
    if after == submission.row.after:
        return
    await_no_more(state, submission.row)
    submission.row = replace(submission.row, after=after)
    await_others(state, submission, ())
    yield Store(row=submission.row)
    if unmet(submission.row):
        return
    yield Decision(what="released", task=str(submission.row.id), text="all that it waited for has happened")
    runs = take(submission.dependent, run_of(submission.row, submission.row.id))
    for shape in line_up(state, submission, apart(submission, runs)):
        shapes[shape.number] = shape


def _deny(state: ModuleState, submission: Submission, failure: str, now: Instant, /) -> tuple[Action, ...]:
    row = submission.row
    tasks = tasks_in(row.id, take(submission.dependent, run_of(row, row.id)))
    reason = Reason(module=state.system, code=DenyCode.REQUIREMENT_UNMET, rule=DEPENDENCY_FAILED, text=failure)
    return end_waiting(state, tasks, final=TaskState.DENIED, reasons=(reason,), now=now)


def _present(state: ModuleState, predecessor: Predecessor) -> Outcome | None:
    """Return the outcome of a dependency; None if its task has ended, and the host has not read how."""
    dependency = predecessor.dependency
    on, submission = dependency.on, state.origin.submissions.get(dependency.on.submission)
    if submission is not None and is_open(state, submission, task=on):
        return _while_open(state, dependency, submission)
    return None if predecessor.is_good is None else _at_end(dependency, is_good=predecessor.is_good)


def _after_change(state: ModuleState, dependency: Dependency, change: AwaitedChange) -> Outcome:
    if dependency.is_met or dependency.on != change.on:
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
