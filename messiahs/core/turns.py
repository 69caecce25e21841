"""Whose turn it is: `rank tasks` orders the tasks that wait here, and may put some before one that runs.

Without that block it is first come, first served, and none is put before another.
"""

from messiahs.core.attributes import Value
from messiahs.core.demand import demands
from messiahs.core.descriptions import Description, sorted_pairs
from messiahs.core.fitting import why_not_here
from messiahs.core.here import own_facts
from messiahs.core.instants import MILLISECOND, SECOND, Instant
from messiahs.core.judging import judge
from messiahs.core.messages import DenyCode
from messiahs.core.neighbors import Relation
from messiahs.core.own_machine import own_sdv
from messiahs.core.ports import Accepted, Asker, TaskOrderQuery
from messiahs.core.state import ModuleState, Shape

_RANKED_AT_MOST = 1_024
"""Shapes beyond so many come after the others, as they came."""
_RANKED_FOR_NS = 100 * MILLISECOND


def in_turn(state: ModuleState, shapes: tuple[Shape, ...], now: Instant) -> tuple[Shape, ...]:
    """Put shapes of waiting tasks in the order in which they get places."""
    order = state.policy.task_order
    if order is None or len(shapes) < 2:  # noqa: PLR2004 - one alone is in order
        return shapes
    ranked, rest = shapes[:_RANKED_AT_MOST], shapes[_RANKED_AT_MOST:]
    tasks = tuple(facts_of_shape(state, shape, now) for shape in ranked)
    places = order.order(_query(state, tasks, now), state.randomness)
    return (*(ranked[place] for place in places), *rest)


def waiting_above(state: ModuleState, running: tuple[Description, ...], now: Instant) -> tuple[int, ...]:
    """Count for each task that runs here the waiting ones that come before it, and that could run here in its place.

    Neighbors' tasks are those for which there was no room lately.
    """
    order = state.policy.task_order
    waiting = _waiting(state, now) if order is not None and running else []
    if order is None or not waiting:
        return (0,) * len(running)
    # Those that run stand in front of their equals.
    places = order.order(_query(state, (*running, *(facts for facts, _ in waiting)), now), state.randomness)
    above = [0] * len(running)
    count = 0
    for place in places:
        if place < len(running):
            above[place] = count
        else:
            count += waiting[place - len(running)][1]
    return tuple(above)


def is_outranked(state: ModuleState, running: Description, now: Instant) -> bool:
    """Say whether any waiting task comes before one that runs here; who comes first is found at most every 100 ms."""
    order, executor = state.policy.task_order, state.executor
    if order is None:
        return False
    if executor.ranked_at is None or now - executor.ranked_at >= _RANKED_FOR_NS:
        waiting = [facts for facts, _ in _waiting(state, now)]
        places = order.order(_query(state, tuple(waiting), now), state.randomness) if waiting else ()
        executor.ranked_at = now
        executor.first_in_turn = sorted_pairs(waiting[places[0]]) if places else None
    if executor.first_in_turn is None:
        return False
    both = _query(state, (running, dict(executor.first_in_turn)), now)
    return order.order(both, state.randomness)[0] == 1


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


def _query(state: ModuleState, tasks: tuple[Description, ...], now: Instant) -> TaskOrderQuery:
    return TaskOrderQuery(tasks=tasks, here=own_facts(state, now), now=state.calendar(now))


def _waiting(state: ModuleState, now: Instant) -> list[tuple[Description, int]]:
    """Give the tasks that wait for a place on this machine, and how many there are of each."""
    return _own_waiting(state, now) + [
        ({**tdv.description(), "from": asker, "waited": (now - demand.since) // SECOND, "ran": 0}, demand.count)
        for (asker, _, tdv), demand in demands(state, now)
    ]


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
