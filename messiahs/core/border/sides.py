"""The two sides of a border, and what is hidden from whom (MESSIAHS 4)."""

from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState


def is_border(state: ModuleState) -> bool:
    """Return whether this system is the border of the systems below it."""
    return bool(state.identity.border_key)


def crosses(state: ModuleState, one: SystemId, other: SystemId, /) -> bool:
    """Return whether two neighbors, or this system itself, are on different sides of this border.

    A system that is no neighbor may be on either side, so whatever passes between it and another one crosses.
    """
    if not is_border(state):
        return False
    are_inside = _is_inside(state, one) and _is_inside(state, other)
    return not are_inside and not (_is_outside(state, one) and _is_outside(state, other))


def is_hidden(state: ModuleState, system: SystemId, *, viewer: SystemId) -> bool:
    """Return whether a neighbor and what is behind it (or this system's own users) are hidden from another neighbor.

    The inside always is; the outside is for those children to whom the policy shows a name in its place.
    """
    return viewer != state.system and crosses(state, system, viewer) and hides_from(state, viewer)


def hides_from(state: ModuleState, viewer: SystemId) -> bool:
    """Return whether anything is hidden from another system; from one that is no neighbor it is."""
    if not is_border(state) or viewer == state.system:
        return False
    return not _is_inside(state, viewer) or bool(state.policy.disclosure.name_for(state.neighbors[viewer]))


def _is_inside(state: ModuleState, system: SystemId) -> bool:
    neighbor = state.neighbors.get(system)
    return system == state.system or (neighbor is not None and neighbor.relation is Relation.CHILD)


def _is_outside(state: ModuleState, system: SystemId) -> bool:
    return system in state.neighbors and not _is_inside(state, system)
