"""Slots kept free for a task that needs several of the places in use (MESSIAHS 6.2 sched_request, at the executor).

The paper grants whatever fits. A task of many slots then starves while narrow tasks share the machine: each freed slot
is taken before there are enough. A shape that has been denied for 5 s and asks again gets a reservation: resources that
it needs are granted to no one else, and claims end after a quantum. So it starts when the running tasks have ended.

There is one reservation at a time, for the shape that was denied first. It lasts as long as its shape is asked for and
the ends of runs add to what is kept free. It keeps resources idle, so it ends if nothing was added for an hour, or if
its origin does not use it; its neighbor then gets no other for three times as long as it lasted.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision
from messiahs.core.interface.messages import DenyCode, SchedRequest
from messiahs.core.interface.policies import Need
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant, after
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import Reservation, Starved, StarvedKey
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import free_here, missing_for, reserved_places, reserving_claims
from messiahs.core.task_filter.matching import why_not_here
from messiahs.core.task_filter.task_order import order_of, sent_facts

PATIENCE_NS = 5 * SECOND
"""A shape that has been denied for this long gets a reservation when it asks again."""
GATHERING_NS = 1 * HOUR
"""A reservation ends if for so long nothing was added to what is kept free for it."""
UNUSED_READY_NS = 30 * SECOND
"""How long reserved resources stay free for an origin that does not use them."""
_LEAST_NS = 30 * SECOND
_GAPS = 4
"""A reservation ends if its shape does not ask again within this many times the interval of its last two requests."""
_LONGEST_GAP_NS = 10 * MINUTE
_PENALTY = 3
_REMEMBERED_NS = 7 * MINUTE
"""Longer than any origin waits between two requests."""
_LIMIT = 64
"""Shapes remembered per neighbor."""
_MACHINES = 4
"""Most machines that reserve for one search: its task will run on one of them."""


def may_use_reserved(state: ModuleState, search: Search, now: Instant) -> bool:
    """Return whether a request may take reserved resources: its own, or those of a shape that it outranks."""
    reservation = state.executor.reservation
    if reservation is None or reservation.key == _key_of(search):
        return True
    if state.policy.selection.keeps_arrival:
        return False
    asker, _, tdv, _ = reservation.key
    request = _request_of(search)
    holder = sent_facts(state, asker, tdv)
    other = sent_facts(state, search.asker.system, request.tdv)
    return order_of(state, (holder, other), now)[0] == 1


def note_served(state: ModuleState, search: Search, now: Instant) -> None:
    """Forget that a shape was denied, because it has places now."""
    key = _key_of(search)
    state.executor.starved.pop(key, None)
    if state.executor.reservation is not None and state.executor.reservation.key == key:
        _drop(state, now)


def note_starved(state: ModuleState, search: Search, need: Need, /, now: Instant) -> tuple[Action, ...]:
    """Remember a shape that was denied for lack of free places, and reserve for a shape denied for long."""
    here = free_here(state, uses_reserved=True)
    if here is None or why_not_here(need, here) is not DenyCode.NO_CAPACITY:
        return ()
    starved, key = state.executor.starved, _key_of(search)
    for old in [old for old, each in starved.items() if now - each.asked_at > _REMEMBERED_NS]:
        del starved[old]
    before = starved.get(key)
    if before is None:
        if sum(asker == search.asker.system for asker, *_ in starved) < _LIMIT:
            starved[key] = Starved(since=now, asked_at=now, is_foreign=_request_of(search).is_foreign)
        return ()
    starved[key] = replace(before, asked_at=now)
    if now - before.since < PATIENCE_NS:
        return ()
    lasts_ns = min(_LONGEST_GAP_NS, max(_LEAST_NS, _GAPS * (now - before.asked_at)))
    return _reserve(state, search, need, before, until=after(now, lasts_ns), now=now)


def on_reservation_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """End a reservation that is not used, or for which no request arrives any more."""
    reservation = state.executor.reservation
    if reservation is None:
        return ()
    asker, origin, tdv, requirement = reservation.key
    if asker == state.system:
        shape = state.origin.shapes.get((tdv, requirement))
        if shape is None or not shape.count:
            _drop(state, now)
            return ()
    missing = missing_for(state, reservation)
    ready_at = (reservation.ready_at or now) if not missing else None
    is_left = ready_at is not None and now - ready_at >= UNUSED_READY_NS
    # Only less than ever before counts, so that what comes and goes does not prolong it.
    gathered_at = now if missing < reservation.missing else reservation.gathered_at
    if now >= reservation.until or now - gathered_at >= GATHERING_NS or is_left:
        state.executor.starved.pop(reservation.key, None)
        _drop(state, now)
        withhold_reservations(state, asker, now - reservation.began_at, now)
        return (Decision(what="unreserve", task=str(origin), text=f"{reservation.slots} slots were not taken"),)
    least = min(missing, reservation.missing)
    state.executor.reservation = replace(reservation, ready_at=ready_at, missing=least, gathered_at=gathered_at)
    state.timers.set(TimerKind.RESERVATION, state.system, after(now, SECOND))
    return ()


def withhold_reservations(state: ModuleState, asker: SystemId, idle_ns: int, /, now: Instant) -> None:
    """Reserve nothing for a neighbor for three times as long as it left slots idle."""
    until = max(state.executor.unreserved.get(asker, now), after(now, _PENALTY * idle_ns))
    state.executor.unreserved[asker] = until


def forget_starved(state: ModuleState, neighbor: SystemId, now: Instant) -> None:
    """Forget the shapes of a neighbor that is no longer reachable."""
    starved = state.executor.starved
    for key in [key for key in starved if key[0] == neighbor]:
        del starved[key]
    if state.executor.reservation is not None and state.executor.reservation.key[0] == neighbor:
        _drop(state, now)


def _reserve(
    state: ModuleState, search: Search, need: Need, before: Starved, *, until: Instant, now: Instant
) -> tuple[Action, ...]:
    key, active = _key_of(search), state.executor.reservation
    if active is not None and active.key == key:
        state.executor.reservation = replace(active, until=until)
        return ()
    is_older = active is None or before.since < active.since
    is_barred = now < state.executor.unreserved.get(search.asker.system, now)
    if not is_older or is_barred or _tried(state, search) >= _MACHINES or not _needs_several_places(state, need):
        return ()
    # A neighbor cannot prolong its reservation by changing the shape.
    own = active if active is not None and active.key[0] == search.asker.system else None
    made = Reservation(
        key=key,
        slots=need.slots,
        mem_bytes=need.mem_bytes,
        disk_bytes=need.disk_bytes,
        uses=need.uses,
        since=before.since,
        began_at=own.began_at if own is not None else now,
        gathered_at=own.gathered_at if own is not None else now,
        until=until,
    )
    state.executor.reservation = replace(made, missing=missing_for(state, made))
    state.timers.set(TimerKind.RESERVATION, state.system, after(now, SECOND))
    mark_changed(state, now)
    request = _request_of(search)
    text = f"{need.slots} slots for {request.origin}, denied for {(now - before.since) // SECOND} s"
    return (Decision(what="reserve", task=request.search.hex()[:8], text=text),)


def _needs_several_places(state: ModuleState, need: Need) -> bool:
    """Return whether no single place in use would be enough; otherwise the next free place serves the request."""
    in_use = [claim.need for claim in reserving_claims(state) if reserved_places(claim)]
    amounts = (
        (need.slots, [each.slots for each in in_use]),
        (need.mem_bytes, [each.mem_bytes for each in in_use if each.mem_bytes]),
        (need.disk_bytes, [each.disk_bytes for each in in_use if each.disk_bytes]),
        *((amount, [taken for each in in_use if (taken := dict(each.uses).get(name))]) for name, amount in need.uses),
    )
    return any(used and amount > min(used) for amount, used in amounts)


def _tried(state: ModuleState, search: Search) -> int:
    """Return how many other systems a search has asked in vain, not counting those on its path.

    The origin is assumed to have the limits of this module.
    """
    request, limits = _request_of(search), state.policy.limits
    return (limits.asks - request.asks_left) - (limits.hops - request.hops_left)


def _drop(state: ModuleState, now: Instant) -> None:
    mark_changed(state, now)
    state.executor.reservation = None
    state.timers.cancel(TimerKind.RESERVATION, state.system)


def _key_of(search: Search) -> StarvedKey:
    request = _request_of(search)
    return (search.asker.system, request.origin, request.tdv, request.requirement)


def _request_of(search: Search) -> SchedRequest:
    assert isinstance(search.request, SchedRequest), "only places are reserved"
    return search.request
