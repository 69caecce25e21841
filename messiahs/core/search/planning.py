"""A search for places that does not take place: what would become of tasks if they were submitted now (MESSIAHS 6.2).

The decisions are those of a real search. They are taken on a view of the state with a policy memory and random numbers
of its own, so nothing of the module changes, and no message leaves it. What neighbors would answer is not known here:
they are judged by their vectors, as in a search before they are asked.
"""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from messiahs.core.interface.events import Submitted
from messiahs.core.interface.messages import Reason
from messiahs.core.interface.plans import Plan, PlannedOutcome
from messiahs.core.interface.policies import Need, Randomness
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.ledger.parties import asker_of
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.origin.own_requests import request_for
from messiahs.core.origin.planned_tasks import planned_tasks, rooms_held
from messiahs.core.origin.resting import round_waits_until, why_it_rests
from messiahs.core.origin.shape_queue import new_shape, unplaced
from messiahs.core.relay.links_down import why_not_linked
from messiahs.core.search.decisions import begun, decide_others, decide_own, take_own
from messiahs.core.search.foreign_tasks import marked
from messiahs.core.search.routing import arrival_of, bounded, view_behind
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape
from messiahs.core.state.part_memory import PartMemory
from messiahs.core.task_filter.acceptance import judge
from messiahs.core.task_filter.matching import fitting, need_of
from messiahs.core.vectors.vectors import EMPTY

_NO_MESSAGE: Final = MessageId(0)
_NO_SEARCH: Final = SearchId(bytes(16))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Searched:
    """What a search would decide: how many places the own machine grants, and who would be asked for the rest."""

    places: int = 0
    asked: tuple[SystemId, ...] = ()
    likely: tuple[SystemId, ...] = ()
    """Those of them that could hold a task now, by their views."""
    is_known: bool = False
    """By the view of one of these, some machine surely holds one; otherwise their views may only be silent."""
    reason: Reason | None = None
    record: SearchRecord | None = None


def plans_of(
    state: ModuleState, event: Submitted, randomness: Randomness, /, *, most: int, now: Instant
) -> tuple[Plan, ...] | str:
    """Return what would become of a submission now, or why it would be refused; nothing of the state changes.

    There is a plan for each description of its tasks, in their order and for at most so many, each as if the tasks with
    the others got no places. Random orders are drawn with `randomness`: a real search draws anew.
    """
    tasks = planned_tasks(state, event, now)
    if isinstance(tasks, str):
        return tasks
    plan = Plan(at=now, outcome=PlannedOutcome.WAIT, tdv=event.tdv, requirement=event.requirement)
    if tasks.denial is not None:
        return (replace(plan, outcome=PlannedOutcome.DENY, reasons=(tasks.denial,)),)
    if not tasks.counts:
        return (replace(plan, awaited=tasks.awaited),)
    plans = []
    for tdv, count in islice(tasks.counts.items(), most):
        view = _view_of(state, sum(tasks.counts.values()), randomness)
        key = (tdv, event.requirement)
        shape = view.origin.shapes.get(key) or new_shape(view, key, number=0)
        found = _plan_for(view, shape, count, waits=event.waits, now=now)
        plans.append(replace(found, descriptions=len(tasks.counts), awaited=tasks.awaited))
    return tuple(plans)


def _view_of(state: ModuleState, tasks: int, randomness: Randomness) -> ModuleState:
    """Return a view of the state in which so many more tasks wait, and in which decisions leave no trace."""
    origin = replace(state.origin, waiting=state.origin.waiting + tasks)
    parts = PartMemory(states=dict(state.parts.states), failed=dict(state.parts.failed))
    return replace(state, randomness=randomness, parts=parts, origin=origin)


def _plan_for(view: ModuleState, shape: Shape, tasks: int, /, *, waits: bool, now: Instant) -> Plan:
    tdv, requirement = shape.key
    ahead, limits = unplaced(shape), view.policy.limits
    plan = Plan(at=now, outcome=PlannedOutcome.START, tdv=tdv, requirement=requirement, tasks=tasks, ahead=ahead)
    not_started = PlannedOutcome.WAIT if waits else PlannedOutcome.DENY
    if round_waits_until(view, shape) > now:
        return replace(plan, outcome=not_started, reasons=(why_it_rests(view, shape),))
    held = tuple(rooms_held(view, shape, ahead + tasks, now=now))
    in_held = sum(each.tasks for each in held)
    asks = limits.asks if limits.hops > 0 else 0
    left = ahead + tasks - in_held
    searched = _searched(view, shape, left, asks=asks, now=now) if left else _Searched()
    plan = replace(plan, held=held, search=searched.record, likely=searched.likely, asks=asks)
    if in_held + searched.places > ahead:
        return plan
    if searched.likely and not ahead:
        return replace(plan, is_sure=False, is_known=searched.is_known)
    reasons = (*filter(None, (searched.reason,)), *why_not_linked(view, via=view.neighbors))
    return replace(plan, outcome=not_started, is_sure=not searched.asked, reasons=reasons)


def _searched(view: ModuleState, shape: Shape, tasks: int, /, *, asks: int, now: Instant) -> _Searched:
    request = request_for(view, shape, number=_NO_MESSAGE, search=_NO_SEARCH, tasks=tasks)
    request = marked(view, bounded(view, request), sender=view.system)
    asker = asker_of(view, view.system, Relation.SELF, now)
    arrived = arrival_of(view, request, request.requirement, asker=asker)
    if isinstance(arrived, Reason):
        return _Searched(reason=arrived)
    need = need_of(request.tdv, arrived.predicate)
    verdict = judge(view, request.tdv, asker, slots=need.slots, now=now)
    search = begun(view, request, asker, need, now=now)
    own = decide_own(view, search, verdict, is_first=arrived.is_first, now=now)
    if own.places:
        take_own(view, search, own)
    if not search.left:
        return _Searched(places=own.places, record=search.record)
    others = decide_others(view, search, verdict, own, now=now)
    asked, able = others.order[:asks], set(others.ranked)
    likely = tuple(system for system in asked if system in able)
    return _Searched(
        places=own.places,
        asked=asked,
        likely=likely,
        is_known=any(_surely_holds(view, need, system) for system in likely),
        reason=search.reason,
        record=search.record,
    )


def _surely_holds(view: ModuleState, need: Need, system: SystemId) -> bool:
    behind = view_behind(view, view.neighbors[system])
    vector = behind.message.vector if behind is not None else EMPTY
    surely, _ = fitting(need, view.updates.indexes.of(system, vector))
    return bool(surely)
