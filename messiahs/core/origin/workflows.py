"""Workflows: submissions that a user submits together, some of which depend on others (not in the papers).

All are stored in one step, so in one transaction. A submission depends only on earlier ones, so there are no cycles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Answer, Store
from messiahs.core.interface.dependencies import Dependency, Outcome, Predecessor, When
from messiahs.core.interface.events import WorkflowSubmitted
from messiahs.core.interface.limits import SHAPE_LIMIT
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.at_once import line_up
from messiahs.core.origin.awaited import await_others, unmet
from messiahs.core.origin.dependencies import Judged, decide_awaiting, judged
from messiahs.core.origin.member_runs import run_of
from messiahs.core.origin.placement import search_now
from messiahs.core.origin.submission import (
    counted,
    enter,
    own_shapes,
    problem_of,
    row_of,
    submitted_decision,
    without_end,
)
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape, Submission

_TOO_MANY_SHAPES: Final = f"the tasks of a file have at most {SHAPE_LIMIT} different needs and attributes: use several"


def on_workflow_submitted(state: ModuleState, event: WorkflowSubmitted, now: Instant) -> tuple[Action, ...]:
    """Store all submissions and search for places, or refuse all for the first problem; the same keys are known."""
    count = len(event.submissions)
    for place, each in enumerate(event.submissions):
        known = state.origin.keys.get(each.key)
        if known is not None:
            first = known._replace(number=known.number - place)
            return (Answer(answer_to=event.answer_to, task=first, count=count),)
    outcomes: list[list[Judged]] = []
    shared, own = set[tuple[TDV, str]](), 0
    for number, each in enumerate(event.submissions, 1):
        own += own_shapes(each)
        shared |= {(each.tdv, each.requirement)}
        problem = problem_of(state, each) or (_TOO_MANY_SHAPES if len(shared) + own > SHAPE_LIMIT else "")
        if problem:
            return (Answer(answer_to=event.answer_to, problem=problem, count=number),)
        found = judged(state, each.after, [(min(1, each.members), each.members)])
        if isinstance(found, Predecessor):
            return (replace(without_end(event.answer_to, found), count=number),)
        outcomes.append(found)
    before = state.counters.submissions
    ids = [TaskId(state.system, state.epoch, before + number) for number in range(1, count + 1)]
    stored = _stored(state, event, ids, outcomes, now)
    answer = Answer(answer_to=event.answer_to, task=ids[0], count=count)
    return (*stored, answer, *_queued(state, event, ids, outcomes, now))


def _stored(
    state: ModuleState,
    event: WorkflowSubmitted,
    ids: Sequence[TaskId],
    outcomes: Sequence[list[Judged]],
    /,
    now: Instant,
) -> list[Action]:
    """Enter all submissions. Nothing for which they wait within the workflow has begun."""
    state.counters = counted(state, len(ids), now)
    actions: list[Action] = [Store(row=state.counters)]
    for place, (each, within) in enumerate(zip(event.submissions, event.within, strict=True)):
        assert all(earlier < place for earlier, _ in within), "a submission depends on earlier ones"
        others = [Dependency(on=ids[earlier], when=when) for earlier, when in within]
        after = (*(judgement.dependency for judgement in outcomes[place]), *others)
        row = row_of(each, ids[place], after=after, now=now)
        enter(state, row, ended={}, started=0)
        actions += (Store(row=row), submitted_decision(row))
    return actions


def _queued(
    state: ModuleState,
    event: WorkflowSubmitted,
    ids: Sequence[TaskId],
    outcomes: Sequence[list[Judged]],
    /,
    now: Instant,
) -> Iterator[Action]:
    """Queue what waits for nothing, once all that wait are known to wait; each shape is searched for once."""
    shapes: dict[int, Shape] = {}
    undecided: list[tuple[Submission, list[Judged]]] = []
    for task, within, judgements in zip(ids, event.within, outcomes, strict=True):
        submission = state.origin.submissions[task]
        runs = [run_of(submission.row, task)]
        is_undecided = any(map(_needs_decision, judgements))
        if is_undecided or within or unmet(submission.row):
            await_others(state, submission, runs)
        else:
            shapes |= {shape.number: shape for shape in line_up(state, submission, runs)}
        if is_undecided:
            undecided.append((submission, judgements))
    for submission, judgements in undecided:
        runs = [run_of(submission.row, submission.row.id)]
        yield from decide_awaiting(state, submission, runs, outcomes=judgements, now=now)
    for shape in shapes.values():
        yield from search_now(state, shape, now)


def _needs_decision(each: Judged) -> bool:
    """Return whether a dependency is in vain, or is one on an array for some of whose members nothing has to wait."""
    return each.outcome is Outcome.FAILED or each.dependency.when == When.EACH
