"""Changes of the known machines, after which waiting tasks may find a place (MESSIAHS 6.1, 6.2)."""

from messiahs.core import epochs
from messiahs.core.interface.actions import Action
from messiahs.core.interface.messages import StatusVector
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.rounds import on_view_changed
from messiahs.core.state.module import ModuleState
from messiahs.core.update import status_vector
from messiahs.core.vectors.vectors import Vector


def on_status_vector(
    state: ModuleState, message: StatusVector, *, sender: SystemId, now: Instant
) -> tuple[Action, ...]:
    """Store a neighbor's vector, then search for the shapes that it newly could hold."""
    indexes, before = state.updates.indexes, status_vector.viewed(state, sender)
    actions = status_vector.on_status_vector(state, message, sender=sender, now=now)
    view = status_vector.viewed(state, sender)
    # A vector that repeats the last one is kept as the same object.
    if view is before:
        return actions
    return (*actions, *on_view_changed(state, indexes.of(sender, before), indexes.of(sender, view), now))


def on_output_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Advertise to every neighbor, then search for the shapes that the own machine newly could hold."""
    reported, before = epochs.report_ids(state, now), state.updates.own
    advertised = status_vector.on_output_timeout(state, now)
    return (*reported, *advertised, *_on_own_changed(state, before, now))


def on_change_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Advertise changes, then search for the shapes that the own machine newly could hold."""
    before = state.updates.own
    advertised = status_vector.on_change_timeout(state, now)
    return (*advertised, *_on_own_changed(state, before, now))


def _on_own_changed(state: ModuleState, before: Vector, now: Instant) -> tuple[Action, ...]:
    own, indexes = state.updates.own, state.updates.indexes
    if own == before:
        return ()
    return on_view_changed(state, indexes.of(state.system, before), indexes.of(state.system, own), now)
