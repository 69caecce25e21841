"""The owner's dial: `lend off` takes the machine back from other modules, whatever the policy says (MESSIAHS 2).

Tasks that neighbors bring are refused, and those that run are suspended until the dial is turned back; claims of
neighbors take no more tasks, and vectors show no free slot. The tasks of this module's own users go on. Meanwhile the
rules of the policy apply to what is suspended as to all else, so a task may still be moved or vacated. Then each
attempt continues as the policy wants: its guard has kept that (owner_acts.py).
"""

from collections.abc import Iterable

from messiahs.core.executor.owner_acts import give_back_queued
from messiahs.core.executor.owner_rules import evaluate
from messiahs.core.executor.reservations import forget_starved
from messiahs.core.executor.withdrawal import withdraw
from messiahs.core.interface.actions import Action, Answer, Decision, Forget, Store
from messiahs.core.interface.events import LendRequested
from messiahs.core.interface.lending import LendRow, Lent
from messiahs.core.interface.rows import Row, RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import Instant, instant_text
from messiahs.core.state.changes import mark_view_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.withheld import is_withheld_from


def on_lend_requested(state: ModuleState, event: LendRequested, now: Instant) -> tuple[Action, ...]:
    """Turn the dial and answer; repeated, it gets the new end."""
    answer = Answer(answer_to=event.answer_to)
    if event.lent is Lent.POLICY:
        return (*_turn(state, None, now), answer)
    row = LendRow(is_on=event.lent is Lent.ON, since=now, until=event.until, by=event.by)
    return (*_turn(state, row, now), answer)


def on_lending_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """End a position of the dial: what was off is left to the policy, what was on is off."""
    row = state.executor.lending
    if row is None or row.until is None:
        return ()
    return _turn(state, LendRow(is_on=False, since=now, by=row.by) if row.is_on else None, now)


def restore(state: ModuleState, rows: Iterable[Row]) -> None:
    """Continue with the stored position, if there is one; claims were withdrawn before the restart."""
    state.executor.lending = next((row for row in rows if isinstance(row, LendRow)), None)
    _watch_end(state, state.executor.lending)


def _turn(state: ModuleState, row: LendRow | None, now: Instant) -> tuple[Action, ...]:
    if row is None and state.executor.lending is None:
        return ()
    state.executor.lending = row
    _watch_end(state, row)
    mark_view_changed(state, now)
    stored = Forget(key=(RowKind.LENDING, None)) if row is None else Store(row=row)
    taken_back = _take_back(state, now) if state.executor.is_withheld else ()
    return (stored, Decision(what="lend", task=state.system, text=_text(row)), *taken_back, *evaluate(state, now))


def _take_back(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Let no more tasks into the claims of neighbors, give back those that have not started, and reserve nothing."""
    actions: list[Action] = []
    for claim in tuple(state.executor.claims.values()):
        if is_withheld_from(state, claim.row.via):
            actions.extend((*withdraw(state, claim, now), *give_back_queued(state, claim)))
    for neighbor in state.neighbors:
        forget_starved(state, neighbor, now)
    return tuple(actions)


def _watch_end(state: ModuleState, row: LendRow | None) -> None:
    if row is None or row.until is None:
        state.timers.cancel(TimerKind.LENDING, state.system)
    else:
        state.timers.set(TimerKind.LENDING, state.system, row.until)


def _text(row: LendRow | None) -> str:
    if row is None:
        return Lent.POLICY.value
    until = f" until {instant_text(row.until)}" if row.until is not None else ""
    by = f", by {row.by}" if row.by else ""
    return f"{Lent.ON if row.is_on else Lent.OFF}{until}{by}"
