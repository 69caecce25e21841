"""Rounds of searching for many shapes (MESSIAHS 6.2): only a few of them begin in one step.

A round costs about as much as an event, and a file of tasks, a policy or a freed slot may concern thousands of shapes.
"""

from collections.abc import Iterable
from typing import Final

from messiahs.core.interface.actions import Action
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import Instant, after
from messiahs.core.origin.giving_way import in_turn, pause_ns
from messiahs.core.origin.placement import search_now
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import FIRST_ROUND_DELAY_NS, Shape
from messiahs.core.task_filter.matching import could_hold
from messiahs.core.vectors.indexed import IndexedVector

AT_ONCE: Final = 4
"""Rounds that begin in the step that causes them; each of the others is a timeout that is due."""


def search_each(state: ModuleState, shapes: Iterable[Shape], now: Instant) -> tuple[Action, ...]:
    """Start a new round for each shape, in their order: the first few at once, the others as soon as the host can.

    A shape that searches already only binds its tasks.
    """
    actions: list[Action] = []
    for position, shape in enumerate(shapes):
        if position < AT_ONCE or shape.phase is ShapePhase.SEARCHING:
            actions.extend(search_now(state, shape, now))
        else:
            _search_at(state, shape, after(now, position))
    return tuple(actions)


def search_everywhere(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Start a new round for every waiting shape."""
    waiting = tuple(
        shape for shape in state.origin.shapes.values() if shape.count and shape.phase is not ShapePhase.SEARCHING
    )
    return search_each(state, in_turn(state, waiting, now), now)


def on_view_changed(
    state: ModuleState, before: IndexedVector, view: IndexedVector, /, now: Instant
) -> tuple[Action, ...]:
    """Start a new round for the shapes that `view` could hold and `before` could not."""
    idle = [each for each in state.origin.shapes.values() if each.phase is not ShapePhase.SEARCHING]
    idle = [each for each in idle if each.count or each.moving]
    newly = [shape for shape in idle if could_hold(shape.need, view) and not could_hold(shape.need, before)]
    actions = list(search_each(state, (shape for shape in newly if not shape.count), now))
    waiting = (shape for shape in newly if shape.count and shape.phase is ShapePhase.WAITING)
    for position, shape in enumerate(in_turn(state, tuple(waiting), now)):
        pause = pause_ns(shape, now)
        if pause or position >= AT_ONCE:
            # Pauses that would end together end in the same order.
            _search_at(state, shape, after(now, pause + position))
        else:
            actions.extend(search_now(state, shape, now))
    return tuple(actions)


def _search_at(state: ModuleState, shape: Shape, at: Instant) -> None:
    shape.delay_ns = FIRST_ROUND_DELAY_NS
    shape.enter(ShapePhase.WAITING)
    state.timers.set(TimerKind.ROUND, shape.number, at)
