"""Where this system is counted, and which neighbors it counts, so that sums count each machine once (MESSIAHS 7.3).

In the papers the primary parent is fixed. Here it is the first parent that is not silent: while the primary parent of
the topology is down, another one counts the systems below, and tasks from elsewhere reach them by it. Each system
decides for itself, and says so in its vectors; the sums of its neighbors follow what it says.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision
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
    neighbors = {
        system: _as_counted(state, neighbor, parent=parent, is_in_place=parent == primary)
        for system, neighbor in state.neighbors.items()
    }
    return Counting(parent=parent, is_in_place=parent == primary, neighbors=neighbors)


def parents_in_order(state: ModuleState) -> tuple[SystemId, ...]:
    """Return the parents: the primary one of the topology, then the others by name."""
    parents = (neighbor for neighbor in state.neighbors.values() if neighbor.is_parent)
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
    return _counted_anew(state, before, now)


def note_silent(state: ModuleState, parent: SystemId, now: Instant) -> tuple[Action, ...]:
    """Be counted at the next parent, if this neighbor is the one at which this system is counted."""
    neighbor = state.neighbors.get(parent)
    if neighbor is None or not neighbor.is_parent or parent in state.updates.silent:
        return ()
    before = counting_of(state).parent
    state.updates.silent[parent] = None
    return _counted_anew(state, before, now)


def note_said(state: ModuleState, before: StatusVector | None, said: StatusVector | None, /) -> bool:
    """Return whether a neighbor's vector, or its loss, changes which neighbors are counted."""
    was, is_now = (each.counted if each is not None else None for each in (before, said))
    if was != is_now:
        state.updates.counting = None
    return was != is_now


def _counted_anew(state: ModuleState, before: SystemId | None, now: Instant) -> tuple[Action, ...]:
    state.updates.counting = None
    parent = counting_of(state).parent
    if parent is None or parent == before:
        return ()
    mark_view_changed(state, now)
    return (Decision(what="counted_at", task=parent, text=f"before: {before}"),)


def _as_counted(state: ModuleState, neighbor: Neighbor, *, parent: SystemId | None, is_in_place: bool) -> Neighbor:
    """Return a neighbor as it is counted: a child where it says so, a sibling if both are counted in one place."""
    as_child = _said(state, neighbor.system, VectorKind.FOR_PARENTS)
    is_primary_child = neighbor.is_child and (neighbor.is_primary_child if as_child is None else as_child)
    is_beside = is_in_place and _said(state, neighbor.system, VectorKind.FOR_SIBLINGS) is not False
    return replace(
        neighbor,
        is_primary_parent=neighbor.system == parent,
        is_primary_child=is_primary_child,
        is_sibling=neighbor.is_sibling and is_beside,
    )


def _said(state: ModuleState, system: SystemId, kind: VectorKind) -> bool | None:
    view = state.updates.views.get((system, kind))
    return view.message.counted if view is not None else None
