"""The siblings that the primary parent assigns to this module: neighbors of run time (MESSIAHS 5; DESIGN: membership).

No neighbor that the topology file or an administrator has entered is changed, and what refusals.py refuses is not
entered. Of very many assignments within half a minute, those after the first 32 are entered together at its end.
"""

from typing import Final

from messiahs.core.interface.actions import Action, Decision, Link, Report, ReportCode, Store
from messiahs.core.interface.limits import SIBLINGS_LIMIT
from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment
from messiahs.core.interface.membership_rows import MemberRow, RemovalCause
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership.leaving import leave
from messiahs.core.membership.refusals import is_refused, problem_with, refuse
from messiahs.core.membership.relations import enter
from messiahs.core.membership.siblings import own_request
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.membership import Assigning
from messiahs.core.state.module import ModuleState

_INTERVAL_NS: Final = 30 * SECOND
_AT_ONCE: Final = 32
"""Assignments of a parent that are heard at once within this time: each newcomer of a circle makes one."""


def on_sibling_assignment(
    state: ModuleState, message: SiblingAssignment, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Enter assigned siblings, and leave the withdrawn ones; a former primary parent assigns nothing any more.

    The parent is told of those that are refused, once. What it assigns too soon after many others is entered later.
    """
    parent = state.neighbors.get(sender)
    if parent is None or not parent.is_parent or sender in state.identity.apart:
        return (_report(sender, "sibling_assignment, but it is no parent of this site"),)
    if not parent.is_primary_parent or state.membership.is_handing_over or state.membership.is_leaving(sender):
        return ()
    assigning = state.membership.assigning.setdefault(sender, Assigning())
    if assigning.heard >= _AT_ONCE:
        assigning.later = _joined(assigning.later, message)
        return ()
    if not assigning.heard:
        state.timers.set(TimerKind.SIBLING_ASSIGNED, sender, after(now, _INTERVAL_NS))
    assigning.heard += 1
    return _entered(state, message, sender, now)


def on_assigned_timeout(state: ModuleState, parent: SystemId, now: Instant) -> tuple[Action, ...]:
    """Enter what a parent has assigned meanwhile, if it is one still."""
    assigning, neighbor = state.membership.assigning.pop(parent, None), state.neighbors.get(parent)
    if assigning is None or assigning.later is None or neighbor is None or not neighbor.is_parent:
        return ()
    return on_sibling_assignment(state, assigning.later, sender=parent, now=now)


def _joined(before: SiblingAssignment | None, message: SiblingAssignment) -> SiblingAssignment:
    """Return two assignments as one; of too many siblings, those that were named last."""
    if before is None:
        return message
    kept = (each for each in before.siblings if each.system not in message.withdrawn)
    siblings = {each.system: each for each in (*kept, *message.siblings)}
    withdrawn = dict.fromkeys((*before.withdrawn, *message.withdrawn))
    return SiblingAssignment(
        siblings=tuple(siblings.values())[-SIBLINGS_LIMIT:],
        withdrawn=tuple(withdrawn)[-SIBLINGS_LIMIT:],
    )


def _entered(state: ModuleState, message: SiblingAssignment, sender: SystemId, now: Instant) -> tuple[Action, ...]:
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
