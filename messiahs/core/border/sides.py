"""The two sides of a border, and what is hidden from whom (MESSIAHS 4)."""

from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState


def is_border(state: ModuleState) -> bool:
    """Return whether this system is the border of the systems below it."""
    return bool(state.identity.border_key)


def crosses(state: ModuleState, one: SystemId, other: SystemId, /) -> bool:
    """Return whether two neighbors, or this system itself, are on different sides of this border."""
    return is_border(state) and _is_outside(state, one) != _is_outside(state, other)


def is_hidden(state: ModuleState, system: SystemId, *, viewer: SystemId) -> bool:
    """Return whether a neighbor and what is behind it (or this system's own users) are hidden from another neighbor.

    The inside always is; the outside is for those children to whom the policy shows a name in its place.
    """
    if viewer == state.system or not crosses(state, system, viewer):
        return False
    return _is_outside(state, viewer) or bool(state.policy.disclosure.name_for(state.neighbors[viewer]))


def hides_from(state: ModuleState, viewer: SystemId) -> bool:
    """Return whether anything is hidden from a neighbor."""
    if not is_border(state) or viewer not in state.neighbors:
        return False
    return _is_outside(state, viewer) or bool(state.policy.disclosure.name_for(state.neighbors[viewer]))


def _is_outside(state: ModuleState, system: SystemId) -> bool:
    neighbor = state.neighbors.get(system)
    return neighbor is not None and neighbor.relation is not Relation.CHILD
