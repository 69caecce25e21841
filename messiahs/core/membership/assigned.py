"""The siblings that the primary parent assigns to this module: neighbors of run time (MESSIAHS 5; DESIGN: membership).

No neighbor that the topology file or an administrator has entered is changed, and what refusals.py refuses is not
entered.
"""

from messiahs.core.interface.actions import Action, Decision, Link, Report, ReportCode, Store
from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment
from messiahs.core.interface.membership_rows import MemberRow, RemovalCause
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership.leaving import leave
from messiahs.core.membership.refusals import is_refused, problem_with, refuse
from messiahs.core.membership.relations import enter
from messiahs.core.membership.siblings import own_request
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState


def on_sibling_assignment(
    state: ModuleState, message: SiblingAssignment, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Enter assigned siblings, and leave the withdrawn ones; a former primary parent assigns nothing any more.

    The parent is told of those that are refused, once.
    """
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
            actions.extend(leave(state, system, now, text=text, cause=RemovalCause.CONSEQUENCE))
    is_news = False
    for sibling in message.siblings:
        problem = problem_with(state, sibling)
        if problem:
            actions.append(_report(sender, f"assigns {sibling.system[:80]} as a sibling, {problem}"))
        if is_refused(state, sibling):
            is_news = refuse(state, sibling, parent=sender) or is_news
        elif not problem:
            actions.extend(_assigned(state, sibling, sender, now))
    return (*actions, *own_request(state)) if is_news else tuple(actions)


def _assigned(state: ModuleState, sibling: AssignedSibling, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    system, membership = sibling.system, state.membership
    known = membership.members.get(system)
    if system in membership.removed or (system in state.neighbors and (known is None or known.assigned_by is None)):
        return ()
    is_first = state.system < system or not state.identity.address
    address = sibling.address if is_first else ""
    if not sibling.address and not state.identity.address:
        return ()
    if known is not None and (known.address, known.assigned_by) == (address, sender):
        return ()
    neighbor = Neighbor(system=system, is_sibling=True)
    row = MemberRow(neighbor=neighbor, since=now, address=address, text=f"assigned by {sender}", assigned_by=sender)
    membership.members[system] = row
    decision = Decision(what="neighbor_added", task=system, text=row.text)
    return (Store(row=row), decision, *enter(state, neighbor, now), Link(neighbor=neighbor, address=address))


def _report(sender: SystemId, text: str) -> Report:
    return Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=text)
