"""Advertising the machines behind a module to its neighbors (MESSIAHS 5.3.1, 7.2).

The policy decides what the own machine reports, what is passed on, and which neighbors are sent vectors. Parents and
siblings are sent the same U, at once; child_vectors.py sends D to children.

With many neighbors, U is computed in several turns, and then rests until its cost is a small part of all time
(pacing.py). A vector that is due before that is the last one again, with its age.
"""

from collections.abc import Iterable

from messiahs.core.interface.actions import Action, SendVector
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.changes import CHANGE_INTERVAL_NS, mark_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Account, Snapshot
from messiahs.core.update.annotations import account_of, oldest_below, oldest_in
from messiahs.core.update.child_vectors import begin_or_continue, begin_round, send_to_child, take_another_turn
from messiahs.core.update.counting import settling_in
from messiahs.core.update.demand import sum_demand
from messiahs.core.update.outgoing import begun_up, classes_in, revealed_up, sums_of, up, vector_for
from messiahs.core.update.pacing import (
    DOWN_SHARE,
    OWN_SHARE,
    SENDING_NS,
    UP_SHARE,
    after_work,
    fits_a_turn,
    is_resting,
    rested_at,
)
from messiahs.core.update.self_description import describe, describe_to_asker
from messiahs.core.update.transmission import (
    Summed,
    Turn,
    is_summed_up,
    kinds_for,
    message_to,
    send,
    snapshot_of,
    sources_of,
    turn_of,
)
from messiahs.core.vectors.division import Division


def note_waiting(state: ModuleState, now: Instant) -> None:
    """Schedule an advertisement if tasks began or ceased to wait here; their number is sent with the next period."""
    if bool(state.origin.waiting) != state.updates.had_waiting:
        mark_changed(state, now)


def advertise_to(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Send one neighbor its vectors now, because it asked or because its link is new; none if that is being ended."""
    if state.membership.is_leaving(system):
        return ()
    updates, neighbor = state.updates, state.neighbors[system]
    # Repeated queries are answered with the same vectors, without delaying changes for others.
    is_rested = not is_resting(updates.asked_rests_until, now) and updates.summing is None
    if is_rested:
        describe_to_asker(state, now)
    turn = turn_of(state, now)
    is_anew = is_rested and fits_a_turn(classes_in(turn.sums))
    sent: list[SendVector] = []
    if neighbor.is_parent or neighbor.is_sibling:
        if is_anew:
            division = up(turn.sums)
            turn.work_ns += division.work_ns
            _note_up(state, division, turn.account, settling_in(state))
            updates.up_from = sources_of(turn.sums)
        sent.extend(_send_up(state, turn, (neighbor,), only_changed=False))
    if neighbor.is_child:
        sent.extend(send_to_child(state, turn, neighbor, is_anew=is_anew))
    if is_anew:
        updates.asked_rests_until = after_work(updates.asked_rests_until, now, work_ns=turn.work_ns, share=DOWN_SHARE)
    return _in_order(state, sent)


def vectors_for(state: ModuleState, system: SystemId, now: Instant) -> tuple[StatusVector, ...]:
    """Return the vectors for one neighbor as of now."""
    neighbor, turn = state.neighbors[system], turn_of(state, now)
    return tuple(
        message_to(
            state,
            turn,
            neighbor,
            kind,
            Summed(
                vector_for(state, neighbor, kind, turn.sums),
                oldest_in(state, turn.account, neighbor, kind),
                sources_of(turn.sums),
            ),
        )
        for kind in kinds_for(neighbor)
    )


def advertise(state: ModuleState, now: Instant, *, only_changed: bool) -> tuple[Action, ...]:
    """Send every neighbor its vectors, or with `only_changed` those that have changed."""
    updates = state.updates
    updates.sent_at = now
    if not only_changed:
        sum_demand(state, now)
    has_waiting = bool(state.origin.waiting)
    has_changes = updates.has_changes or has_waiting != updates.had_waiting
    has_changes |= describe(state, now, only_changed=only_changed)
    updates.has_changes, updates.had_waiting = False, has_waiting
    updates.are_others_outdated |= has_changes
    updates.are_children_outdated |= has_changes
    if only_changed and not updates.are_others_outdated:
        return ()
    turn = turn_of(state, now)
    sent = [
        *_send_to_others(state, turn, only_changed=only_changed),
        *begin_round(state, turn, only_changed=only_changed),
    ]
    return _in_order(state, sent)


def on_sum_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Continue work that did not fit into one turn: first U, then the vectors of children."""
    updates, turn = state.updates, turn_of(state, now)
    if updates.summing is None:
        return _in_order(state, begin_or_continue(state, turn))
    sent = _continue_sum(state, turn, updates.summing, only_changed=True)
    if updates.round.is_going or updates.are_children_outdated:
        take_another_turn(state, now)
    return _in_order(state, sent)


def _send_to_others(state: ModuleState, turn: Turn, /, *, only_changed: bool) -> tuple[SendVector, ...]:
    """Send U to all parents and siblings; U is computed even without any, since the policy may use it."""
    updates = state.updates
    if updates.summing is None and not is_resting(updates.up_rests_until, turn.now):
        updates.are_others_outdated = False
        return _continue_sum(state, turn, snapshot_of(state, turn), only_changed=only_changed)
    if updates.are_others_outdated and not state.timers.is_set(TimerKind.CHANGE, state.system):
        at = max(after(turn.now, CHANGE_INTERVAL_NS), rested_at(updates.up_rests_until, turn.now))
        state.timers.set(TimerKind.CHANGE, state.system, at)
    if only_changed:
        return ()
    sent = _send_up(state, turn, _others(state), only_changed=False)
    _rest(state, turn)
    return sent


def _continue_sum(
    state: ModuleState, turn: Turn, snapshot: Snapshot, /, *, only_changed: bool
) -> tuple[SendVector, ...]:
    """Compute U as far as fits into one turn, and send it to parents and siblings once it is done.

    A period does not wait for that: they are sent the last U at once.
    """
    division = begun_up(sums_of(state, snapshot))
    is_done = is_summed_up(turn, snapshot, division)
    if is_done:
        state.updates.summing = None
        _note_up(state, division, account_of(state, snapshot.views), snapshot.settling)
        state.updates.up_from = sources_of(sums_of(state, snapshot))
    else:
        state.updates.summing = snapshot
        take_another_turn(state, turn.now)
    sent = _send_up(state, turn, _others(state), only_changed=only_changed) if is_done or not only_changed else ()
    _rest(state, turn)
    return sent


def _note_up(state: ModuleState, division: Division, account: Account, settling: tuple[int, ...]) -> None:
    updates = state.updates
    updates.settling = settling
    updates.up, updates.oldest_up, updates.is_up_obsolete = division.vector, oldest_below(account), False


def _send_up(
    state: ModuleState, turn: Turn, neighbors: tuple[Neighbor, ...], /, *, only_changed: bool
) -> tuple[SendVector, ...]:
    """Send U, as last computed, to some parents and siblings."""
    updates = state.updates
    if updates.is_up_obsolete:
        return ()
    sent: list[SendVector] = []
    for neighbor in neighbors:
        summed = Summed(revealed_up(state, neighbor, updates.up, turn.sums), updates.oldest_up, updates.up_from)
        for kind in kinds_for(neighbor):
            if kind is not VectorKind.FOR_CHILDREN:
                message = message_to(state, turn, neighbor, kind, summed)
                sent.extend(send(state, turn, neighbor, message, summed=summed, only_changed=only_changed))
    turn.work_ns += SENDING_NS * len(sent)
    return tuple(sent)


def _rest(state: ModuleState, turn: Turn) -> None:
    share = UP_SHARE if _others(state) else OWN_SHARE
    updates = state.updates
    updates.up_rests_until = after_work(updates.up_rests_until, turn.now, work_ns=turn.work_ns, share=share)


def _others(state: ModuleState) -> tuple[Neighbor, ...]:
    return tuple(
        neighbor
        for system, neighbor in state.neighbors.items()
        if state.has_lasting_link(system) and (neighbor.is_parent or neighbor.is_sibling)
    )


def _in_order(state: ModuleState, sent: Iterable[SendVector]) -> tuple[SendVector, ...]:
    """Sort vectors in the order of the neighbors and of their kinds of vectors."""
    place = {
        key: number
        for number, key in enumerate(
            (system, kind) for system, each in state.neighbors.items() for kind in kinds_for(each)
        )
    }
    return tuple(sorted(sent, key=lambda each: place[each.to, each.message.kind]))
