"""The update channel: advertising state and receiving that of neighbors (MESSIAHS 5.3.1, 6.1, 6.2 status_vector).

Vectors are sent at the policy's period, and 10 ms after a change, but at most every 50 ms, and less often where many
neighbors make sums expensive. A neighbor that is silent for the input timeout is queried once, unless the policy says
otherwise; if it stays silent, it counts as down and its view is removed from every sum. With `poll`, a module also asks
each neighbor for its vectors whenever the last ones are that old.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl
from messiahs.core.interface.events import Measured
from messiahs.core.interface.limits import LONGEST_PERIOD_NS
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import HeardChange
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.relay.links_down import without_link
from messiahs.core.state.changes import mark_changed, mark_view_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.state.views import Round, View, viewed_kind
from messiahs.core.update.advertising import advertise
from messiahs.core.update.counting import note_heard, note_said, note_silent, parents_in_order
from messiahs.core.update.histories import note_forgotten, note_vector
from messiahs.core.update.link_costs import note_probe
from messiahs.core.update.transmission import forget_sent
from messiahs.core.vectors.vectors import EMPTY, Vector

_SILENT_PERIODS = 3


def on_output_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Recompute the update vectors and advertise them to every neighbor (MESSIAHS 6.1)."""
    state.timers.set(TimerKind.OUTPUT, state.system, after(now, state.policy.timeouts.update_period_ns))
    return advertise(state, now, only_changed=False)


def on_change_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Advertise the vectors that have changed since they were sent."""
    return advertise(state, now, only_changed=True)


def expect_vectors(state: ModuleState, system: SystemId, now: Instant) -> None:
    """Start the input timeout of a neighbor; none if its link is being ended."""
    if state.membership.is_leaving(system):
        return
    state.timers.set(TimerKind.INPUT, system, after(now, silence_of(state, system)))
    _poll_later(state, system, now)


def silence_of(state: ModuleState, system: SystemId) -> int:
    """Return the length of a neighbor's input timeout; without a vector from it, the own update period is assumed."""
    views = (state.updates.views.get((system, kind)) for kind in VectorKind)
    periods_ns = [view.message.period_ns for view in views if view is not None]
    return _input_timeout_ns(state, max(periods_ns, default=state.policy.timeouts.update_period_ns))


def expect_parents(state: ModuleState, now: Instant) -> None:
    """Start the input timeouts of parents without a link: after it, the next parent counts this system."""
    parents = parents_in_order(state)
    for parent in parents if len(parents) > 1 else ():
        if parent not in state.updates.silent and not state.timers.is_set(TimerKind.INPUT, parent):
            expect_vectors(state, parent, now)


def wait_anew(state: ModuleState, now: Instant) -> None:
    """Restart the input timeout of every neighbor, except those already queried."""
    for system, is_greeted in state.updates.links.items():
        if is_greeted and not state.updates.queried.get(system):
            expect_vectors(state, system, now)


def on_status_vector(
    state: ModuleState, message: StatusVector, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Save a vector for later scheduling and reset the link's timers (MESSIAHS 6.2 status vector)."""
    neighbor = state.neighbors.get(sender)
    if neighbor is None or not state.updates.links.get(sender):
        return (without_link(state, sender, "StatusVector"),)
    if message.kind not in _kinds_from(neighbor):
        return (Report(neighbor=sender, code=ReportCode.WRONG_VECTOR, text=message.kind.name.lower()),)
    note_probe(state, sender, message.probe, now)
    previous = state.updates.views.get((sender, message.kind))
    if previous is not None and previous.message.vector == message.vector:
        # An unchanged vector: the earlier one is kept, with the verdicts stored for its classes.
        message = replace(message, vector=previous.message.vector)
    state.updates.views[sender, message.kind] = View(message=message, received_at=now)
    before = None if previous is None else previous.message.vector
    note_vector(state, sender, message.kind, vector=message.vector, before=before, now=now)
    state.updates.queried.pop(sender, None)
    state.timers.set(TimerKind.INPUT, sender, after(now, _input_timeout_ns(state, message.period_ns)))
    _poll_later(state, sender, now)
    heard = note_heard(state, sender, now)
    is_counted_anew = note_said(state, previous.message if previous is not None else None, message)
    is_news = previous is None or _affects_others(state, previous.message, message, sender=sender, now=now)
    is_news |= message.settling != (previous.message.settling if previous is not None else ())
    if is_news or is_counted_anew:
        mark_view_changed(state, now)
    elif previous is not None and previous.message.vector == message.vector:
        return heard
    state.updates.has_changes = True
    return heard


def viewed(state: ModuleState, system: SystemId) -> Vector:
    """Return the machines that can be reached through a neighbor, as last reported; empty for an unknown neighbor."""
    neighbor = state.neighbors.get(system)
    view = state.updates.views.get((system, viewed_kind(neighbor))) if neighbor is not None else None
    return view.message.vector if view is not None else EMPTY


def on_measured(state: ModuleState, event: Measured, now: Instant) -> tuple[Action, ...]:
    """Record the measurement of the own machine."""
    if (state.updates.measured, state.updates.counted) != (event.sdv, event.counted):
        state.updates.measured, state.updates.counted = event.sdv, event.counted
        mark_changed(state, now)
    return ()


def on_poll_timeout(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Ask a neighbor for its vectors, because the last ones are old (MESSIAHS 5.1, 6.1: a poll-driven module)."""
    if not state.updates.links.get(system) or state.policy.timeouts.poll_ns is None:
        return ()
    _poll_later(state, system, now)
    return (SendControl(to=system, message=SystemStatusQuery()),)


def on_input_timeout(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Query a silent neighbor once if the policy wants that, then declare it down (MESSIAHS 6.1).

    This system does without it as a parent. A neighbor that is polled continues to be.
    """
    queries = state.policy.timeouts.queries_silent
    if queries and not state.updates.queried.get(system) and state.updates.links.get(system):
        state.updates.queried[system] = True
        state.timers.set(TimerKind.INPUT, system, after(now, state.policy.timeouts.update_period_ns))
        return (SendControl(to=system, message=SystemStatusQuery()),)
    down = Decision(what="neighbor_down", task=system, text="input timeout")
    forgotten = forget_views(state, system, now)
    if state.updates.links.get(system):
        _poll_later(state, system, now)
    return (*forgotten, down, *note_silent(state, system, now))


def forget_views(state: ModuleState, system: SystemId, now: Instant) -> tuple[Action, ...]:
    """Remove a neighbor's views from every sum: its connection ended, or they are too old."""
    for kind in VectorKind:
        view = state.updates.views.pop((system, kind), None)
        note_said(state, view.message if view is not None else None, None)
        forget_sent(state, system, kind)
    state.updates.indexes.drop(system)
    note_forgotten(state, system, now)
    state.updates.queried.pop(system, None)
    state.timers.cancel(TimerKind.INPUT, system)
    state.timers.cancel(TimerKind.POLL, system)
    mark_view_changed(state, now)
    return ()


def begin_sums_anew(state: ModuleState, now: Instant) -> None:
    """Begin sums and rounds in progress anew: a neighbor has come or gone, or has other relations."""
    updates = state.updates
    updates.round, updates.summing = Round(), None
    updates.are_others_outdated = updates.are_children_outdated = True
    mark_view_changed(state, now)


def send_all_anew(state: ModuleState) -> None:
    """Send all vectors anew at the next occasion, without a rest: earlier ones may show what is now withheld."""
    updates = state.updates
    updates.sent.clear()
    updates.oldest_sent.clear()
    updates.sent_from.clear()
    updates.sent_to_at.clear()
    updates.round, updates.summing, updates.is_up_obsolete = Round(), None, True
    updates.up_rests_until = updates.down_rests_until = updates.asked_rests_until = None


def _affects_others(
    state: ModuleState, before: StatusVector, after: StatusVector, /, *, sender: SystemId, now: Instant
) -> bool:
    """Return whether other neighbors should know of a vector before the period ends."""
    change = HeardChange(neighbor=sender, before=before, after=after, keys=state.policy.keys, at=now)
    return decide(state, PartKind.UPDATE, state.policy.update, change)


def _input_timeout_ns(state: ModuleState, period_ns: int) -> int:
    timeouts = state.policy.timeouts
    if timeouts.input_ns is not None:
        return timeouts.input_ns
    return _SILENT_PERIODS * min(period_ns, LONGEST_PERIOD_NS, timeouts.poll_ns or LONGEST_PERIOD_NS)


def _poll_later(state: ModuleState, system: SystemId, now: Instant) -> None:
    poll_ns = state.policy.timeouts.poll_ns
    if poll_ns is None:
        state.timers.cancel(TimerKind.POLL, system)
    else:
        state.timers.set(TimerKind.POLL, system, after(now, poll_ns))


def _kinds_from(neighbor: Neighbor) -> tuple[VectorKind, ...]:
    kinds = (
        (neighbor.is_child, VectorKind.FOR_PARENTS),
        (neighbor.is_parent, VectorKind.FOR_CHILDREN),
        (neighbor.is_sibling, VectorKind.FOR_SIBLINGS),
    )
    return tuple(kind for is_so, kind in kinds if is_so)
