"""A primary parent assigns sibling links to its children, one after the other (MESSIAHS 5, 7.3; DESIGN: membership).

Each child says where it may be dialed, and which siblings it has. Children that are linked, directly or by others, are
a circle, as those of a topology file are; one without siblings gets into the first circle that has room for it. A child
that takes fewer than its circle has gets no more links, and the others there still learn of each other. Both
ends of a new link learn each other's name and address, and by which roots the parent knows the other. So a parent
assigns only children of its own site; others keep hearing of each other by it. Links of the file are left to the file.

What children have said is not stored: it outlasts their connections, and they say it anew on each. Each child is heard
once within half a minute, so one that says something else each time does not keep the others busy.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl
from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment, SiblingRequest
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership.refusals import refused_of
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.state.membership import SiblingsOf
from messiahs.core.state.module import ModuleState
from messiahs.core.update.counting import is_released

_ASKED_NS: Final = 30 * SECOND
"""How long a child waits at most for the answer to another request."""


def own_request(state: ModuleState) -> tuple[Action, ...]:
    """Ask the primary parent for siblings, if it is connected, of the same site, and counts this system."""
    primaries = (each.system for each in state.neighbors.values() if each.is_primary_parent)
    parent = next((each for each in primaries if not state.membership.is_leaving(each)), None)
    is_asked = parent is not None and parent not in state.identity.apart and state.has_lasting_link(parent)
    if parent is None or not is_asked or not state.identity.siblings or state.membership.is_handing_over:
        return ()
    those = (each.system for each in state.neighbors.values() if each.is_sibling)
    siblings = [each for each in those if not state.membership.is_leaving(each)][: state.identity.siblings]
    refused = refused_of(state, parent)
    request = SiblingRequest(
        address=state.identity.address,
        siblings=tuple(each for each in siblings if not state.membership.is_assigned(each)),
        assigned=tuple(each for each in siblings if state.membership.is_assigned(each) and each not in refused),
        most=state.identity.siblings,
        refused=refused,
    )
    return (SendControl(to=parent, message=request),)


def on_sibling_request(
    state: ModuleState, message: SiblingRequest, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Find a circle for a child, and let it and the others there know each other; former children are withdrawn.

    A child that has asked a short time ago is answered later, by the last thing that it has said until then.
    """
    neighbor = state.neighbors.get(sender)
    if neighbor is None or not neighbor.is_child:
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text="sibling_request, but it is no child"),)
    if state.timers.is_set(TimerKind.SIBLING_ASKED, sender):
        state.membership.asked[sender] = message
        return ()
    state.timers.set(TimerKind.SIBLING_ASKED, sender, after(now, _ASKED_NS))
    known = state.membership.siblings_of
    before = known.pop(sender, None)
    if not _is_eligible(state, sender):
        return ()
    known[sender] = said = SiblingsOf(
        address=message.address,
        of_file=dict.fromkeys(message.siblings),
        assigned=dict.fromkeys(message.assigned),
        most=message.most,
        refused=dict.fromkeys(message.refused),
    )
    refused = _withdraw_from(state, sender, message.refused)
    withdrawn = tuple(
        each for each in said.assigned if not _may_have(state, sender, each) or _is_refused(state, sender, each)
    )
    for each in withdrawn:
        del said.assigned[each]
    is_same = before is not None and before.address == said.address
    actions = _link(state, sender, _circle_for(state, sender), is_same=is_same, withdrawn=withdrawn)
    return (*refused, *actions, *_welcome(state, sender))


def on_asked_timeout(state: ModuleState, child: SystemId, now: Instant) -> tuple[Action, ...]:
    """Answer what a child has asked meanwhile, if it is one still."""
    message, neighbor = state.membership.asked.pop(child, None), state.neighbors.get(child)
    if message is None or neighbor is None or not neighbor.is_child:
        return ()
    return on_sibling_request(state, message, sender=child, now=now)


def withdraw(state: ModuleState, child: SystemId) -> tuple[Action, ...]:
    """Take a system that is no primary child any more from those that it was assigned to."""
    known = state.membership.siblings_of
    known.pop(child, None)
    state.membership.asked.pop(child, None)
    return _withdraw_from(state, child, known)


def _withdraw_from(state: ModuleState, child: SystemId, systems: Iterable[SystemId]) -> tuple[Action, ...]:
    known, actions = state.membership.siblings_of, list[Action]()
    for system in systems:
        if system in known and child in known[system].assigned:
            del known[system].assigned[child]
            actions.extend(_assign(state, system, (), withdrawn=(child,)))
    return tuple(actions)


def _link(
    state: ModuleState,
    child: SystemId,
    circle: tuple[SystemId, ...],
    *,
    is_same: bool = False,
    withdrawn: tuple[SystemId, ...] = (),
) -> tuple[Action, ...]:
    """Assign a child and those of a circle to each other; if its address `is_same`, only new partners are told."""
    known, actions = state.membership.siblings_of, list[Action]()
    partners = _partners(state, child, circle)
    for partner in partners:
        is_told = is_same and child in known[partner].assigned
        known[child].assigned[partner] = known[partner].assigned[child] = None
        if not is_told:
            actions.extend(_assign(state, partner, (child,)))
    return (*actions, *_assign(state, child, partners, withdrawn=withdrawn))


def _welcome(state: ModuleState, child: SystemId) -> tuple[Action, ...]:
    """Link the circle of a child with children that asked earlier, and for which there was none."""
    circle, actions = _circle_of(state, child), list[Action]()
    for other in state.membership.siblings_of:
        is_alone = other not in circle and len(_circle_of(state, other)) == 1
        if is_alone and _may_join(state, other, circle):
            actions.extend(_link(state, other, circle))
            circle = (*circle, other)
    return tuple(actions)


def _assign(
    state: ModuleState, child: SystemId, siblings: Iterable[SystemId], *, withdrawn: tuple[SystemId, ...] = ()
) -> tuple[Action, ...]:
    """Tell a child; one without a connection asks again when it has one."""
    known, roots = state.membership.siblings_of, state.identity.roots_of_site
    assigned = tuple(AssignedSibling(system=each, address=known[each].address, roots=roots) for each in siblings)
    if not (assigned or withdrawn) or not state.updates.links.get(child):
        return ()
    return (SendControl(to=child, message=SiblingAssignment(siblings=assigned, withdrawn=withdrawn)),)


def _is_eligible(state: ModuleState, system: SystemId) -> bool:
    """Return whether a system is a child of this site."""
    neighbor = state.neighbors.get(system)
    is_child = neighbor is not None and neighbor.is_child and not state.membership.is_leaving(system)
    return is_child and system not in state.identity.apart and system not in state.shut_off


def _may_have(state: ModuleState, child: SystemId, other: SystemId) -> bool:
    """Return whether a child may keep a sibling, which may not have said yet that this system is its primary parent."""
    return other != child and _is_eligible(state, other) and not is_released(state, other)


def _is_refused(state: ModuleState, one: SystemId, other: SystemId) -> bool:
    """Return whether one of two children does not take the other."""
    known = state.membership.siblings_of
    return any(child in known and sibling in known[child].refused for child, sibling in ((one, other), (other, one)))


def _is_assigned(state: ModuleState, one: SystemId, other: SystemId) -> bool:
    """Return whether the link between two in a circle is one that this parent assigns, and possible."""
    known = state.membership.siblings_of
    if one == other or other not in known or _is_refused(state, one, other):
        return False
    first, second = known[one], known[other]
    return bool(first.address or second.address) and not (other in first.of_file and one in second.of_file)


def _circle_for(state: ModuleState, child: SystemId) -> tuple[SystemId, ...]:
    """Return the systems that are to be linked with a child: its own circle, or the first with room for it.

    A circle that is too large, because of what its members say, gets no more links.
    """
    own = _circle_of(state, child)
    if len(own) > 1:
        return own if _has_room(state, own) else ()
    passed = {child}
    for other in state.membership.siblings_of:
        if other in passed:
            continue
        circle = _circle_of(state, other)
        passed.update(circle)
        if _may_join(state, child, circle):
            return circle
    return ()


def _may_join(state: ModuleState, child: SystemId, circle: tuple[SystemId, ...]) -> bool:
    """Return whether a circle has room for a child, and this parent may link it with one of them."""
    return bool(_partners(state, child, circle)) and _has_room(state, (*circle, child))


def _partners(state: ModuleState, child: SystemId, circle: tuple[SystemId, ...]) -> tuple[SystemId, ...]:
    """Return those of a circle that this parent links with a child: only who takes all of the circle gets more."""
    known, others = state.membership.siblings_of, len({child, *circle}) - 1
    possible = (each for each in circle if _is_assigned(state, child, each))
    return tuple(
        each
        for each in possible
        if min(known[child].most, known[each].most) >= others
        or (each in known[child].assigned and child in known[each].assigned)
    )


def _has_room(state: ModuleState, circle: tuple[SystemId, ...]) -> bool:
    """Return whether each of a circle may be linked with all others, within the bound of this site."""
    return len(circle) <= 1 + state.identity.siblings


def _circle_of(state: ModuleState, child: SystemId) -> tuple[SystemId, ...]:
    """Return a child and those linked with it, directly or by others, in the order in which they are found."""
    circle = {child: None}
    pending = [child]
    while pending and len(circle) <= state.identity.siblings + 1:
        for other in _linked(state, pending.pop()):
            if other not in circle:
                circle[other] = None
                pending.append(other)
    return tuple(circle)


def _linked(state: ModuleState, child: SystemId) -> Iterator[SystemId]:
    """Yield the children with which a child has a link as both say, as far as both have said anything yet."""
    known = state.membership.siblings_of
    if child in known:
        for other in (*known[child].assigned, *sorted(known[child].of_file)):
            if _may_have(state, child, other) and (other not in known or known[other].has(child)):
                yield other
        return
    for other, said in known.items():
        if said.has(child):
            yield other
