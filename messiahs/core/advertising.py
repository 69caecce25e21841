"""What a module says of the machines behind it, to whom and when (MESSIAHS 5.3.1, 7.2).

The policy decides what the own machine says, what is passed on, and who is told anything.
"""

from messiahs.core.actions import Action, SendVector
from messiahs.core.attributes import Value
from messiahs.core.buckets import bucket_of
from messiahs.core.compaction import compact
from messiahs.core.descriptions import SDV
from messiahs.core.ids import SystemId
from messiahs.core.instants import HOUR, MILLISECOND, Instant, after
from messiahs.core.messages import StatusVector, VectorKind
from messiahs.core.neighbors import Neighbor
from messiahs.core.own_machine import own_sdv
from messiahs.core.placing import on_view_changed
from messiahs.core.ports import Policy
from messiahs.core.state import ModuleState, Sums
from messiahs.core.sums import Views, in_down_of, in_up, vector_for_child, vector_for_parents
from messiahs.core.timers import TimerKind
from messiahs.core.vectors import EMPTY, Vector, vector_of

_CHANGE_INTERVAL_NS = 50 * MILLISECOND
_CHANGE_DELAY_NS = 10 * MILLISECOND
"""What has changed back by then, as a place for a short task does, nobody needs to hear of."""
_OLDEST_NS = 24 * HOUR
"""An age beyond this says nothing more, and would grow out of its field if a neighbor wants that."""
_WHOLE = 10_000
_MOST_WAITING = 1_000_000_000


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
    neighbor, sums, age_ns = state.neighbors[system], _sum_up(state), _oldest_age_ns(state, now)
    return tuple(_send(state, neighbor, kind, sums=sums, age_ns=age_ns) for kind in kinds_for(neighbor))


def advertise(state: ModuleState, now: Instant, *, only_changed: bool) -> tuple[Action, ...]:
    """Send every neighbor its vectors, or with `only_changed` those that say something new."""
    state.updates.sent_at = now
    before = state.updates.own
    has_waiting = bool(state.origin.waiting)
    has_news = state.updates.has_news or has_waiting != state.updates.had_waiting
    if not _describe(state, now, only_changed=only_changed) and not has_news and only_changed:
        return ()
    state.updates.has_news, state.updates.had_waiting = False, has_waiting
    sums, age_ns = _sum_up(state), _oldest_age_ns(state, now)
    actions: list[Action] = []
    for system, neighbor in state.neighbors.items():
        if not state.updates.links.get(system):
            continue
        actions.extend(
            _send(state, neighbor, kind, sums=sums, age_ns=age_ns)
            for kind in kinds_for(neighbor)
            if not only_changed or not _is_said(state, neighbor, kind, sums)
        )
    if state.updates.own != before:
        actions.extend(on_view_changed(state, before, state.updates.own, now))
    return tuple(actions)


def has_changed(before: SDV | None, after: SDV | None, *, policy: Policy) -> bool:
    """Say whether a machine changed so much that its neighbors should know before the period is over.

    That is so if a key, by which machines are told apart and chosen, is in another bucket, or with a policy that names
    a share (1/100 %) if any number changed by more than that. The load, which changes all the time, is no key.
    """
    if before is None or after is None:
        return before != after
    old, new = before.description(), after.description()
    if old.keys() != new.keys() or any(_is_moved(old[key], new[key]) for key in policy.keys if key in new):
        return True
    share = policy.change_share
    return bool(share) and any(_differs(old[name], value, share) for name, value in new.items())


def _is_moved(old: Value, new: Value) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return bucket_of(old) != bucket_of(new)


def _describe(state: ModuleState, now: Instant, *, only_changed: bool) -> bool:
    """Describe the own machine anew; False if it has not changed enough to be worth a vector."""
    sdv = own_sdv(state)
    described = state.policy.describe_here(sdv, state.calendar(now)) if sdv is not None else None
    if only_changed and not has_changed(state.updates.described, described, policy=state.policy):
        return False
    state.updates.described = described
    vector = vector_of(described) if described is not None else EMPTY
    is_new = vector != state.updates.own
    state.updates.own = vector
    return is_new


def _differs(old: Value, new: Value, share: int) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return abs(new - old) * _WHOLE > share * max(abs(old), abs(new))


def _sum_up(state: ModuleState) -> Sums:
    """Compute U once for all parents and siblings (equation 21), and not again before something in it changes."""
    heard = {key: view.message.vector for key, view in state.updates.views.items()}
    known = state.updates.sums
    if known is not None and (known.policy is not state.policy or known.neighbors != state.neighbors):
        known = None
    if known is None or known.own != state.updates.own or known.heard != heard:
        known = state.updates.sums = _new_sums(state, heard, known)
    state.updates.up = known.up
    return known


def _new_sums(state: ModuleState, heard: Views, known: Sums | None) -> Sums:
    """Compute D anew when it is asked for, and U only if something below has changed since the `known` sums."""
    views = {
        (system, kind): state.policy.pass_on(vector) if kind is VectorKind.FOR_PARENTS else vector
        for (system, kind), vector in heard.items()
    }
    own, keys = state.updates.own, state.policy.keys
    if known is not None and known.own == own and _from_below(known.heard) == _from_below(heard):
        up = known.up
    else:
        up = compact(vector_for_parents(own, state.neighbors.values(), views=views, keys=keys), keys=keys)
    return Sums(
        own=own,
        heard=heard,
        neighbors=dict(state.neighbors),
        policy=state.policy,
        passed_on=views,
        primary_children=frozenset(each.system for each in state.neighbors.values() if each.is_primary_child),
        up=up,
    )


def _from_below(heard: Views) -> Views:
    return {key: vector for key, vector in heard.items() if key[1] is VectorKind.FOR_PARENTS}


def _send(state: ModuleState, neighbor: Neighbor, kind: VectorKind, *, sums: Sums, age_ns: int) -> SendVector:
    message = StatusVector(
        kind=kind,
        vector=_vector_for(state, neighbor, kind, sums),
        period_ns=state.policy.timeouts.update_period_ns,
        age_ns=age_ns,
        hears=_hears(state, kind),
        waiting=_waiting_for(state, neighbor, kind),
    )
    state.updates.sent[neighbor.system, kind] = message
    return SendVector(to=neighbor.system, message=message)


def _oldest_age_ns(state: ModuleState, now: Instant) -> int:
    ages = (now - view.received_at + view.message.age_ns for view in state.updates.views.values())
    return min(_OLDEST_NS, max(ages, default=0))


def _vector_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, sums: Sums) -> Vector:
    if not state.policy.reveals_to(neighbor):
        return EMPTY
    if kind is not VectorKind.FOR_CHILDREN:
        return sums.up
    hears = _heard_by(state, neighbor.system)
    unheard = sums.primary_children.difference((neighbor.system, *hears))
    # Children that do not hear the same siblings are told the same.
    if unheard not in sums.down:
        keys = state.policy.keys
        down = vector_for_child(
            neighbor.system,
            state.updates.own,
            neighbors=state.neighbors.values(),
            views=sums.passed_on,
            hears=hears,
            keys=keys,
        )
        sums.down[unheard] = compact(down, keys=keys)
    return sums.down[unheard]


def _waiting_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind) -> int:
    """Count the tasks that wait where the machines of the vector are, as far as that is known."""
    if not state.policy.reveals_to(neighbor):
        return 0
    neighbors = state.neighbors.values()
    if kind is VectorKind.FOR_CHILDREN:
        heard = in_down_of(neighbor.system, neighbors, hears=_heard_by(state, neighbor.system))
    else:
        heard = in_up(neighbors)
    views = (state.updates.views.get(key) for key in heard)
    return min(_MOST_WAITING, state.origin.waiting + sum(view.message.waiting for view in views if view is not None))


def _heard_by(state: ModuleState, child: SystemId) -> tuple[SystemId, ...]:
    view = state.updates.views.get((child, VectorKind.FOR_PARENTS))
    return view.message.hears if view is not None else ()


def _is_said(state: ModuleState, neighbor: Neighbor, kind: VectorKind, sums: Sums) -> bool:
    """Say whether a neighbor knows already what there is to say, but for how old that is."""
    sent = state.updates.sent.get((neighbor.system, kind))
    return (
        sent is not None
        and sent.vector == _vector_for(state, neighbor, kind, sums)
        and sent.hears == _hears(state, kind)
        and bool(sent.waiting) == bool(_waiting_for(state, neighbor, kind))
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
