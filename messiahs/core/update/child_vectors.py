"""Sending D to children, one after the other; many of them take several turns, less often (MESSIAHS 7.2).

A round sends D to every child, or only to those for which it has changed. During a rest (pacing.py), the round of a
period sends each child its last vector again, with its age, and changes follow once the rest has ended. A period that
begins during a round does the same and adds nothing to the round, since a round longer than a period would never end.
"""

from collections.abc import Iterator

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.messages import VectorKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Account, Snapshot, Sources, Sums
from messiahs.core.update.annotations import account_of, kept_from, oldest_in
from messiahs.core.update.outgoing import begun_everything, everything, sums_of, vector_for
from messiahs.core.update.pacing import DOWN_SHARE, SENDING_NS, TURN_NS, after_work, is_resting, rested_at
from messiahs.core.update.transmission import Summed, Turn, is_summed_up, message_to, send, snapshot_of, sources_of
from messiahs.core.vectors.compaction import compact

_NEXT_TURN_NS = 1 * MILLISECOND
_NEXT_ROUND_NS = 50 * MILLISECOND
_DOWN = VectorKind.FOR_CHILDREN


def begin_round(state: ModuleState, turn: Turn, /, *, only_changed: bool) -> tuple[SendVector, ...]:
    """Send D to all children, or with `only_changed` to those without the latest change, if no rest is due."""
    updates, current = state.updates, state.updates.round
    children = [
        system for system, neighbor in state.neighbors.items() if neighbor.is_child and state.has_lasting_link(system)
    ]
    if current.is_going:
        if not only_changed:
            current.again.update((child, True) for child in children if _last(state, child) is not None)
        return ()
    is_free = not is_resting(updates.down_rests_until, turn.now)
    if not children:
        current.unsent, updates.are_children_outdated = {}, False
        return ()
    if only_changed and not is_free:
        _wake_later(state, turn.now)
        return ()
    current.unsent = {child: not only_changed or current.unsent.get(child, False) for child in children}
    current.snapshot = snapshot_of(state, turn) if is_free else None
    if is_free:
        updates.are_children_outdated = False
    if updates.summing is not None or turn.work_ns > TURN_NS // 2:
        # There are many neighbors: computing U is enough work for one turn.
        _continue_later(state, turn.now)
        return ()
    return continue_round(state, turn)


def begin_or_continue(state: ModuleState, turn: Turn, /) -> tuple[SendVector, ...]:
    """Continue the round, or begin another one for what has changed."""
    if state.updates.are_children_outdated and not state.updates.round.is_going:
        return begin_round(state, turn, only_changed=True)
    return continue_round(state, turn)


def continue_round(state: ModuleState, turn: Turn, /) -> tuple[SendVector, ...]:
    """Send D to as many children as fit into one turn."""
    updates, current = state.updates, state.updates.round
    begun_ns = turn.work_ns
    sent = [*_send_again(state, turn, current.again)]
    if current.snapshot is None:
        sent.extend(_send_again(state, turn, current.unsent))
    elif current.unsent and is_summed_up(turn, current.snapshot, begun_everything(sums_of(state, current.snapshot))):
        sent.extend(_send_anew(state, turn, current.snapshot))
    current.is_going = False
    updates.down_rests_until = after_work(
        updates.down_rests_until, turn.now, work_ns=turn.work_ns - begun_ns, share=DOWN_SHARE
    )
    if current.unsent or current.again:
        _continue_later(state, turn.now)
        return tuple(sent)
    current.snapshot = None
    if updates.are_children_outdated:
        _wake_later(state, turn.now)
    return tuple(sent)


def send_to_child(state: ModuleState, turn: Turn, neighbor: Neighbor, /, *, is_anew: bool) -> tuple[SendVector, ...]:
    """Send D to one child now, because it asked or because its link is new; unless `is_anew`, its last vector again.

    A child without a last vector is sent the own machine, and the others as soon as a round may begin: a rest may be
    longer than the child waits before it counts this module as lost.
    """
    current = state.updates.round
    if is_anew:
        division = everything(turn.sums)
        turn.work_ns += division.work_ns + division.parting_ns
        # A round in progress would send it an older snapshot.
        current.unsent.pop(neighbor.system, None)
        summed = _summed(state, turn.sums, turn.account, neighbor)
        return _send(state, turn, neighbor, summed, only_changed=False)
    last = _last(state, neighbor.system)
    if last is None:
        state.updates.are_children_outdated = True
        if not current.is_going:
            _wake_later(state, turn.now)
        own = compact(state.updates.own, keys=state.policy.keys)
        last = Summed(state.policy.disclosure.reveal(own, neighbor), None, Sources(state.updates.own, {}))
    return _send(state, turn, neighbor, last, only_changed=False)


def take_another_turn(state: ModuleState, now: Instant, /) -> None:
    """Schedule another turn; events that have arrived meanwhile come first."""
    state.timers.set(TimerKind.SUM, state.system, after(now, _NEXT_TURN_NS))


def _send_anew(state: ModuleState, turn: Turn, snapshot: Snapshot) -> Iterator[SendVector]:
    sums, account = sums_of(state, snapshot), account_of(state, snapshot.views)
    made: dict[object, None] = {}
    for neighbor, only_changed in _next_of(state.updates.round.unsent, state, turn):
        place = kept_from(state, neighbor.system), state.policy.disclosure.audience_of(neighbor)
        if place not in made:
            turn.work_ns += everything(sums).parting_ns
            made[place] = None
        yield from _send(state, turn, neighbor, _summed(state, sums, account, neighbor), only_changed=only_changed)


def _send_again(state: ModuleState, turn: Turn, unsent: dict[SystemId, bool]) -> Iterator[SendVector]:
    """Send children their last vectors again; a child without one is served after the rest."""
    for neighbor, only_changed in _next_of(unsent, state, turn):
        last = _last(state, neighbor.system)
        if last is None:
            state.updates.are_children_outdated = True
        else:
            yield from _send(state, turn, neighbor, last, only_changed=only_changed)


def _next_of(unsent: dict[SystemId, bool], state: ModuleState, turn: Turn) -> Iterator[tuple[Neighbor, bool]]:
    """Yield the next children of a round, each with `only_changed`, as long as they fit into the turn."""
    while unsent and turn.work_ns < TURN_NS:
        system = next(iter(unsent))
        only_changed = not unsent.pop(system)
        neighbor = state.neighbors.get(system)
        if neighbor is not None and neighbor.is_child and state.has_lasting_link(system):
            yield neighbor, only_changed


def _send(
    state: ModuleState, turn: Turn, neighbor: Neighbor, /, summed: Summed, *, only_changed: bool
) -> tuple[SendVector, ...]:
    message = message_to(state, turn, neighbor, _DOWN, summed)
    sent = send(state, turn, neighbor, message, summed=summed, only_changed=only_changed)
    turn.work_ns += SENDING_NS * len(sent)
    return sent


def _summed(state: ModuleState, sums: Sums, account: Account, neighbor: Neighbor, /) -> Summed:
    return Summed(
        vector_for(state, neighbor, _DOWN, sums), oldest_in(state, account, neighbor, _DOWN), sources_of(sums)
    )


def _last(state: ModuleState, system: SystemId) -> Summed | None:
    updates, key = state.updates, (system, _DOWN)
    sent = updates.sent.get(key)
    return Summed(sent.vector, updates.oldest_sent[key], updates.sent_from[key]) if sent is not None else None


def _continue_later(state: ModuleState, now: Instant) -> None:
    state.updates.round.is_going = True
    take_another_turn(state, now)


def _wake_later(state: ModuleState, now: Instant) -> None:
    if not state.timers.is_set(TimerKind.SUM, state.system):
        at = max(after(now, _NEXT_ROUND_NS), rested_at(state.updates.down_rests_until, now))
        state.timers.set(TimerKind.SUM, state.system, at)
