"""The unmet demand that goes up with the vectors: that of local users, and of the primary children (MESSIAHS 7.2).

Each task waits at one origin, and each system reports to the one parent that counts it, so that no task is in a sum
twice. A sum is made once a period; vectors that are sent between two periods have the last one.
"""

from collections.abc import Mapping
from typing import Final

from messiahs.core.border.sides import hides_from
from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.demand import Demand, redacted, summed
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.demand import Present
from messiahs.core.state.module import ModuleState
from messiahs.core.update.counting import counting_of
from messiahs.core.update.sums import in_up

_MOST_PROCESSORS: Final = 1 << 16
"""What one task counts at most: no machine has more, and one absurd number would hide what all others lack."""


def sum_demand(state: ModuleState, now: Instant) -> None:
    """Count the waiting tasks, and add up what the primary parent is to get until the next period."""
    state.demand.sample(_present(state), now)
    state.demand.subtree = demand_below(state, own_demand(state, now))


def own_demand(state: ModuleState, now: Instant) -> Demand:
    """Return the demand of the local users as of now; nothing changes."""
    return state.demand.seen_with(_present(state), now)


def demand_of_children(state: ModuleState) -> Mapping[SystemId, Demand]:
    """Return the demand that each primary child reports, with that of the systems below it."""
    keys = in_up(counting_of(state).neighbors.values())
    views = {key[0]: view for key in keys if (view := state.updates.views.get(key)) is not None}
    return {system: view.message.demand for system, view in views.items()}


def demand_below(state: ModuleState, own: Demand, /) -> Demand:
    """Return the demand of this system and of all systems below it that it counts."""
    reported = demand_of_children(state).values()
    return summed(each for demand in (own, *reported) for each in demand)


def demand_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, /) -> Demand:
    """Return what a neighbor gets: the parent that counts this system what the policy reveals, and all others nothing.

    Unless the policy says so, a parent of another site gets nothing, and neither does one outside this border.
    """
    is_counted_there = kind is VectorKind.FOR_PARENTS and counting_of(state).parent == neighbor.system
    if not state.demand.subtree or not is_counted_there:
        return ()
    disclosure = state.policy.disclosure
    is_apart = neighbor.system in state.identity.apart or hides_from(state, neighbor.system)
    if not disclosure.reveals_demand_to(neighbor, is_apart=is_apart):
        return ()
    return redacted(
        state.demand.subtree, lambda name: disclosure.shows(name, neighbor), least=disclosure.least_shown_to(neighbor)
    )


def _present(state: ModuleState) -> Present:
    present: Present = {}
    for shape in state.origin.shapes.values():
        if shape.count and shape.lacks is not None:
            tasks, processors = present.get(shape.lacks, (0, 0))
            present[shape.lacks] = (
                tasks + shape.count,
                processors + shape.count * min(_MOST_PROCESSORS, shape.need.slots),
            )
    return present
