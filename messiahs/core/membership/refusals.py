"""Assigned siblings that this module does not take (MESSIAHS 2: autonomy; DESIGN: membership).

The parent says names and addresses, and no more: only roots of this site may vouch for an assigned sibling, never those
of another. What people of this site have removed or shut off stays so, no more siblings than the setting are taken, and
one that has left by itself is not taken again for some minutes. The parent learns what is refused, since the other end
would dial in vain.
"""

from typing import Final

from messiahs.core.interface.limits import SIBLINGS_LIMIT
from messiahs.core.interface.membership_messages import AssignedSibling
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, Instant, after
from messiahs.core.model.names import problem_with_name
from messiahs.core.model.trust import matches
from messiahs.core.state.membership import Refusal
from messiahs.core.state.module import ModuleState

_HELD_NS: Final = 10 * MINUTE
"""How long an assigned sibling that has left by itself is not taken again."""


def hold(state: ModuleState, system: SystemId, now: Instant) -> None:
    """Refuse a sibling for some minutes."""
    state.timers.set(TimerKind.SIBLING_HELD, system, after(now, _HELD_NS))


def is_held(state: ModuleState, system: SystemId) -> bool:
    """Return whether a sibling is refused because it has left by itself."""
    return state.timers.is_set(TimerKind.SIBLING_HELD, system)


def refuse(state: ModuleState, sibling: AssignedSibling, *, parent: SystemId) -> bool:
    """Note that a sibling is not taken; return whether that is news for the parent. Too many are not noted."""
    refused = state.membership.refused
    before = refused.get(sibling.system)
    if before is None and len(refused) >= SIBLINGS_LIMIT:
        return False
    refused[sibling.system] = Refusal(sibling=sibling, parent=parent)
    return before is None or before.parent != parent


def refused_of(state: ModuleState, parent: SystemId) -> tuple[SystemId, ...]:
    """Return the siblings of a parent that are refused still; all others are forgotten."""
    membership = state.membership
    membership.refused = {
        system: each
        for system, each in membership.refused.items()
        if each.parent == parent and is_refused(state, each.sibling)
    }
    return tuple(membership.refused)


def is_refused(state: ModuleState, sibling: AssignedSibling) -> bool:
    """Return whether an assigned sibling is not taken now; one that is a neighbor by other ways is none to take."""
    system, membership = sibling.system, state.membership
    removed = membership.removed.get(system)
    if removed is not None and not membership.is_passing(removed):
        return True
    if system in state.neighbors and not membership.is_assigned(system):
        return False
    return bool(problem_with(state, sibling)) or system in state.shut_off or is_held(state, system)


def problem_with(state: ModuleState, sibling: AssignedSibling) -> str:
    """Return what the parent did wrong when it assigned a sibling, "" if nothing."""
    identity, system = state.identity, sibling.system
    if system == identity.system:
        return "which is the name of this module itself"
    unfit = problem_with_name(system)
    if unfit:
        return f"which no system can be called: {unfit}"
    if system in identity.apart or any(matches(system, each.names) for each in identity.other_sites):
        return "for which roots of another site vouch"
    own = identity.roots_of_site
    if own and sibling.roots and set(own).isdisjoint(sibling.roots):
        return "by roots that are not those of this site"
    if system not in state.neighbors and _count(state) >= identity.siblings:
        return f"beyond {identity.siblings}"
    return ""


def _count(state: ModuleState) -> int:
    return sum(each.is_sibling and not state.membership.is_leaving(each.system) for each in state.neighbors.values())
