"""Tasks that wait at their origin, by shape.

Members of an array that were never tried are kept as runs (submission, first, last), without a row or object for each.
"""

from collections.abc import Iterable

from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import runs_of
from messiahs.core.origin.member_runs import Run, count_in, in_both, without
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape, ShapeKey
from messiahs.core.task_filter.matching import need_of


def shape_of(state: ModuleState, key: ShapeKey) -> Shape:
    """Return the shape with a key; it is created if no task of it waits or runs."""
    shape = state.origin.shapes.get(key)
    if shape is None:
        state.origin.shapes_made += 1
        shape = new_shape(state, key, number=state.origin.shapes_made)
        state.origin.shapes[key] = shape
        state.origin.shapes_by_number[shape.number] = shape
    return shape


def new_shape(state: ModuleState, key: ShapeKey, *, number: int) -> Shape:
    """Return a shape without tasks, which is not entered."""
    requirement = state.parse(key[1])
    assert not isinstance(requirement, BadPredicate), "it was parsed when it was submitted"
    stated = key[0].description()
    priority = stated.get("priority", 0)
    return Shape(
        key=key,
        number=number,
        need=need_of(key[0], requirement),
        user=str(stated.get("user", "")),
        priority=priority if isinstance(priority, int) else 0,
    )


def user_of_next(state: ModuleState, now: Instant) -> str | None:
    """Return the user for whose tasks the next due timeout begins a round of searching; None if it does not."""
    timeout = state.timers.first_due(now)
    if timeout is None or timeout[0] is not TimerKind.ROUND:
        return None
    shape = state.origin.shapes_by_number.get(timeout[1])
    return shape.user if shape is not None else None


def add_members(state: ModuleState, row: SubmissionRow, /, runs: Iterable[Run]) -> tuple[Shape, ...]:
    """Queue members of a submission behind all others, and return their shapes.

    A single task is member 0.
    """
    shapes: dict[ShapeKey, Shape] = {}
    for tdv, first, last in runs_of(row, runs):
        shape = shapes[tdv, row.requirement] = shape_of(state, (tdv, row.requirement))
        shape.is_filled = False
        shape.waiting.append((row.id, first, last))
        _count(state, shape, last - first + 1)
    return tuple(shapes.values())


def shapes_with(state: ModuleState, wanted: TaskId) -> tuple[Shape, ...]:
    """Return the shapes in which tasks of a submission wait."""
    submission = wanted.submission
    return tuple(shape for shape in state.origin.shapes.values() if any(run[0] == submission for run in shape.waiting))


def add_again(state: ModuleState, shape: Shape, task: TaskId, /) -> None:
    """Queue a task that was tried before in front of all others."""
    if not shape.count:
        # While others wait, there is no room for this one.
        shape.is_filled = False
    shape.waiting.appendleft((task.submission, task.member, task.member))
    _count(state, shape, 1)


def take_first(state: ModuleState, shape: Shape) -> TaskId:
    """Remove and return the task that has waited longest; there must be one."""
    submission, first, last = shape.waiting.popleft()
    if first < last:
        shape.waiting.appendleft((submission, first + 1, last))
    _count(state, shape, -1)
    return submission._replace(member=first)


def take_out(state: ModuleState, shape: Shape, submission: TaskId, members: Run, /) -> list[Run]:
    """Remove the waiting tasks of a submission that are among its members, and return those removed."""
    taken: list[Run] = []
    kept: list[tuple[TaskId, int, int]] = []
    for run in shape.waiting:
        if run[0] != submission:
            kept.append(run)
            continue
        taken.extend(in_both([run[1:]], [members]))
        kept.extend((submission, first, last) for first, last in without([run[1:]], [members]))
    shape.waiting.clear()
    shape.waiting.extend(kept)
    _count(state, shape, -count_in(taken))
    return taken


def expects_tasks(shape: Shape) -> bool:
    """Return whether tasks of a shape wait, or will wait as soon as attempts that must move have ended."""
    return shape.count > 0 or any(shape.moving.values())


def unplaced(shape: Shape) -> int:
    """Return how many tasks have no known place: the waiting ones, and those that must move."""
    return shape.count + len(shape.moving) - sum(shape.moving.values())


def drop_if_unused(state: ModuleState, shape: Shape) -> None:
    """Forget a shape without waiting or running tasks."""
    if shape.count or shape.claims or shape.phase is ShapePhase.SEARCHING:
        return
    state.origin.shapes.pop(shape.key, None)
    state.origin.shapes_by_number.pop(shape.number, None)
    state.origin.unserved.pop(shape.number, None)
    state.timers.cancel(TimerKind.ROUND, shape.number)


def _count(state: ModuleState, shape: Shape, more: int) -> None:
    shape.count += more
    state.origin.waiting += more
