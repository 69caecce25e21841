"""The order of tasks: `rank tasks` orders the tasks that wait here, and may rank some above a running one.

Without that block all tasks rank equally, and none ranks above a running one. The origin orders equals by the
usage of their users (core/origin/giving_way.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import Accepted, Asker, TaskOrderQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV, Description, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.acceptance import judging_for
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.task_filter.matching import why_not_here
from messiahs.core.task_filter.unmet_demand import demands

_RANKING_LIMIT = 256
"""Shapes beyond this number follow the ranked ones, in order of arrival."""
_RANKED_FOR_NS = 100 * MILLISECOND


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Waiting tasks, and the facts about the first of them."""

    facts: Description
    count: int
    shape: Shape | None = None


def in_order(state: ModuleState, shapes: tuple[Shape, ...], now: Instant) -> tuple[Shape, ...]:
    """Return shapes of waiting tasks in the order of `rank tasks`; equals, and all without it, keep their order."""
    if state.policy.selection.keeps_arrival or len(shapes) < 2:  # noqa: PLR2004 - one alone is in order
        return shapes
    ranked, rest = shapes[:_RANKING_LIMIT], shapes[_RANKING_LIMIT:]
    tasks = tuple(facts_of_shape(state, shape, now) for shape in ranked)
    places = order_of(state, tasks, now)
    return (*(ranked[place] for place in places), *rest)


def waiting_above(state: ModuleState, running: tuple[Description, ...], now: Instant) -> tuple[int, ...]:
    """Count, for each running task, the waiting tasks that rank above it and could run here in its place.

    For neighbors, the tasks that recently found no room here count as waiting.
    """
    waiting = _waiting(state, now) if running and not state.policy.selection.keeps_arrival else []
    if not waiting:
        return (0,) * len(running)
    # Running tasks precede waiting ones of equal rank.
    places = order_of(state, (*running, *(each.facts for each in waiting)), now)
    could_run, above, count = _judge_of(state, now), [0] * len(running), 0
    last = max(place for place, each in enumerate(places) if each < len(running))
    for each in places[: last + 1]:
        if each < len(running):
            above[each] = count
        elif could_run(waiting[each - len(running)]):
            count += waiting[each - len(running)].count
    return tuple(above)


def is_outranked(state: ModuleState, running: Description, now: Instant) -> bool:
    """Return whether a waiting task ranks above a running one; the first of these is found every 100 ms at most."""
    executor = state.executor
    if state.policy.selection.keeps_arrival:
        return False
    if executor.ranked_at is None or now - executor.ranked_at >= _RANKED_FOR_NS:
        waiting, could_run = _waiting(state, now), _judge_of(state, now)
        places = order_of(state, tuple(each.facts for each in waiting), now)
        first = next((waiting[place] for place in places if could_run(waiting[place])), None)
        executor.ranked_at = now
        executor.first_in_order = sorted_pairs(first.facts) if first is not None else None
    if executor.first_in_order is None:
        return False
    return order_of(state, (running, dict(executor.first_in_order)), now)[0] == 1


def facts_of_shape(state: ModuleState, shape: Shape, now: Instant) -> dict[str, Value]:
    """Return the facts that a policy reads about the first waiting task of a shape."""
    submission, first, _ = shape.waiting[0]
    tried = state.origin.tasks.get(submission._replace(member=first))
    return {
        **shape.key[0].description(),
        **sender_facts(state, state.system),
        "waited": max(0, now - state.origin.submissions[submission].row.submitted_at) // SECOND,
        "ran": 0,
        "attempt": (tried.attempt if tried is not None else 0) + 1,
    }


def sender_facts(state: ModuleState, sender: SystemId) -> dict[str, Value]:
    """Return what a policy reads about who sent a task: a neighbor, or the module itself."""
    if sender == state.system:
        return {"from": sender, "relation": Relation.SELF.value}
    neighbor = state.neighbors.get(sender)
    return {"from": sender} if neighbor is None else {"from": sender, "relation": neighbor.relation.value}


def sent_facts(state: ModuleState, sender: SystemId, tdv: TDV, /) -> dict[str, Value]:
    """Return the facts about a task that has not run here: its TDV, and who sent it."""
    return {**tdv.description(), **sender_facts(state, sender)}


def order_of(state: ModuleState, tasks: tuple[Description, ...], now: Instant) -> tuple[int, ...]:
    """Return the positions of tasks in the order of the policy; one that keeps the order of arrival is not called."""
    query = TaskOrderQuery(tasks=tasks, here=own_facts(state, now), now=state.calendar(now), at=now)
    return decide(state, PartKind.SELECTION, state.policy.selection, query)


def _waiting(state: ModuleState, now: Instant) -> list[_Waiting]:
    """Return the waiting tasks with their numbers; tasks wanted by neighbors have no shape here."""
    shapes = [shape for shape in state.origin.shapes.values() if shape.count][:_RANKING_LIMIT]
    own = [_Waiting(facts_of_shape(state, shape, now), shape.count, shape) for shape in shapes]
    others = [
        _Waiting({**sent_facts(state, asker, tdv), "waited": (now - demand.since) // SECOND, "ran": 0}, demand.count)
        for (asker, _, tdv), demand in demands(state, now)
    ]
    return own + others


def _judge_of(state: ModuleState, now: Instant) -> Callable[[_Waiting], bool]:
    """Return a test whether waiting tasks could run here if there were room; neighbors' tasks passed it on request."""
    sdv = own_sdv(state)
    here = sdv.description() if sdv is not None else None
    judge = judging_for(state, Asker(system=state.system, relation=Relation.SELF), now)

    def could_run(waiting: _Waiting) -> bool:
        shape = waiting.shape
        if shape is None or here is None:
            return shape is None
        if why_not_here(shape.need, here) is not DenyCode.NO_CAPACITY:
            return False
        return isinstance(judge(shape.key[0], shape.need.slots), Accepted)

    return could_run
