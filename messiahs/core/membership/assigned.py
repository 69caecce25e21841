"""The siblings that the primary parent assigns to this module: neighbors of run time (MESSIAHS 5; DESIGN: membership).

The parent says names and addresses, and no more: only roots of this site may vouch for an assigned sibling, never those
of another, and no neighbor that the topology file or an administrator has entered is changed. What people of this site
have removed or shut off stays so. A sibling that has left by itself is not taken again for some minutes, unless the
parent has withdrawn it meanwhile.
"""

from messiahs.core.interface.actions import Action, Decision, Link, Report, ReportCode, Store
from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment
from messiahs.core.interface.membership_rows import MemberRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership.leaving import leave
from messiahs.core.membership.relations import enter
from messiahs.core.membership.siblings import roots_of_site
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.names import problem_with_name
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import matches
from messiahs.core.state.module import ModuleState


def on_sibling_assignment(
    state: ModuleState, message: SiblingAssignment, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Enter assigned siblings, and leave the withdrawn ones; a former primary parent assigns nothing any more."""
    parent = state.neighbors.get(sender)
    if parent is None or not parent.is_parent or sender in state.identity.apart:
        return (_report(sender, "sibling_assignment, but it is no parent of this site"),)
    if not parent.is_primary_parent or state.membership.is_handing_over or state.membership.is_leaving(sender):
        return ()
    actions: list[Action] = []
    for system in message.withdrawn:
        state.timers.cancel(TimerKind.SIBLING_HELD, system)
        row = state.membership.members.get(system)
        if row is not None and row.assigned_by == sender and not state.membership.is_leaving(system):
            text = f"{sender} has withdrawn it from the siblings"
            actions.extend(leave(state, system, now, text=text, is_by_file=True))
    for sibling in message.siblings:
        actions.extend(_assigned(state, sibling, sender, now))
    return tuple(actions)


def _assigned(state: ModuleState, sibling: AssignedSibling, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    problem = _problem(state, sibling)
    if problem:
        return (_report(sender, f"assigns {sibling.system[:80]} as a sibling, {problem}"),)
    system, membership = sibling.system, state.membership
    known = membership.members.get(system)
    if system in membership.removed or system in state.shut_off or state.timers.is_set(TimerKind.SIBLING_HELD, system):
        return ()
    if system in state.neighbors and (known is None or known.assigned_by is None):
        return ()
    is_first = state.system < system or not state.identity.address
    address = sibling.address if is_first else ""
    if not sibling.address and not state.identity.address:
        return ()
    if known is not None and (known.address, known.assigned_by) == (address, sender):
        return ()
    if known is None and _count(state) >= state.identity.siblings:
        return (_report(sender, f"assigns {system} as a sibling, beyond {state.identity.siblings}"),)
    neighbor = Neighbor(system=system, is_sibling=True)
    row = MemberRow(neighbor=neighbor, since=now, address=address, text=f"assigned by {sender}", assigned_by=sender)
    membership.members[system] = row
    decision = Decision(what="neighbor_added", task=system, text=row.text)
    return (Store(row=row), decision, *enter(state, neighbor, now), Link(neighbor=neighbor, address=address))


def _problem(state: ModuleState, sibling: AssignedSibling) -> str:
    """Return why this system cannot be a sibling here, "" if it can."""
    identity = state.identity
    if sibling.system == identity.system:
        return "which is the name of this module itself"
    unfit = problem_with_name(sibling.system)
    if unfit:
        return f"which no system can be called: {unfit}"
    if sibling.system in identity.apart or any(matches(sibling.system, each.names) for each in identity.other_sites):
        return "for which roots of another site vouch"
    own = roots_of_site(identity)
    if own and sibling.roots and set(own).isdisjoint(sibling.roots):
        return "by roots that are not those of this site"
    return ""


def _count(state: ModuleState) -> int:
    return sum(each.is_sibling and not state.membership.is_leaving(each.system) for each in state.neighbors.values())


def _report(sender: SystemId, text: str) -> Report:
    return Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=text)
