"""Where this system is counted, and which neighbors it counts, so that sums count each machine once (MESSIAHS 7.3).

In the papers the primary parent is fixed. Here it is the first parent that is not silent: while the primary parent of
the topology is down, another one counts the systems below, and tasks from elsewhere reach them by it. Each system
decides for itself, and says so in its vectors; the sums of its neighbors follow what it says.
"""

from dataclasses import replace
from itertools import islice, zip_longest

from messiahs.core.interface.actions import Action, Decision
from messiahs.core.interface.limits import SETTLING_LIMIT
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.changes import mark_view_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Counting


def counting_of(state: ModuleState) -> Counting:
    """Return where this system is counted now, and which neighbors it counts."""
    if state.updates.counting is None:
        state.updates.counting = find_counting(state)
    return state.updates.counting


def find_counting(state: ModuleState) -> Counting:
    """Return the same, found anew."""
    parents = parents_in_order(state)
    primary = next(iter(parents), None)
    parent = next((each for each in parents if each not in state.updates.silent), primary)
    if state.membership.is_handing_over:
        parent = None
    is_in_place = parent == primary
    neighbors = {
        system: _as_counted(state, neighbor, parent=parent, is_in_place=is_in_place)
        for system, neighbor in state.neighbors.items()
    }
    return Counting(parent=parent, is_in_place=is_in_place, neighbors=neighbors)


def parents_in_order(state: ModuleState) -> tuple[SystemId, ...]:
    """Return the parents: the primary one of the topology, then the others by name; none that is being left."""
    those = (neighbor for neighbor in state.neighbors.values() if neighbor.is_parent)
    parents = (each for each in those if not state.membership.is_leaving(each.system))
    return tuple(each.system for each in sorted(parents, key=lambda each: (not each.is_primary_parent, each.system)))


def is_counted(counting: Counting, neighbor: SystemId, kind: VectorKind, /) -> bool | None:
    """Return what a vector for a neighbor says about where this system is counted; None for a child."""
    match kind:
        case VectorKind.FOR_PARENTS:
            return counting.parent == neighbor
        case VectorKind.FOR_SIBLINGS:
            return counting.is_in_place
        case VectorKind.FOR_CHILDREN:
            return None


def note_heard(state: ModuleState, parent: SystemId, now: Instant) -> tuple[Action, ...]:
    """Count on a parent again that was silent."""
    if parent not in state.updates.silent:
        return ()
    before = counting_of(state).parent
    del state.updates.silent[parent]
    return counted_anew(state, before, now)


def note_silent(state: ModuleState, parent: SystemId, now: Instant) -> tuple[Action, ...]:
    """Be counted at the next parent, if this neighbor is the one at which this system is counted."""
    neighbor = state.neighbors.get(parent)
    if neighbor is None or not neighbor.is_parent or parent in state.updates.silent:
        return ()
    before = counting_of(state).parent
    state.updates.silent[parent] = None
    return counted_anew(state, before, now)


def settling_in(state: ModuleState) -> tuple[int, ...]:
    """Return the marks of handovers whose machines are in no sum here now: own ones, and those of counted children.

    If there are too many, each child has its share, and the others follow when those are settled.
    """
    views, neighbors = state.updates.views, counting_of(state).neighbors
    own = sorted(each.mark for each in state.membership.released.values() if not each.is_settled)
    below = (
        view.message.settling
        for (system, kind), view in sorted(views.items(), key=lambda each: each[0][0])
        if view.message.settling and kind is VectorKind.FOR_PARENTS and neighbors[system].is_primary_child
    )
    in_turn = dict.fromkeys(mark for turn in zip_longest(own, *below) for mark in turn if mark is not None)
    return tuple(sorted(islice(in_turn, SETTLING_LIMIT)))


def note_said(state: ModuleState, before: StatusVector | None, said: StatusVector | None, /) -> bool:
    """Return whether a neighbor's vector, or its loss, changes which neighbors are counted."""
    was, is_now = ((each.counted, each.handovers) if each is not None else None for each in (before, said))
    if was != is_now:
        state.updates.counting = None
    return was != is_now


def counted_anew(state: ModuleState, before: SystemId | None, now: Instant) -> tuple[Action, ...]:
    """Find anew where this system is counted, after a change of its parents; `before` counted it until now."""
    state.updates.counting = None
    parent = counting_of(state).parent
    if parent is None or parent == before:
        return ()
    mark_view_changed(state, now)
    return (Decision(what="counted_at", task=parent, text=f"before: {before}"),)


def _as_counted(state: ModuleState, neighbor: Neighbor, *, parent: SystemId | None, is_in_place: bool) -> Neighbor:
    """Return a neighbor as it is counted: a child where it says so, a sibling if both are counted in one place.

    One whose link is being ended is in no sum.
    """
    if state.membership.is_leaving(neighbor.system):
        return Neighbor(system=neighbor.system)
    as_child = _said(state, neighbor.system, VectorKind.FOR_PARENTS)
    if is_released(state, neighbor.system):
        as_child = False
    is_primary_child = neighbor.is_child and (neighbor.is_primary_child if as_child is None else as_child)
    is_beside = is_in_place and _said(state, neighbor.system, VectorKind.FOR_SIBLINGS) is not False
    is_primary_parent, is_sibling = neighbor.system == parent, neighbor.is_sibling and is_beside
    counted = (is_primary_parent, is_primary_child, is_sibling)
    if counted == (neighbor.is_primary_parent, neighbor.is_primary_child, neighbor.is_sibling):
        return neighbor
    return replace(
        neighbor, is_primary_parent=is_primary_parent, is_primary_child=is_primary_child, is_sibling=is_sibling
    )


def is_released(state: ModuleState, child: SystemId) -> bool:
    """Return whether a child is counted elsewhere by a handover: it has not said since that it is counted here again.

    A vector that is older than the handover says nothing.
    """
    release = state.membership.released.get(child)
    if release is None:
        return False
    is_older = _handovers(state, child) < release.number
    return is_older or _said(state, child, VectorKind.FOR_PARENTS) is False


def _handovers(state: ModuleState, system: SystemId) -> int:
    view = state.updates.views.get((system, VectorKind.FOR_PARENTS))
    return view.message.handovers if view is not None else 0


def _said(state: ModuleState, system: SystemId, kind: VectorKind) -> bool | None:
    view = state.updates.views.get((system, kind))
    return view.message.counted if view is not None else None
