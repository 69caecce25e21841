"""The neighbors of now: those of the topology file, overlaid by rows (MESSIAHS 5: parents, children and siblings)."""

from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.closing import withdraw_claims
from messiahs.core.interface.actions import Action, Answer, Decision, Forget, Link, Store, Unlink
from messiahs.core.interface.events import MemberAdded, SettingsApplied
from messiahs.core.interface.membership_rows import DrainRow, HandoverRow, MemberRow, RemovalCause, RemovedRow
from messiahs.core.interface.rows import Row, RowKind
from messiahs.core.membership import cycles, draining, handover, leaving, siblings
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.update import advertising, status_vector
from messiahs.core.update.counting import counted_anew, counting_of


def restore(state: ModuleState, rows: Iterable[Row]) -> None:
    """Enter the stored neighbors before anything else is restored."""
    membership = state.membership
    membership.configured = dict(state.neighbors)
    for row in rows:
        match row:
            case MemberRow():
                membership.members[row.system] = row
            case RemovedRow():
                membership.removed[row.system] = row
            case DrainRow():
                draining.enter(state, row)
            case HandoverRow():
                membership.handover = row
            case _:
                continue
    state.neighbors.update({row.system: row.neighbor for row in membership.members.values() if not _yields(state, row)})
    for row in membership.removed.values():
        if row.is_ended:
            state.neighbors.pop(row.system, None)


def resume(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Continue after a restart, when the claims have been restored: the host learns of the neighbors of run time.

    Rows that yield to the topology file are forgotten, and neighbors are left that only an earlier one has named.
    """
    membership = state.membership
    actions: list[Action] = []
    for row in tuple(membership.removed.values()):
        if row.is_ended:
            actions.append(Unlink(neighbor=row.system, text=row.text))
        elif row.system not in state.neighbors:
            # The topology file has dropped it meanwhile: nothing is known of its address.
            del membership.removed[row.system]
            actions.append(Forget(key=(RowKind.REMOVED, row.system)))
    for member in tuple(membership.members.values()):
        if _yields(state, member):
            actions.extend(_forget_row(state, membership.configured[member.system], address=""))
            continue
        actions.append(Link(neighbor=member.neighbor, address=member.address))
        if member.is_by_file and not membership.is_leaving(member.system) and not membership.is_handing_over:
            actions.extend(_drop(state, member.system, now))
    for row in tuple(membership.leaving()):
        actions.extend(withdraw_claims(state, row.system, now))
    actions.extend(leaving.settle(state, now))
    handover.resume(state, now)
    actions.extend(draining.resume(state, now))
    return tuple(actions)


def on_member_added(state: ModuleState, event: MemberAdded, now: Instant) -> tuple[Action, ...]:
    """Add a neighbor, or change its relations, and answer; one whose link is being ended is refused until that ended.

    A second primary parent becomes a parent like others: a change of the primary one is an event of its own. With its
    first one, a module leaves the siblings that it had without a parent: sums above could count them twice.
    """
    system = event.neighbor.system
    if system == state.system:
        return (Answer(answer_to=event.answer_to, problem=f"{system} is the name of this module itself"),)
    if state.membership.is_leaving(system):
        text = f"the link with {system} is being ended; add it when it has ended"
        return (Answer(answer_to=event.answer_to, problem=text),)
    neighbor = event.neighbor
    if neighbor.is_primary_parent and _has_other_primary(state, system):
        neighbor = replace(neighbor, is_primary_parent=False)
    is_by_file = event.is_by_file and neighbor == event.neighbor
    row = MemberRow(neighbor=neighbor, since=now, address=event.address, text=event.text, is_by_file=is_by_file)
    state.membership.members[system] = row
    readmitted = _readmit(state, system)
    known = state.neighbors.get(system)
    is_first = neighbor.is_primary_parent and not (known is not None and known.is_primary_parent)
    text = f"{system} is the primary parent of {state.system} now"
    left = leaving.leave_siblings(state, now, text=text, cause=RemovalCause.PEOPLE, parent=system) if is_first else ()
    decision = Decision(what="neighbor_added", task=system, text=event.text)
    linked = Link(neighbor=neighbor, address=event.address)
    entered = enter(state, neighbor, now)
    return (*readmitted, *left, Store(row=row), decision, *entered, linked, Answer(answer_to=event.answer_to))


def on_settings_applied(state: ModuleState, event: SettingsApplied, now: Instant) -> tuple[Action, ...]:
    """Add, change and remove the neighbors by which the topology file differs from before, and answer.

    Rows of people win, also those of what they have removed; a neighbor that left by itself is added again. A row that
    says what the file says now is forgotten, and so are those of siblings that the primary parent has assigned and of
    an earlier file, if the file lists the neighbor. A repetition adds what could not be added while its link ended.
    """
    membership = state.membership
    before, addresses = membership.configured, membership.addresses
    membership.configured = {neighbor.system: neighbor for neighbor, _ in event.neighbors}
    membership.addresses = {neighbor.system: address for neighbor, address in event.neighbors}
    actions: list[Action] = []
    for system, neighbor in membership.configured.items():
        removed = membership.removed.get(system)
        if system not in before or (removed is not None and not removed.is_by_people):
            actions.extend(_readmit(state, system))
        forgotten = _forget_row(state, neighbor, address=membership.addresses[system])
        actions.extend(forgotten)
        is_same = before.get(system) == neighbor and addresses.get(system, "") == membership.addresses[system]
        is_same = is_same and not forgotten
        if (
            (is_same and state.neighbors.get(system) == neighbor)
            or system in membership.members
            or system in membership.removed
        ):
            continue
        actions.extend(enter(state, neighbor, now))
        actions.append(Link(neighbor=neighbor, address=membership.addresses[system]))
    of_file = {system: row.neighbor for system, row in membership.members.items() if row.is_by_file}
    for system, neighbor in {**of_file, **before}.items():
        if system in membership.configured or _wins(state, system):
            continue
        if system in state.neighbors:
            # Its row keeps relations and address for a restart until the link has ended.
            row = MemberRow(neighbor=neighbor, since=now, address=addresses.get(system, ""), is_by_file=True)
            row = membership.members.setdefault(system, row)
            actions.extend((Store(row=row), *_drop(state, system, now)))
        elif system in membership.removed and not membership.removed[system].is_by_people:
            # Whom people have removed stays away: the primary parent could assign it as a sibling.
            actions.extend(_readmit(state, system))
    asked = siblings.own_request(state) if actions else ()
    return (*actions, *asked, Answer(answer_to=event.answer_to))


def _drop(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Leave a neighbor that the file does not name any more; if its link is being ended already, it ends by the file.

    The file may then name it again, also if the neighbor was the first to end the link.
    """
    removed = state.membership.removed.get(system)
    if removed is None or removed.is_ended:
        return leaving.leave(state, system, now, text="it is no neighbor in the topology file", cause=RemovalCause.FILE)
    state.membership.removed[system] = row = replace(removed, cause=RemovalCause.FILE)
    return (Store(row=row),)


def enter(state: ModuleState, neighbor: Neighbor, now: Instant) -> tuple[Action, ...]:
    """Enter a neighbor with its relations; a linked one is sent the vectors of these, and has to send its own.

    A linked one that becomes a parent gets a number, which shows whether it is also below.
    """
    before, system = state.neighbors.get(neighbor.system), neighbor.system
    if before == neighbor:
        return ()
    counted_at = counting_of(state).parent
    state.neighbors[system] = neighbor
    if before is not None:
        status_vector.forget_views(state, system, now)
        state.updates.silent.pop(system, None)
    state.updates.counting = None
    status_vector.begin_sums_anew(state, now)
    counted = counted_anew(state, counted_at, now)
    sent: tuple[Action, ...] = ()
    if state.updates.links.get(system):
        status_vector.expect_vectors(state, system, now)
        sent = advertising.advertise_to(state, system, now)
        if neighbor.is_parent and not (before is not None and before.is_parent):
            sent = (*sent, *cycles.on_link_open(state, system, now))
    status_vector.expect_parents(state, now)
    return (*counted, *sent, *(siblings.own_request(state) if neighbor.is_primary_parent else ()))


def _yields(state: ModuleState, row: MemberRow) -> bool:
    """Return whether the topology file says what a row that people have not entered said before."""
    return not row.is_by_people and row.system in state.membership.configured


def _wins(state: ModuleState, system: SystemId) -> bool:
    """Return whether a neighbor stays that the topology file does not list any more."""
    row = state.membership.members.get(system)
    return row is not None and not row.is_by_file


def _forget_row(state: ModuleState, neighbor: Neighbor, *, address: str) -> tuple[Action, ...]:
    """Forget the row of a neighbor if the topology file says the same or wins over it: the file may change it again."""
    row = state.membership.members.get(neighbor.system)
    if row is None or (row.is_by_people and (row.neighbor != neighbor or row.address not in ("", address))):
        return ()
    del state.membership.members[neighbor.system]
    return (Forget(key=(RowKind.MEMBER, neighbor.system)),)


def _readmit(state: ModuleState, system: SystemId) -> tuple[Action, ...]:
    """Forget that a system was removed, if its removal has ended."""
    row = state.membership.removed.get(system)
    if row is None or not row.is_ended:
        return ()
    del state.membership.removed[system]
    return (Forget(key=(RowKind.REMOVED, system)),)


def _has_other_primary(state: ModuleState, system: SystemId) -> bool:
    others = (each for each in state.neighbors.values() if each.system != system)
    return any(each.is_primary_parent and not state.membership.is_leaving(each.system) for each in others)
