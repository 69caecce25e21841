"""Receiver-initiated load sharing: task_request, task_accept, task_deny (MESSIAHS 5.3.2, 6.2).

A module with free slots asks where tasks wait, or run and may move. A module with matching tasks that its policy offers
accepts. For waiting tasks it searches for places at once, naming the request: each hop that remembers the request first
asks the neighbor from which it came. For running tasks, their origins search (running_offers.py). So a task reaches the
requester like any other, through every gate.
"""

from dataclasses import replace

from messiahs.core.executor.running_offers import choose_running, offer_running
from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl
from messiahs.core.interface.limits import ASK_LIMIT
from messiahs.core.interface.messages import DenyCode, Reason, TaskAccept, TaskRequest
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import Asking, HereQuery, SourceQuery, TaskSource
from messiahs.core.interface.predicates import Predicate
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import Instant, after
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.origin.offers import offer
from messiahs.core.origin.placement import promise
from messiahs.core.search.routing import (
    MARGIN_NS,
    Arrived,
    after_accept,
    ask_others,
    bounded,
    count_given,
    is_climbing,
    reachable,
    register,
    search_of,
    view_behind,
)
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.local_resources import own_sdv

_ANY_RELATION = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)


def watch_asks(state: ModuleState, now: Instant) -> None:
    """Start the timers of the policy's `ask` rules, in place of those of an earlier policy."""
    for kind, place, _ in tuple(state.timers.waiting()):
        if kind is TimerKind.ASK:
            state.timers.cancel(kind, place)
    for place, ask in enumerate(state.policy.transfer.asks):
        state.timers.set(TimerKind.ASK, place, after(now, ask.every_ns))


def on_ask_timeout(state: ModuleState, place: int, now: Instant) -> tuple[Action, ...]:
    """Request as many tasks as slots are free, if the rule applies and any neighbor is known to have tasks."""
    ask = state.policy.transfer.asks[place]
    state.timers.set(TimerKind.ASK, place, after(now, ask.every_ns))
    count = min(_free_slots(state), ASK_LIMIT)
    if (
        not count
        or state.membership.drain is not None
        or state.executor.is_withheld
        or _is_asking(state)
        or not _wants(state, ask, now)
        or not _sources(state, state.system, _ANY_RELATION)
    ):
        return ()
    request = TaskRequest(
        id=state.next_message_id(),
        search=SearchId(state.randomness.bits(128).to_bytes(16)),
        requester=state.system,
        wanting=ask.wanting,
        count=count,
        hops_left=state.policy.limits.hops,
        asks_left=state.policy.limits.asks,
        remaining_ns=state.policy.timeouts.request_ns,
        trust=state.identity.trust,
    )
    text = f"up to {count} tasks: {ask.wanting or 'any'}"
    decision = Decision(what="task_request", task=request.search.hex()[:8], text=text)
    return (decision, SendControl(to=state.system, message=request))


def on_task_request(state: ModuleState, request: TaskRequest, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Offer matching tasks, ask the best neighbor for the rest, or deny (MESSIAHS 6.2)."""
    request = bounded(state, request)
    arrived = register(state, request, request.wanting, sender=sender, now=now)
    if not isinstance(arrived, Arrived):
        return arrived
    search = Search(
        request=request,
        asker=arrived.asker,
        need=None,
        left=request.count,
        allowed=request.count,
        asks_left=request.asks_left,
        until=after(now, request.remaining_ns - MARGIN_NS),
        reason=Reason(module=state.system, code=DenyCode.NO_TASK),
    )
    is_asked = arrived.is_first and sender != state.system
    actions = _offer_own(state, search, request, arrived.predicate, now=now) if is_asked else ()
    if search.left == 0:
        return actions
    relations = ((Relation.CHILD,) if arrived.is_first else ()) + (
        (Relation.SIBLING, Relation.PARENT) if is_climbing(arrived.asker) else ()
    )
    if state.membership.drain is not None:
        # Tasks from elsewhere would not pass here: the own users' tasks may leave.
        relations = ()
    sources = _sources(state, sender, relations)
    query = SourceQuery(sources=sources, at=now)
    likely = decide(state, PartKind.SOURCES, state.policy.sources, query) if sources else ()
    return (*actions, *ask_others(state, search, likely, now=now))


def _offer_own(
    state: ModuleState, search: Search, request: TaskRequest, wanting: Predicate, /, *, now: Instant
) -> tuple[Action, ...]:
    """Offer waiting tasks, and running tasks for the rest."""
    waiting = offer(state, wanting, count=request.count, now=now)
    left = request.count - waiting.count if request.search not in state.executor.offers else 0
    running = choose_running(state, wanting, count=left, now=now)
    count = waiting.count + len(running.attempts)
    if not count:
        is_refused = DenyCode.REFUSED_BY_POLICY in (waiting.why_not, running.why_not)
        search.reason = replace(search.reason, code=DenyCode.REFUSED_BY_POLICY if is_refused else DenyCode.NO_TASK)
        return ()
    search.left -= count
    search.allowed -= count
    actions = [*_pass_accept(search, count)]
    for shape, members in waiting.shapes:
        actions.extend(promise(state, shape, members, request.search, now=now))
    return (*actions, *offer_running(state, request, running.attempts, now=now))


def on_task_accept(state: ModuleState, accept: TaskAccept, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Forward the promise to the requester; the tasks themselves follow by `sched_request` (MESSIAHS 6.2).

    A late accept changes nothing: the search for places is in progress anyway.
    """
    search = search_of(state, accept.request, TaskRequest, sender=sender)
    if search is None:
        return ()
    if accept.count > search.asked_left:
        text = f"{accept.count} tasks for a request of {search.asked_left}"
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=text),)
    count_given(state, search, accept.request, given=accept.count, asks_left=accept.asks_left)
    return (*_pass_accept(search, accept.count), *after_accept(state, search, accept.request, now=now))


def waiting_behind(state: ModuleState, neighbor: Neighbor) -> int:
    """Return how many tasks wait behind a neighbor, according to its view."""
    view = view_behind(state, neighbor)
    return view.message.waiting if view is not None else 0


def _pass_accept(search: Search, count: int) -> tuple[Action, ...]:
    decision = Decision(what="task_accept", task=search.request.search.hex()[:8], text=f"{count} tasks")
    if search.asker.relation is Relation.SELF:
        return (decision,)
    accept = TaskAccept(request=search.request.id, count=count, asks_left=search.asks_left)
    return (decision, SendControl(to=search.asker.system, message=accept))


def _sources(state: ModuleState, asker: SystemId, relations: tuple[Relation, ...], /) -> tuple[TaskSource, ...]:
    """Return the neighbors that may be asked, and behind which tasks wait or may move."""
    views = ((each, view_behind(state, each)) for each in reachable(state, asker, relations))
    return tuple(
        TaskSource(
            system=each.system,
            relation=each.relation,
            waiting=view.message.waiting,
            lets_go=view.message.lets_go,
        )
        for each, view in views
        if view is not None and (view.message.waiting or view.message.lets_go)
    )


def _free_slots(state: ModuleState) -> int:
    """Return the free slots here; for a system without a machine, those that its subtree surely has."""
    sdv = own_sdv(state)
    if sdv is not None:
        free = sdv.description().get("free_slots")
        return free if isinstance(free, int) else 0
    up = state.updates.indexed_up
    (slots,) = up.attribute_columns("free_slots")
    return sum(each.count * max(0, ends[0]) for each, ends in zip(up.vector.classes, slots.ends, strict=True) if ends)


def _is_asking(state: ModuleState) -> bool:
    return any(
        system == state.system and isinstance(search.request, TaskRequest)
        for (system, _), search in state.hop.searches.items()
    )


def _wants(state: ModuleState, ask: Asking, now: Instant) -> bool:
    query = HereQuery(
        here=own_facts(state, now),
        has_machine=state.updates.measured is not None,
        subtree=state.updates.indexed_up,
        now=state.calendar(now),
    )
    return ask.is_wanted(query)
