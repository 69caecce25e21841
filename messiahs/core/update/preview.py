"""The vectors for a neighbor under the running policy or another one, without changing any state (MESSIAHS 7.2)."""

from dataclasses import replace

from messiahs.core.interface.messages import StatusVector
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.update.advertising import vectors_for
from messiahs.core.update.self_description import describe


def preview(state: ModuleState, neighbor: SystemId, policy: Policy, /, now: Instant) -> tuple[StatusVector, ...]:
    """Return all vectors that a neighbor of this module would receive at a period that ends now."""
    # Results are written into a copy; the rest of the state is only read.
    updates = replace(state.updates, sums=None, histories=state.updates.histories.copied())
    copy = replace(state, policy=policy, updates=updates)
    describe(copy, now, only_changed=False)
    return vectors_for(copy, neighbor, now)
