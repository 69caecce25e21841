"""What a module says of the machines behind it, to whom and when (MESSIAHS 5.3.1, 7.2).

The policy decides what the own machine says, what is passed on, and who is told anything.
"""

from messiahs.core.actions import Action, SendVector
from messiahs.core.describing import describe
from messiahs.core.ids import SystemId
from messiahs.core.instants import HOUR, MILLISECOND, Instant, after
from messiahs.core.messages import StatusVector, VectorKind
from messiahs.core.neighbors import Neighbor
from messiahs.core.placing import on_view_changed
from messiahs.core.state import ModuleState
from messiahs.core.summing import lets_go_for, makes_room_for, sum_up, vector_for, waiting_for
from messiahs.core.timers import TimerKind
from messiahs.core.views import Sums

_CHANGE_INTERVAL_NS = 50 * MILLISECOND
_CHANGE_DELAY_NS = 10 * MILLISECOND
"""What has changed back by then, as a place for a short task does, nobody needs to hear of."""
_OLDEST_NS = 24 * HOUR
"""An age beyond this says nothing more, and would grow out of its field if a neighbor wants that."""


def mark_changed(state: ModuleState, now: Instant) -> None:
    """Advertise soon: something that a vector shows may have changed."""
    if not state.timers.is_set(TimerKind.CHANGE, state.system):
        at, sent_at = after(now, _CHANGE_DELAY_NS), state.updates.sent_at
        if sent_at is not None:
            at = max(at, after(sent_at, _CHANGE_INTERVAL_NS))
        state.timers.set(TimerKind.CHANGE, state.system, at)


def note_waiting(state: ModuleState, now: Instant) -> None:
    """Advertise soon if tasks began to wait here, or wait no longer; how many there are can wait for the period."""
    if bool(state.origin.waiting) != state.updates.had_waiting:
        mark_changed(state, now)


def mark_news(state: ModuleState, now: Instant) -> None:
    """Compute the sums anew and advertise them soon: a neighbor's view came, went, or changed in a key."""
    state.updates.has_news = True
    mark_changed(state, now)


def advertise_to(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Send one neighbor its vectors now, as it asked or because its link is new."""
    return tuple(_send(state, system, message) for message in vectors_for(state, system, now))


def vectors_for(state: ModuleState, system: SystemId, now: Instant) -> tuple[StatusVector, ...]:
    """Give the vectors that one neighbor is to be sent now."""
    neighbor, sums, age_ns = state.neighbors[system], sum_up(state), _oldest_age_ns(state, now)
    return tuple(_vector(state, neighbor, kind, sums=sums, age_ns=age_ns) for kind in kinds_for(neighbor))


def advertise(state: ModuleState, now: Instant, *, only_changed: bool) -> tuple[Action, ...]:
    """Send every neighbor its vectors, or with `only_changed` those that say something new."""
    state.updates.sent_at = now
    before = state.updates.own
    has_waiting = bool(state.origin.waiting)
    has_news = state.updates.has_news or has_waiting != state.updates.had_waiting
    if not describe(state, now, only_changed=only_changed) and not has_news and only_changed:
        return ()
    state.updates.has_news, state.updates.had_waiting = False, has_waiting
    sums, age_ns = sum_up(state), _oldest_age_ns(state, now)
    actions: list[Action] = []
    for system, neighbor in state.neighbors.items():
        if not state.updates.links.get(system):
            continue
        actions.extend(
            _send(state, system, _vector(state, neighbor, kind, sums=sums, age_ns=age_ns))
            for kind in kinds_for(neighbor)
            if not only_changed or not _is_said(state, neighbor, kind, sums)
        )
    if state.updates.own != before:
        actions.extend(on_view_changed(state, before, state.updates.own, now))
    return tuple(actions)


def _send(state: ModuleState, system: SystemId, message: StatusVector) -> SendVector:
    state.updates.sent[system, message.kind] = message
    return SendVector(to=system, message=message)


def _vector(state: ModuleState, neighbor: Neighbor, kind: VectorKind, *, sums: Sums, age_ns: int) -> StatusVector:
    return StatusVector(
        kind=kind,
        vector=vector_for(state, neighbor, kind, sums),
        period_ns=state.policy.timeouts.update_period_ns,
        age_ns=age_ns,
        hears=_hears(state, kind),
        waiting=waiting_for(state, neighbor, kind),
        makes_room=makes_room_for(state, neighbor, kind),
        lets_go=lets_go_for(state, neighbor, kind),
    )


def _oldest_age_ns(state: ModuleState, now: Instant) -> int:
    ages = (view.age_ns(now) for view in state.updates.views.values())
    return min(_OLDEST_NS, max(ages, default=0))


def _is_said(state: ModuleState, neighbor: Neighbor, kind: VectorKind, sums: Sums) -> bool:
    """Say whether a neighbor knows already what there is to say, but for how old that is."""
    sent = state.updates.sent.get((neighbor.system, kind))
    return (
        sent is not None
        and sent.vector == vector_for(state, neighbor, kind, sums)
        and sent.hears == _hears(state, kind)
        and bool(sent.waiting) == bool(waiting_for(state, neighbor, kind))
        and sent.makes_room == makes_room_for(state, neighbor, kind)
        and sent.lets_go == lets_go_for(state, neighbor, kind)
    )


def _hears(state: ModuleState, kind: VectorKind) -> tuple[SystemId, ...]:
    """Name the siblings that are heard, to a parent."""
    if kind is not VectorKind.FOR_PARENTS:
        return ()
    return tuple(sorted(system for system, kind in state.updates.views if kind is VectorKind.FOR_SIBLINGS))


def kinds_for(neighbor: Neighbor) -> tuple[VectorKind, ...]:
    """Which vectors a neighbor gets: U if it is a parent, D if a child, S if a sibling."""
    kinds = (
        (neighbor.is_parent, VectorKind.FOR_PARENTS),
        (neighbor.is_child, VectorKind.FOR_CHILDREN),
        (neighbor.is_sibling, VectorKind.FOR_SIBLINGS),
    )
    return tuple(kind for is_so, kind in kinds if is_so)
