"""Vectors as they leave, each computed once: U, D for each child, and what is revealed of them (MESSIAHS 7.2, 7.3)."""

from collections.abc import Iterator

from messiahs.core.compaction import compact
from messiahs.core.ids import SystemId
from messiahs.core.messages import StatusVector, VectorKind
from messiahs.core.neighbors import Neighbor
from messiahs.core.ports import Policy
from messiahs.core.state import ModuleState
from messiahs.core.sums import Views, in_down_of, in_up, vector_for_child, vector_for_parents
from messiahs.core.vectors import Vector
from messiahs.core.views import Sums

_MOST_WAITING = 1_000_000_000


def sum_up(state: ModuleState) -> Sums:
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
    views = passed_on(heard, state.policy)
    own, keys = state.updates.own, state.policy.keys
    if known is not None and known.own == own and _from_below(known.heard) == _from_below(heard):
        up = known.up
        revealed = {place: told for place, told in known.revealed.items() if place[0] is None}
    else:
        revealed = {}
        up = compact(vector_for_parents(own, state.neighbors.values(), views=views, keys=keys), keys=keys)
    return Sums(
        own=own,
        heard=heard,
        neighbors=dict(state.neighbors),
        policy=state.policy,
        passed_on=views,
        primary_children=frozenset(each.system for each in state.neighbors.values() if each.is_primary_child),
        up=up,
        revealed=revealed,
    )


def passed_on(heard: Views, policy: Policy) -> Views:
    """Give what was heard, less what the policy does not pass on of what children said."""
    return {
        (system, kind): policy.pass_on(vector) if kind is VectorKind.FOR_PARENTS else vector
        for (system, kind), vector in heard.items()
    }


def _from_below(heard: Views) -> Views:
    return {key: vector for key, vector in heard.items() if key[1] is VectorKind.FOR_PARENTS}


def vector_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, sums: Sums, /) -> Vector:
    """Give what a neighbor is told: `reveal` comes last, once for all that are told the same."""
    unheard = _unheard_by(state, neighbor, sums) if kind is VectorKind.FOR_CHILDREN else None
    place = unheard, state.policy.audience_of(neighbor)
    if place not in sums.revealed:
        vector = sums.up if unheard is None else _down(state, neighbor, sums, unheard)
        sums.revealed[place] = state.policy.reveal(vector, neighbor)
    return sums.revealed[place]


def _unheard_by(state: ModuleState, child: Neighbor, sums: Sums) -> frozenset[SystemId]:
    return sums.primary_children.difference((child.system, *_heard_by(state, child.system)))


def _down(state: ModuleState, child: Neighbor, sums: Sums, unheard: frozenset[SystemId]) -> Vector:
    """Give D; children that do not hear the same siblings are sent the same."""
    if unheard not in sums.down:
        keys = state.policy.keys
        down = vector_for_child(
            child.system,
            state.updates.own,
            neighbors=state.neighbors.values(),
            views=sums.passed_on,
            hears=_heard_by(state, child.system),
            keys=keys,
        )
        sums.down[unheard] = compact(down, keys=keys)
    return sums.down[unheard]


def waiting_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, /) -> int:
    """Count the tasks that wait where the machines of the vector are, as far as that is known."""
    if not state.policy.reveals_to(neighbor):
        return 0
    heard = _summed_up(state, neighbor, kind)
    return min(_MOST_WAITING, state.origin.waiting + sum(message.waiting for message in heard))


def makes_room_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, /) -> bool:
    """Say whether one of the machines of the vector may make room for a task though nothing is free."""
    if not state.policy.reveals_to(neighbor):
        return False
    orders = state.policy.task_order is not None or any(rule.reads_waiting for rule in state.policy.running)
    is_here = orders and state.updates.measured is not None
    return is_here or any(message.makes_room for message in _summed_up(state, neighbor, kind))


def lets_go_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, /) -> bool:
    """Say whether tasks that run on one of the machines of the vector may go to whoever asks for some."""
    if not state.policy.reveals_to(neighbor):
        return False
    is_here = state.policy.migrating.offers_running and any(claim.live for claim in state.executor.claims.values())
    return is_here or any(message.lets_go for message in _summed_up(state, neighbor, kind))


def _summed_up(state: ModuleState, neighbor: Neighbor, kind: VectorKind, /) -> Iterator[StatusVector]:
    """Give what was heard last of those whose machines are in a vector."""
    neighbors = state.neighbors.values()
    if kind is VectorKind.FOR_CHILDREN:
        keys = in_down_of(neighbor.system, neighbors, hears=_heard_by(state, neighbor.system))
    else:
        keys = in_up(neighbors)
    views = (state.updates.views.get(key) for key in keys)
    return (view.message for view in views if view is not None)


def _heard_by(state: ModuleState, child: SystemId) -> tuple[SystemId, ...]:
    view = state.updates.views.get((child, VectorKind.FOR_PARENTS))
    return view.message.hears if view is not None else ()
