"""Draining a module: it takes no new work and says why, and its machine is in no vector (MESSIAHS 2: autonomy).

Its users may still submit tasks, which run elsewhere. What runs here continues until it ends, or until the deadline,
when it is revoked: its origins then place it elsewhere. Claims without an attempt that their origins do not end are
then ended here, so that no neighbor can keep a drain open.

A drain may be announced (maintenance): until it begins, the machine takes the work that ends before, and claims whose
tasks would not are withdrawn.
"""

from dataclasses import replace
from typing import Final

from messiahs.core.closing import close_unused, forget_passed, withdraw_all
from messiahs.core.executor import owner_rules
from messiahs.core.executor.kept_results import RESULTS_KEPT_NS
from messiahs.core.executor.owner_acts import give_back_queued
from messiahs.core.executor.withdrawal import withdraw
from messiahs.core.interface.actions import Action, Answer, Decision, Forget, Store
from messiahs.core.interface.events import DrainRequested
from messiahs.core.interface.membership_rows import DrainRow
from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.interface.rows import RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.origin import rounds
from messiahs.core.search.routing import why_drained
from messiahs.core.state.changes import mark_view_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.maintenance import CHECK_INTERVAL_NS, maintenance_text, why_too_late

_AGAIN_NS: Final = 5 * SECOND
"""After the deadline, it is looked at this interval for attempts that were in transit and claims that may be ended."""
_PARTING_NS: Final = 30 * SECOND
"""How long after the deadline, and the grace of the attempts, origins may take to end claims that are not used."""


def on_drain_requested(state: ModuleState, event: DrainRequested, now: Instant) -> tuple[Action, ...]:
    """Drain the module, or end its drain, and answer; repeated, it gets the new deadline and reason."""
    answer = Answer(answer_to=event.answer_to)
    if not event.is_on:
        return (*_undrain(state, event, now), answer)
    if event.begins is None or event.begins <= now:
        return (*_drain(state, now, deadline=_deadline(event, now), text=event.text), answer)
    if state.membership.drain is not None:
        return (replace(answer, problem="this module is drained already: `messiahs module undrain` ends that first"),)
    deadline = _deadline(event, event.begins)
    return (
        *_announce(state, DrainRow(since=now, deadline=deadline, text=event.text, begins=event.begins), now),
        answer,
    )


def enter(state: ModuleState, row: DrainRow) -> None:
    """Enter a stored drain, or the announcement of one, before claims are restored."""
    if row.begins is None:
        state.membership.drain = row
    else:
        state.membership.announced = row


def resume(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Continue a stored drain or announcement, if there is one, after all claims have been restored."""
    membership = state.membership
    if membership.announced is not None:
        return _take_what_ends(state, membership.announced, now)
    if membership.drain is None:
        return ()
    _watch_deadline(state, membership.drain)
    return withdraw_all(state, now)


def on_drain_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Revoke what runs after the deadline, and a while later end what keeps the drain open without any attempt.

    It looks again later, since tasks that were bound may still arrive. An announced drain begins when it is time.
    """
    if state.membership.announced is not None:
        return _take_what_ends(state, state.membership.announced, now)
    drain = state.membership.drain
    if drain is None or drain.deadline is None:
        return ()
    live = [row for row in state.executor.attempts.values() if row.status.state is TaskState.EXECUTING]
    late = [row.id for row in live if row.status.substate is not Substate.VACATING]
    # Tasks like these are not barred: they may return as soon as the drain ends.
    revoked = owner_rules.revoke(state, late, kills=False, bars=False, text=why_drained(drain), now=now)
    closed = _close(state, drain.deadline, now)
    if live or state.executor.claims or state.hop.passed:
        state.timers.set(TimerKind.DRAIN, state.system, after(now, _AGAIN_NS))
    return (*revoked, *closed)


def _close(state: ModuleState, deadline: Instant, now: Instant) -> tuple[Action, ...]:
    """End claims that are not used, and forget those that pass to neighbors not connected for the time of a lease."""
    is_over = now >= after(deadline, state.policy.timeouts.kill_grace_ns + _PARTING_NS)
    is_for_results = now >= after(deadline, RESULTS_KEPT_NS)
    actions = list(close_unused(state, now, is_for_results=is_for_results)) if is_over else []
    links, before = state.updates.links, state.membership.unheard
    ends = (each for row in state.hop.passed.values() for each in (row.toward_origin, row.toward_executor))
    unheard = state.membership.unheard = {each: before.get(each, now) for each in ends if not links.get(each)}
    for neighbor, since in unheard.items():
        if now >= after(since, state.policy.timeouts.lease_ns):
            actions.extend(forget_passed(state, neighbor))
    return tuple(actions)


def _announce(state: ModuleState, row: DrainRow, now: Instant) -> tuple[Action, ...]:
    state.membership.announced = row
    decision = Decision(what="announced", task=state.system, text=maintenance_text(row))
    return (Store(row=row), decision, *_take_what_ends(state, row, now))


def _take_what_ends(state: ModuleState, row: DrainRow, now: Instant) -> tuple[Action, ...]:
    """Begin an announced drain when it is time; before, withdraw the claims whose tasks would not end until then."""
    assert row.begins is not None, "a drain that has begun is not announced"
    if now >= row.begins:
        return _drain(state, now, deadline=row.deadline, text=row.text)
    actions: list[Action] = []
    for claim in tuple(state.executor.claims.values()):
        if why_too_late(state, claim.row.tdv, now):
            actions.extend((*withdraw(state, claim, now), *give_back_queued(state, claim)))
    state.timers.set(TimerKind.DRAIN, state.system, min(row.begins, after(now, CHECK_INTERVAL_NS)))
    return tuple(actions)


def _deadline(event: DrainRequested, begins: Instant) -> Instant | None:
    return after(begins, event.deadline_ns) if event.deadline_ns is not None else None


def _drain(state: ModuleState, now: Instant, *, deadline: Instant | None, text: str) -> tuple[Action, ...]:
    before = state.membership.drain
    row = DrainRow(since=before.since if before is not None else now, deadline=deadline, text=text)
    state.membership.drain, state.membership.announced = row, None
    _watch_deadline(state, row)
    mark_view_changed(state, now)
    decision = Decision(what="drained", task=state.system, text=text)
    return (Store(row=row), decision, *withdraw_all(state, now), *rounds.search_everywhere(state, now))


def _undrain(state: ModuleState, event: DrainRequested, now: Instant) -> tuple[Action, ...]:
    if state.membership.drain is None and state.membership.announced is None:
        return ()
    state.membership.drain = state.membership.announced = None
    state.membership.unheard.clear()
    state.timers.cancel(TimerKind.DRAIN, state.system)
    mark_view_changed(state, now)
    decision = Decision(what="undrained", task=state.system, text=event.text)
    return (Forget(key=(RowKind.DRAIN, None)), decision, *rounds.search_everywhere(state, now))


def _watch_deadline(state: ModuleState, row: DrainRow) -> None:
    if row.deadline is None:
        state.timers.cancel(TimerKind.DRAIN, state.system)
    else:
        state.timers.set(TimerKind.DRAIN, state.system, row.deadline)
