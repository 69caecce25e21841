"""Whose turn it is: `rank tasks` orders the tasks that wait here, and may put some before one that runs.

Without that block it is first come, first served, and none is put before another.
"""

from messiahs.core.attributes import Value
from messiahs.core.demand import demands
from messiahs.core.descriptions import Description
from messiahs.core.fitting import why_not_here
from messiahs.core.here import own_facts
from messiahs.core.instants import SECOND, Instant
from messiahs.core.judging import judge
from messiahs.core.messages import DenyCode
from messiahs.core.neighbors import Relation
from messiahs.core.own_machine import own_sdv
from messiahs.core.ports import Accepted, Asker, TaskOrderQuery
from messiahs.core.state import ModuleState, Shape

_RANKED_AT_MOST = 1_024
"""Shapes beyond so many come after the others, as they came."""


def in_turn(state: ModuleState, shapes: tuple[Shape, ...], now: Instant) -> tuple[Shape, ...]:
    """Put shapes of waiting tasks in the order in which they get places."""
    order = state.policy.task_order
    if order is None or len(shapes) < 2:  # noqa: PLR2004 - one alone is in order
        return shapes
    ranked, rest = shapes[:_RANKED_AT_MOST], shapes[_RANKED_AT_MOST:]
    tasks = tuple(facts_of_shape(state, shape, now) for shape in ranked)
    query = TaskOrderQuery(tasks=tasks, here=own_facts(state, now), now=state.calendar(now))
    return (*(ranked[place] for place in order.order(query, state.randomness)), *rest)


def waiting_above(state: ModuleState, running: Description, now: Instant) -> int:
    """Count the waiting tasks that come before one that runs here, and that could run here in its place.

    Neighbors' tasks are those for which there was no room lately.
    """
    order = state.policy.task_order
    if order is None:
        return 0
    waiting = _own_waiting(state, now) + [
        ({**tdv.description(), "from": asker, "waited": (now - demand.since) // SECOND, "ran": 0}, demand.count)
        for (asker, _, tdv), demand in demands(state, now)
    ]
    if not waiting:
        return 0
    tasks = (running, *(facts for facts, _ in waiting))
    query = TaskOrderQuery(tasks=tasks, here=own_facts(state, now), now=state.calendar(now))
    places = order.order(query, state.randomness)
    # It stands in front of its equals.
    return sum(waiting[place - 1][1] for place in places[: places.index(0)])


def facts_of_shape(state: ModuleState, shape: Shape, now: Instant) -> dict[str, Value]:
    """Give what a policy is told of the first task of a shape that waits."""
    submission, first, _ = shape.waiting[0]
    tried = state.origin.tasks.get(submission._replace(member=first))
    return {
        **shape.key[0].description(),
        "from": state.system,
        "waited": max(0, now - state.origin.submissions[submission].row.submitted_at) // SECOND,
        "ran": 0,
        "attempt": (tried.attempt if tried is not None else 0) + 1,
    }


def _own_waiting(state: ModuleState, now: Instant) -> list[tuple[Description, int]]:
    sdv = own_sdv(state)
    if sdv is None:
        return []
    here, user = sdv.description(), Asker(system=state.system, relation=Relation.SELF)
    waiting = [shape for shape in state.origin.shapes.values() if shape.count][:_RANKED_AT_MOST]
    return [
        (facts_of_shape(state, shape, now), shape.count)
        for shape in waiting
        if why_not_here(shape.need, here)[0] is DenyCode.NO_CAPACITY
        and isinstance(judge(state, shape.key[0], user, slots=shape.need.slots, now=now), Accepted)
    ]
