"""A module that has received vectors, and what it sends a neighbor: by the code that a running module uses."""

from collections.abc import Collection, Iterable, Mapping

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import View
from messiahs.core.update.outgoing import sum_up, vector_for
from messiahs.core.update.sums import Views
from messiahs.core.vectors.vectors import Vector
from messiahs.policy.open_policy import OpenPolicy
from tests.unit.core.rig import START, make_module

Hears = Mapping[SystemId, Collection[SystemId]]


def state_with(
    own: Vector, neighbors: Iterable[Neighbor], *, keys: tuple[str, ...], views: Views, hears: Hears
) -> ModuleState:
    """Return the state of a module with these views of neighbors, whose children receive the siblings in `hears`."""
    state = make_module(neighbors=tuple(neighbors), policy=OpenPolicy(keys=keys)).state
    state.updates.own = own
    for (system, kind), vector in views.items():
        hear(state, system, kind=kind, vector=vector, hears=hears.get(system, ()))
    return state


def hear(
    state: ModuleState, system: SystemId, *, kind: VectorKind, vector: Vector, hears: Collection[SystemId] = ()
) -> None:
    """Let a neighbor have said a vector."""
    message = StatusVector(kind=kind, vector=vector, period_ns=1, age_ns=0, hears=tuple(hears))
    state.updates.views[system, kind] = View(message=message, received_at=START)
    state.updates.counting = None


def vector_sent(state: ModuleState, system: SystemId, kind: VectorKind, /) -> Vector:
    """Return what is sent to a neighbor now."""
    return vector_for(state, state.neighbors[system], kind, sum_up(state))
