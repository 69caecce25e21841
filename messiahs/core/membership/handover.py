"""A change of the primary parent, by which each machine is counted at most once (MESSIAHS 7.3; DESIGN: numbered).

The child is counted by no parent until the old one, and all systems above it, no longer count it; then the new one
does. The old parent takes it out of its sums, and puts a mark into its vectors for parents. Each system above passes
the mark up with the first sum that lacks the machines. The topmost answers `sums_settled`, which descends to the old
parent, and that answers `handover_done`. A parent that does not answer is waited for until its input timeout.

Vectors may be overtaken: each names the handover of its sender, so an older one does not count at the old parent.
"""

from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Answer, Decision, Report, ReportCode, SendControl, Store
from messiahs.core.interface.events import PrimaryParentChanged
from messiahs.core.interface.membership_messages import Handover, HandoverDone, SumsSettled
from messiahs.core.interface.membership_rows import HandoverRow, MemberRow, RemovalCause
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership.leaving import leave_siblings
from messiahs.core.membership.siblings import own_request, withdraw
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.changes import mark_view_changed
from messiahs.core.state.membership import Release
from messiahs.core.state.module import ModuleState
from messiahs.core.update import status_vector
from messiahs.core.update.counting import counted_anew, counting_of, parents_in_order

_MARK_BITS: Final = 62
_LONGEST_NS: Final = 10 * MINUTE
"""How long a primary parent of before may take to answer, whatever update period it announces."""


def on_primary_parent_changed(state: ModuleState, event: PrimaryParentChanged, now: Instant) -> tuple[Action, ...]:
    """Begin to be counted by another parent, and answer; repeated for the present primary parent, it has no effect."""
    membership, parent = state.membership, state.neighbors.get(event.parent)
    problem = ""
    if parent is None or not parent.is_parent or membership.is_leaving(event.parent):
        problem = f"{event.parent} is no parent of {state.system}"
    elif membership.handover is not None and membership.is_handing_over:
        problem = f"the primary parent is already being changed to {membership.handover.new}"
    if problem or parent is None or parent.is_primary_parent:
        return (Answer(answer_to=event.answer_to, problem=problem),)
    before, old = membership.handover, counting_of(state).parent
    number = before.number + 1 if before is not None else 1
    row = HandoverRow(number=number, old=old, new=event.parent, since=now, text=event.text, is_by_file=event.is_by_file)
    membership.handover = row
    decision = Decision(what="handover", task=event.parent, text=f"number {number}, before: {old}")
    begun = (Store(row=row), decision)
    state.updates.counting = None
    mark_view_changed(state, now)
    if old is None or old == event.parent or old in state.updates.silent:
        return (*begun, *_complete(state, row, now), Answer(answer_to=event.answer_to))
    _wait(state, old, now)
    return (*begun, *on_link_open(state, old), Answer(answer_to=event.answer_to))


def resume(state: ModuleState, now: Instant) -> None:
    """Continue a handover after a restart: the old parent is told again when it is connected."""
    row = state.membership.handover
    if row is not None and not row.is_done and row.old is not None:
        _wait(state, row.old, now)


def on_link_open(state: ModuleState, parent: SystemId) -> tuple[Action, ...]:
    """Tell the parent that counted this system of the handover."""
    row = state.membership.handover
    if row is None or row.is_done or row.old != parent or not state.updates.links.get(parent):
        return ()
    return (SendControl(to=parent, message=Handover(number=row.number)),)


def on_handover(state: ModuleState, message: Handover, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Count a child no more; answer at once if no system is above."""
    neighbor = state.neighbors.get(sender)
    if neighbor is None or not neighbor.is_child or not message.number:
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text=f"handover {message.number}"),)
    known = state.membership.released.get(sender)
    if known is not None and message.number <= known.number:
        return _answer(sender, known) if message.number == known.number else ()
    release = Release(
        number=message.number,
        mark=state.randomness.bits(_MARK_BITS),
        is_settled=not parents_in_order(state),
    )
    state.membership.released[sender] = release
    state.updates.counting = None
    status_vector.begin_sums_anew(state, now)
    return (*withdraw(state, sender), *_answer(sender, release))


def on_handover_done(
    state: ModuleState, message: HandoverDone, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Be counted by the new parent from now on; an answer to an earlier handover has no effect."""
    row = state.membership.handover
    if row is None or row.is_done or row.old != sender or row.number != message.number:
        return ()
    return _complete(state, row, now)


def on_handover_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Be counted by the new parent: the old one has not answered for its input timeout."""
    row = state.membership.handover
    return _complete(state, row, now) if row is not None and not row.is_done else ()


def on_marked_vector(state: ModuleState, message: StatusVector, *, sender: SystemId) -> tuple[Action, ...]:
    """Answer the marks in a child's vector, if no system is above; else they go up with the next vector."""
    view = state.updates.views.get((sender, VectorKind.FOR_PARENTS))
    if not message.settling or view is None or view.message.settling != message.settling or parents_in_order(state):
        return ()
    return (SendControl(to=sender, message=SumsSettled(marks=message.settling)),)


def on_sums_settled(state: ModuleState, message: SumsSettled, *, sender: SystemId) -> tuple[Action, ...]:
    """Answer the children whose handovers are settled above, and pass the answer on to those whose vectors have marks.

    Only the answer of the parent that counts this system is valid.
    """
    if sender != counting_of(state).parent:
        return ()
    settled, actions = frozenset(message.marks), list[Action]()
    for child, release in state.membership.released.items():
        if release.mark in settled and not release.is_settled:
            state.membership.released[child] = replace(release, is_settled=True)
            actions.extend(_answer(child, state.membership.released[child]))
    for (child, kind), view in state.updates.views.items():
        marks = tuple(mark for mark in view.message.settling if mark in settled)
        if marks and kind is VectorKind.FOR_PARENTS:
            actions.append(SendControl(to=child, message=SumsSettled(marks=marks)))
    return tuple(actions)


def _answer(child: SystemId, release: Release) -> tuple[Action, ...]:
    return (SendControl(to=child, message=HandoverDone(number=release.number)),) if release.is_settled else ()


def _wait(state: ModuleState, old: SystemId, now: Instant) -> None:
    at = after(now, min(status_vector.silence_of(state, old), _LONGEST_NS))
    state.timers.set(TimerKind.HANDOVER, state.system, at)


def _complete(state: ModuleState, row: HandoverRow, now: Instant) -> tuple[Action, ...]:
    """Store the new relations; the siblings by the old primary parent are left, since these share its sums."""
    membership = state.membership
    membership.handover = done = replace(row, is_done=True)
    state.timers.cancel(TimerKind.HANDOVER, state.system)
    new = state.neighbors.get(row.new)
    actions: list[Action] = [Store(row=done)]
    if new is not None and new.is_parent and not membership.is_leaving(row.new):
        text = f"{row.new} is the primary parent of {state.system} now"
        cause = RemovalCause.FILE if row.is_by_file else RemovalCause.PEOPLE
        actions.extend(leave_siblings(state, now, text=text, cause=cause))
        for neighbor in tuple(state.neighbors.values()):
            changed = replace(
                neighbor, is_primary_parent=neighbor.system == row.new, is_sibling=_stays_sibling(state, neighbor)
            )
            if changed != neighbor:
                actions.append(_enter(state, changed, row, now))
    state.updates.counting = None
    status_vector.begin_sums_anew(state, now)
    status_vector.expect_parents(state, now)
    return (*actions, *counted_anew(state, None, now), *own_request(state))


def _stays_sibling(state: ModuleState, neighbor: Neighbor) -> bool:
    return neighbor.is_sibling and state.membership.is_leaving(neighbor.system)


def _enter(state: ModuleState, neighbor: Neighbor, row: HandoverRow, now: Instant) -> Action:
    state.neighbors[neighbor.system] = neighbor
    member = state.membership.members.get(neighbor.system)
    address = member.address if member is not None else state.membership.addresses.get(neighbor.system, "")
    since = member.since if member is not None else now
    entered = MemberRow(neighbor=neighbor, since=since, address=address, text=row.text, is_by_file=row.is_by_file)
    state.membership.members[neighbor.system] = entered
    return Store(row=entered)
