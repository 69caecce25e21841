"""Ending the link with a neighbor for good, without losing a task (MESSIAHS 2: autonomy).

The neighbor is told (`leave`), and does the same. From then on it is in no sum and is asked for nothing, no new claim
is granted to it, and the present ones take no more tasks. When they have ended, and their final sums were stated and
acknowledged (core/ledger), each side says that it is done, and the link is closed and forgotten. With force, claims are
closed at once, and no sum is awaited: what may still run beyond the link counts as lost when its lease has expired.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from messiahs.core.audit.folds import note_act
from messiahs.core.closing import close_claims, remaining_with, withdraw_claims, withdraw_passed
from messiahs.core.interface.actions import Action, Answer, Decision, Forget, SendControl, Store, Unlink
from messiahs.core.interface.audit_row import Crossed
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import LeaveRequested, MemberRemoved
from messiahs.core.interface.ledger_rows import ClaimBookRow
from messiahs.core.interface.membership_messages import AssignedSibling, Leave
from messiahs.core.interface.membership_rows import RemovalCause, RemovedRow
from messiahs.core.interface.rows import RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.books import unsettled_with
from messiahs.core.link import close_link
from messiahs.core.membership import siblings
from messiahs.core.membership.refusals import hold, is_held, refuse
from messiahs.core.model.counts import counted
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.texts import printable
from messiahs.core.search.routing import on_neighbor_lost
from messiahs.core.state.module import ModuleState
from messiahs.core.update import status_vector
from messiahs.core.update.counting import counted_anew, counting_of
from messiahs.core.update.histories import forget_history
from messiahs.core.update.link_costs import forget_link

_ANSWER_NS: Final = 10 * SECOND
"""How long a connected neighbor may take to say that it is done, once no claim is left here."""
_SUMS_NS: Final = 5 * SECOND
"""How much of that time final sums are awaited for: a neighbor that states and acknowledges none gains no time."""
_RETURN_NS: Final = 60 * SECOND
"""How long a neighbor that is not connected may take to return and learn that the link ends.

Until then a daemon that was killed has started again; one that learns nothing would dial for ever.
"""
_TEXT_LENGTH: Final = 512
_REMOVED_LIMIT: Final = 1_024
"""How many removed systems are remembered that the topology file does not name."""
_ENDING: Final = (
    RowKind.GRANTED_CLAIM,
    RowKind.PASSED_CLAIM,
    RowKind.HELD_CLAIM,
    RowKind.OWN_BOOK,
    RowKind.OTHERS_BOOK,
)
"""What the end of a link may wait for."""


def on_member_removed(state: ModuleState, event: MemberRemoved, now: Instant) -> tuple[Action, ...]:
    """Begin to end the link with a neighbor, or end one that is being ended at once; then answer."""
    if event.system not in state.neighbors:
        text = f"{event.system} is no neighbor of {state.system}"
        return (Answer(answer_to=event.answer_to, problem=text),)
    noted = note_act(state, event.system, Crossed.SHUT_OFF, text=_noted(event.text), now=now)
    begun = leave(state, event.system, now, text=event.text, is_forced=event.is_forced)
    return (*noted, *begun, Answer(answer_to=event.answer_to))


def on_leave_requested(state: ModuleState, event: LeaveRequested, now: Instant) -> tuple[Action, ...]:
    """Begin to end the link with a parent, and answer."""
    neighbor = state.neighbors.get(event.parent)
    if neighbor is None or not neighbor.is_parent:
        return (Answer(answer_to=event.answer_to, problem=f"{event.parent} is no parent of {state.system}"),)
    noted = note_act(state, event.parent, Crossed.SHUT_OFF, text=_noted(event.text), now=now)
    return (*noted, *leave(state, event.parent, now, text=event.text), Answer(answer_to=event.answer_to))


def _noted(text: str) -> str:
    """Return the reason in the audit log, where releases without this act know the end of a link as `shut_off`."""
    return f"removed from the neighbors{f': {text}' if text else ''}"


def on_leave(state: ModuleState, message: Leave, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """End the link on this side, too; once the neighbor is done, what is still open with it is closed.

    A neighbor that has left a sibling, and is a parent or child here, stays: the topology file of its side is older.
    """
    actions: tuple[Action, ...] = ()
    neighbor, is_leaving = state.neighbors.get(sender), state.membership.is_leaving(sender)
    if message.is_sibling and neighbor is not None and (neighbor.is_parent or neighbor.is_child) and not is_leaving:
        return _agree(state, sender, now) if message.is_done else ()
    if not is_leaving:
        text = f"{sender} has ended the link{f': {message.text}' if message.text else ''}"
        if state.membership.is_assigned(sender) and not state.membership.is_handing_over:
            hold(state, sender, now)
        text = printable(text)[:_TEXT_LENGTH]
        actions = leave(state, sender, now, text=text, cause=RemovalCause.CONSEQUENCE)
    if not message.is_done or not state.membership.is_leaving(sender):
        return actions
    closed = close_claims(state, sender, now, cause=Cause.REVOKED)
    answer = () if sender in state.membership.done else _say(state, sender, is_done=True)
    return (*actions, *closed, *answer, *_finish(state, sender, now))


def leave(
    state: ModuleState,
    system: SystemId,
    now: Instant,
    *,
    text: str,
    is_forced: bool = False,
    cause: RemovalCause = RemovalCause.PEOPLE,
) -> tuple[Action, ...]:
    """Begin to end the link with a neighbor; with its primary parent, a module leaves its siblings there as well.

    What people remove while it leaves for another `cause` is removed by people.
    """
    neighbor = state.neighbors[system]
    before, counted_at = state.membership.removed.get(system), counting_of(state).parent
    is_begun = before is not None and not before.is_ended
    row = RemovedRow(system=system, since=now, text=text, cause=cause)
    if is_begun and before is not None:
        row = replace(before, text=text or before.text, cause=cause if row.is_by_people else before.cause)
    state.membership.removed[system] = row
    actions: list[Action] = [Store(row=row)]
    if not is_begun:
        actions.append(Decision(what="neighbor_leaves", task=system, text=text))
        actions.extend(on_neighbor_lost(state, system, now))
        status_vector.forget_views(state, system, now)
        state.updates.silent.pop(system, None)
        state.updates.counting = None
        status_vector.begin_sums_anew(state, now)
        status_vector.expect_parents(state, now)
        actions.extend(counted_anew(state, counted_at, now))
        actions.extend(_say(state, system, is_done=False))
        actions.extend(siblings.withdraw(state, system))
    closed = close_claims(state, system, now, cause=Cause.REVOKED) if is_forced else withdraw_claims(state, system, now)
    actions.extend(closed)
    if neighbor.is_primary_parent and not is_begun:
        text = f"the link between {state.system} and {system} ends"
        actions.extend(leave_siblings(state, now, text=text, cause=cause))
    actions.extend(_settle(state, system, now, awaits_sums=not is_forced))
    if is_forced and _is_unheard(state, system):
        # Nobody is there to be told.
        actions.extend(_finish(state, system, now))
    return tuple(actions)


def leave_siblings(
    state: ModuleState, now: Instant, *, text: str, cause: RemovalCause, parent: SystemId | None = None
) -> tuple[Action, ...]:
    """Leave those that are siblings by another primary parent: sums would count them twice elsewhere.

    Siblings of the topology file stay if it names the present primary `parent` too.
    """
    actions: list[Action] = []
    configured = state.membership.configured
    is_of_file = parent in configured and configured[parent].is_primary_parent
    for neighbor in tuple(state.neighbors.values()):
        is_only_sibling = neighbor.is_sibling and not (neighbor.is_parent or neighbor.is_child)
        stays = is_of_file and neighbor.system in configured and configured[neighbor.system].is_sibling
        if is_only_sibling and not stays and not state.membership.is_leaving(neighbor.system):
            own = RemovalCause.CONSEQUENCE if state.membership.is_assigned(neighbor.system) else cause
            actions.extend(leave(state, neighbor.system, now, text=text, cause=own))
    return tuple(actions)


def on_link_open(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Repeat on a new connection what was said of links that end: the messages of before may be lost."""
    if not any(state.membership.leaving()) and state.membership.drain is None:
        return ()
    said: tuple[Action, ...] = ()
    if state.membership.is_leaving(neighbor):
        again = _say(state, neighbor, is_done=True) if neighbor in state.membership.done else ()
        said = (*_say(state, neighbor, is_done=False), *again)
    ended = tuple(
        withdraw_passed(passed)
        for passed in state.hop.passed.values()
        if passed.toward_origin == neighbor
        and (
            state.membership.drain is not None
            or any(map(state.membership.is_leaving, (passed.toward_origin, passed.toward_executor)))
        )
    )
    return (*said, *ended, *settle(state, now))


def on_leaving_timeout(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Say that this side is done without the final sums, or close a link although the neighbor has not answered."""
    if not state.membership.is_leaving(system) or _is_open(state, system):
        return ()
    since = state.membership.settling.get(system)
    if since is not None and state.updates.links.get(system) and now < after(since, _RETURN_NS):
        return _say_done(state, system, now)
    return _finish(state, system, now)


def settle_after(state: ModuleState, actions: Iterable[Action], now: Instant) -> tuple[Action, ...]:
    """Do as `settle` if a claim has ended, or a book was settled, among some actions."""
    if not any(state.membership.leaving()):
        return ()
    return settle(state, now) if any(map(_ends_something, actions)) else ()


def settle(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Close the links that are being ended and on which nothing is left."""
    leaving = tuple(row.system for row in state.membership.leaving())
    return tuple(action for system in leaving for action in _settle(state, system, now))


def _ends_something(action: Action) -> bool:
    if isinstance(action, Store):
        return isinstance(action.row, ClaimBookRow) and action.row.is_final
    return isinstance(action, Forget) and action.key[0] in _ENDING


def _settle(state: ModuleState, system: SystemId, now: Instant, *, awaits_sums: bool = True) -> tuple[Action, ...]:
    membership, timers = state.membership, state.timers
    if not membership.is_leaving(system) or _is_open(state, system):
        return ()
    if system in state.shut_off:
        return _finish(state, system, now)
    since = membership.done.get(system, membership.settling.get(system))
    if not state.updates.links.get(system):
        if since is not None:
            timers.set(TimerKind.LEAVING, system, after(since, _RETURN_NS))
        elif not timers.is_set(TimerKind.LEAVING, system):
            timers.set(TimerKind.LEAVING, system, after(now, _RETURN_NS))
        return ()
    if system in membership.done:
        return ()
    until = after(membership.settling.setdefault(system, now), _SUMS_NS)
    if not awaits_sums or until <= now or not unsettled_with(state, system):
        return _say_done(state, system, now)
    timers.set(TimerKind.LEAVING, system, until)
    return ()


def _say_done(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Say that this side is done, and wait for the answer until a fixed time after the last claim has ended."""
    since = state.membership.done[system] = state.membership.settling.pop(system)
    answered_by = after(since, _ANSWER_NS)
    if answered_by <= now:
        # It was not connected meanwhile.
        answered_by = after(since, _RETURN_NS)
    state.timers.set(TimerKind.LEAVING, system, answered_by)
    return _say(state, system, is_done=True)


def _is_unheard(state: ModuleState, system: SystemId) -> bool:
    """Return whether nothing is left on a link that is being ended, and the neighbor is not connected."""
    is_linked = bool(state.updates.links.get(system))
    return state.membership.is_leaving(system) and not is_linked and not _is_open(state, system)


def _is_open(state: ModuleState, system: SystemId) -> bool:
    left = remaining_with(state, system)
    return not left.is_empty or bool(left.held)


def _say(state: ModuleState, system: SystemId, *, is_done: bool) -> tuple[Action, ...]:
    if not state.updates.links.get(system):
        return ()
    row, neighbor = state.membership.removed[system], state.neighbors[system]
    is_sibling = not (neighbor.is_parent or neighbor.is_child or row.is_by_people)
    return (SendControl(to=system, message=Leave(text=row.text, is_done=is_done, is_sibling=is_sibling)),)


def _agree(state: ModuleState, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Let a neighbor close the connection whose sibling this system was; it stays a parent or child."""
    closed = close_claims(state, sender, now, cause=Cause.REVOKED)
    return (*closed, SendControl(to=sender, message=Leave(is_done=True)))


def _finish(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Forget a neighbor with which nothing is open, and close its link."""
    membership = state.membership
    row = membership.removed[system]
    membership.done.pop(system, None)
    membership.settling.pop(system, None)
    state.timers.cancel(TimerKind.LEAVING, system)
    actions: list[Action] = [Decision(what="neighbor_removed", task=system, text=_ended_text(state, row))]
    actions.extend(close_link(state, system, now, text=row.text))
    is_forgotten, member = membership.is_passing(row), membership.members.pop(system, None)
    if member is not None:
        actions.append(Forget(key=(RowKind.MEMBER, system)))
    if is_forgotten:
        del membership.removed[system]
        actions.append(Forget(key=(RowKind.REMOVED, system)))
    else:
        membership.removed[system] = ended = replace(row, is_ended=True)
        actions.extend((Store(row=ended), *_forget_oldest(state)))
    del state.neighbors[system]
    state.request_tally.keep_only((*state.neighbors, state.system))
    state.updates.unlinked.pop(system, None)
    state.updates.silent.pop(system, None)
    forget_history(state, system)
    forget_link(state, system)
    state.witnesses.pop(system, None)
    state.updates.counting = None
    if state.remembered.pop(system, None) is not None:
        actions.append(Forget(key=(RowKind.REMEMBERED, system)))
    status_vector.begin_sums_anew(state, now)
    # It may have been assigned again while its link ended; and one that people have removed is not to dial any more.
    is_asked = is_forgotten and not is_held(state, system)
    if member is not None and member.assigned_by is not None and row.is_by_people:
        is_asked = refuse(state, AssignedSibling(system=system), parent=member.assigned_by)
    asked = siblings.own_request(state) if is_asked else ()
    return (*actions, Unlink(neighbor=system, text=row.text), *asked)


def _ended_text(state: ModuleState, row: RemovedRow) -> str:
    """Return why a link has ended, and how many claims on it have no final sum that both ends know."""
    unsettled = unsettled_with(state, row.system)
    lacking = f"{counted(unsettled, 'claim')} without an agreed final sum: the accounts of both ends may differ"
    return "; ".join(filter(None, (row.text, lacking if unsettled else "")))


def _forget_oldest(state: ModuleState) -> tuple[Action, ...]:
    """Forget the system removed first among those that the topology file does not name, if there are too many."""
    removed, configured = state.membership.removed, state.membership.configured
    foreign = [row for row in removed.values() if row.is_ended and row.system not in configured]
    if len(foreign) <= _REMOVED_LIMIT:
        return ()
    oldest = min(foreign, key=lambda row: (row.since, row.system))
    del removed[oldest.system]
    return (Forget(key=(RowKind.REMOVED, oldest.system)),)
