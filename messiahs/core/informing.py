"""Telling children D, one after the other: many of them take several turns, and are told less often (MESSIAHS 7.2).

A round tells every child, or only those for whom there is something new. While a rest is due (pacing.py), the round of
a period tells each child again what it was told last, with its age; what changes is told once the rest is over.
"""

from messiahs.core.actions import SendVector
from messiahs.core.beside import kept_from, oldest_in
from messiahs.core.ids import SystemId
from messiahs.core.instants import MILLISECOND, Instant, after
from messiahs.core.messages import VectorKind
from messiahs.core.neighbors import Neighbor
from messiahs.core.pacing import DOWN_SHARE, SENDING_NS, TURN_NS, after_work, is_resting, rested_at
from messiahs.core.sending import Summed, Turn, message_to, send
from messiahs.core.state import ModuleState
from messiahs.core.summing import everything, vector_for
from messiahs.core.timers import TimerKind

_NEXT_TURN_NS = 1 * MILLISECOND
_NEXT_ROUND_NS = 50 * MILLISECOND
_DOWN = VectorKind.FOR_CHILDREN


def begin_round(state: ModuleState, turn: Turn, /, *, only_changed: bool) -> tuple[SendVector, ...]:
    """Begin to tell all children, or with `only_changed` those that do not know it yet, unless a rest is due."""
    updates, current = state.updates, state.updates.round
    children = [
        system for system, neighbor in state.neighbors.items() if neighbor.is_child and updates.links.get(system)
    ]
    if current.is_going:
        if not only_changed:
            current.untold.update(dict.fromkeys(children, True))
        return ()
    is_free = not is_resting(updates.down_rests_until, turn.now)
    if not children:
        current.untold, updates.children_have_news = {}, False
        return ()
    if only_changed and not is_free:
        _wake_later(state, turn.now)
        return ()
    current.untold = {child: not only_changed or current.untold.get(child, False) for child in children}
    current.is_anew = is_free
    if is_free:
        updates.children_have_news = False
    if turn.work_ns > TURN_NS // 2:
        # There are many neighbors: to sum up U has been enough for one turn.
        _go_on_later(state, turn.now)
        return ()
    return go_on(state, turn)


def on_tell_timeout(state: ModuleState, turn: Turn, /) -> tuple[SendVector, ...]:
    """Go on with the round, or begin another one for what has changed."""
    if state.updates.children_have_news and not state.updates.round.is_going:
        return begin_round(state, turn, only_changed=True)
    return go_on(state, turn)


def go_on(state: ModuleState, turn: Turn, /) -> tuple[SendVector, ...]:
    """Tell as many children as one turn has time for."""
    current = state.updates.round
    sent: list[SendVector] = []
    made: dict[object, None] = {}
    work_ns = everything(turn.sums).work_ns if current.is_anew and current.untold else 0
    enough_ns = max(TURN_NS, work_ns + TURN_NS // 4)
    while current.untold and work_ns < enough_ns:
        system = next(iter(current.untold))
        only_changed = not current.untold.pop(system)
        neighbor = state.neighbors.get(system)
        if neighbor is None or not neighbor.is_child or not state.updates.links.get(system):
            continue
        summed = _last(state, system) if not current.is_anew else None
        if summed is None:
            summed = _now(state, turn, neighbor)
            place = kept_from(state, system), state.policy.audience_of(neighbor)
            if place not in made:
                work_ns += everything(turn.sums).parting_ns
                made[place] = None
        told = _send(state, turn, neighbor, summed, only_changed=only_changed)
        work_ns += SENDING_NS * len(told)
        sent.extend(told)
    current.is_going = False
    _worked(state, turn.now, work_ns)
    if current.untold:
        _go_on_later(state, turn.now)
    elif state.updates.children_have_news:
        _wake_later(state, turn.now)
    return tuple(sent)


def tell_child(state: ModuleState, turn: Turn, neighbor: Neighbor, /, *, is_anew: bool) -> tuple[SendVector, ...]:
    """Tell one child now, as it asked or because its link is new; if not anew, what it was told last, or later."""
    current = state.updates.round
    summed = _now(state, turn, neighbor) if is_anew else _last(state, neighbor.system)
    if summed is not None:
        if is_anew:
            division = everything(turn.sums)
            turn.work_ns += division.work_ns + division.parting_ns + SENDING_NS
        return _send(state, turn, neighbor, summed, only_changed=False)
    current.untold[neighbor.system] = True
    if not current.is_going:
        current.is_anew = True
        _wake_later(state, turn.now)
    return ()


def _send(
    state: ModuleState, turn: Turn, neighbor: Neighbor, /, summed: Summed, *, only_changed: bool
) -> tuple[SendVector, ...]:
    message = message_to(state, turn, neighbor, _DOWN, summed)
    return send(state, neighbor, message, oldest=summed.oldest, only_changed=only_changed)


def _now(state: ModuleState, turn: Turn, neighbor: Neighbor) -> Summed:
    return Summed(vector_for(state, neighbor, _DOWN, turn.sums), oldest_in(state, turn.account, neighbor, _DOWN))


def _last(state: ModuleState, system: SystemId) -> Summed | None:
    sent = state.updates.sent.get((system, _DOWN))
    return Summed(sent.vector, state.updates.oldest_sent[system, _DOWN]) if sent is not None else None


def _worked(state: ModuleState, now: Instant, work_ns: int) -> None:
    updates = state.updates
    updates.down_rests_until = after_work(updates.down_rests_until, now, work_ns=work_ns, share=DOWN_SHARE)


def _go_on_later(state: ModuleState, now: Instant) -> None:
    state.updates.round.is_going = True
    state.timers.set(TimerKind.TELL, state.system, after(now, _NEXT_TURN_NS))


def _wake_later(state: ModuleState, now: Instant) -> None:
    if not state.timers.is_set(TimerKind.TELL, state.system):
        at = max(after(now, _NEXT_ROUND_NS), rested_at(state.updates.down_rests_until, now))
        state.timers.set(TimerKind.TELL, state.system, at)
