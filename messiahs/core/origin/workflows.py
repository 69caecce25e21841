"""Workflows: submissions that a user submits together, some of which depend on others (not in the papers).

All are stored in one step, so in one transaction. A submission depends only on earlier ones, so there are no cycles.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Answer, Store
from messiahs.core.interface.dependencies import Dependency, Outcome, Predecessor, When
from messiahs.core.interface.events import WorkflowSubmitted
from messiahs.core.interface.limits import SHAPE_LIMIT, WORKFLOW_LIMIT
from messiahs.core.model.counts import counted as counted_text
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import TaskId, part_key
from messiahs.core.model.instants import Instant
from messiahs.core.origin.at_once import line_up
from messiahs.core.origin.awaited import await_others, awaits_outputs, unmet
from messiahs.core.origin.dependencies import Judged, decide_awaiting, judged
from messiahs.core.origin.member_runs import run_of
from messiahs.core.origin.retention import ended_submission
from messiahs.core.origin.rounds import search_each
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
_SHOWN_IDS: Final = 5
"""The most ids that a refusal names."""


def on_workflow_submitted(state: ModuleState, event: WorkflowSubmitted, now: Instant) -> tuple[Action, ...]:
    """Store all submissions and search for places, or refuse all for the first problem; the same key is known.

    The key of a workflow of another size, or of one of which some submissions are forgotten, is refused.
    """
    count = len(event.submissions)
    # All places are looked up: of a larger workflow with this key perhaps only the last submission is left.
    looked_up = ((place, state.origin.keys.get(part_key(event.key, place))) for place in range(WORKFLOW_LIMIT))
    known = {place: task for place, task in looked_up if task is not None}
    if known:
        return (_answer_to_known(state, event, known),)
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


def _answer_to_known(state: ModuleState, event: WorkflowSubmitted, known: Mapping[int, TaskId], /) -> Answer:
    """Return the answer if the key is known, at some places: the ids of then, or why this is another workflow."""
    answer_to, count = event.answer_to, len(event.submissions)
    place, task = next(iter(known.items()))
    first, size = task._replace(number=task.number - place), _size(state, task)
    if size != count:
        text = f"the key is that of another file, which has {counted_text(size, 'task')}, and this one has {count}"
        return Answer(answer_to=answer_to, problem=f"{text}; use another key", count=min(count, size + 1))
    gone = [place for place in range(count) if place not in known]
    if not gone:
        return Answer(answer_to=answer_to, task=first, count=count)
    shown = ", ".join(str(first._replace(number=first.number + place)) for place in gone[:_SHOWN_IDS])
    more = f" and {len(gone) - _SHOWN_IDS} more" if len(gone) > _SHOWN_IDS else ""
    text = f"the key was used before, and of its tasks {shown}{more} {'are' if gone[1:] else 'is'} no longer known here"
    return Answer(answer_to=answer_to, problem=f"{text}; use another key", count=gone[0] + 1)


def _size(state: ModuleState, task: TaskId) -> int:
    """Return the number of submissions of the workflow of a submission whose key is known."""
    live = state.origin.submissions.get(task)
    if live is not None:
        return live.row.workflow_size
    ended = ended_submission(state, task)
    return 0 if ended is None else ended.workflow_size


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
    # Many may wait for the same ones.
    earlier_ones: dict[tuple[int, str], Dependency] = {}
    for place, (each, within) in enumerate(zip(event.submissions, event.within, strict=True)):
        assert all(earlier < place for earlier, _ in within), "a submission depends on earlier ones"
        wanted = event.outputs[place] if event.outputs else ()
        others = []
        for one in within:
            if one not in earlier_ones:
                earlier_ones[one] = Dependency(on=ids[one[0]], when=one[1])
            outputs = tuple(output for earlier, output in wanted if one == (earlier, When.OK))
            others.append(replace(earlier_ones[one], outputs=outputs) if outputs else earlier_ones[one])
        after = (*(judgement.dependency for judgement in outcomes[place]), *others)
        key = part_key(event.key, place)
        row = row_of(each, ids[place], key=key, after=after, workflow_size=len(ids), now=now)
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
        is_undecided = any(map(_needs_decision, judgements)) or awaits_outputs(submission.row)
        if is_undecided or within or unmet(submission.row):
            await_others(state, submission, runs)
        else:
            shapes |= {shape.number: shape for shape in line_up(state, submission, runs)}
        if is_undecided:
            undecided.append((submission, judgements))
    for submission, judgements in undecided:
        runs = [run_of(submission.row, submission.row.id)]
        yield from decide_awaiting(state, submission, runs, outcomes=judgements, now=now)
    yield from search_each(state, shapes.values(), now)


def _needs_decision(each: Judged) -> bool:
    """Return whether a dependency is in vain, or is one on an array for some of whose members nothing has to wait."""
    return each.outcome is Outcome.FAILED or each.dependency.when == When.EACH
