"""What an audit of the sums reads: the vectors that were received and sent, and those from which each was computed.

All of it was true at one instant. Whether the sums are right is decided elsewhere, by code that shares none with this
room (`messiahs.recount`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Sources
from messiahs.core.update.annotations import kept_from
from messiahs.core.update.counting import counting_of
from messiahs.core.update.sums import VectorKey, in_down, in_up
from messiahs.core.vectors.vectors import MachineClass, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SentVector:
    """The last vector sent to a neighbor."""

    message: StatusVector
    own: Vector
    """The vector of the own machine from which it was computed."""
    heard: Mapping[VectorKey, Vector]
    """The vectors of neighbors that were known then."""
    is_withheld: bool
    """Whether it is empty because the policy reveals nothing to the neighbor, or nothing of so few machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangedWith:
    """The vectors exchanged with one neighbor, by kind."""

    neighbor: Neighbor
    counted: Neighbor
    """The same, as it is counted now."""
    is_linked: bool
    is_leaving: bool
    received: Mapping[VectorKind, StatusVector]
    sent: Mapping[VectorKind, SentVector]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """The vectors that a module exchanged with all neighbors."""

    system: SystemId
    own: Vector
    """The vector of the own machine, as last advertised; empty for a system that has none."""
    counted_at: SystemId | None
    """The parent that counts this system now."""
    is_in_place: bool
    """Whether that is the primary parent of the topology; also without parents."""
    period_ns: int
    neighbors: tuple[ExchangedWith, ...]


def exchanged(state: ModuleState) -> Exchanged:
    """Return the vectors that a module exchanged with all neighbors."""
    counting = counting_of(state)
    return Exchanged(
        system=state.system,
        own=state.updates.own,
        counted_at=counting.parent,
        is_in_place=counting.is_in_place,
        period_ns=state.policy.timeouts.update_period_ns,
        neighbors=tuple(
            _with(state, neighbor, counting.neighbors[system]) for system, neighbor in state.neighbors.items()
        ),
    )


def _with(state: ModuleState, neighbor: Neighbor, counted: Neighbor) -> ExchangedWith:
    updates, system = state.updates, neighbor.system
    return ExchangedWith(
        neighbor=neighbor,
        counted=counted,
        is_linked=bool(updates.links.get(system)),
        is_leaving=state.membership.is_leaving(system),
        received={kind: view.message for (name, kind), view in updates.views.items() if name == system},
        sent={
            kind: _sent(state, neighbor, message, updates.sent_from[system, kind])
            for (name, kind), message in updates.sent.items()
            if name == system
        },
    )


def _sent(state: ModuleState, neighbor: Neighbor, message: StatusVector, sources: Sources) -> SentVector:
    return SentVector(
        message=message,
        own=sources.own,
        heard=sources.heard,
        is_withheld=_is_withheld(state, neighbor, message, sources),
    )


def _is_withheld(state: ModuleState, neighbor: Neighbor, message: StatusVector, sources: Sources) -> bool:
    """Return whether a vector is empty because of the policy: it hides as many machines as there are."""
    if message.vector.classes:
        return False
    neighbors = counting_of(state).neighbors.values()
    keys = in_up(neighbors)
    if message.kind is VectorKind.FOR_CHILDREN:
        kept = kept_from(state, neighbor.system)
        keys = (*in_down(neighbors), *(key for key in keys if key[0] not in kept))
    count = sources.own.machines + sum(sources.heard[key].machines for key in keys if key in sources.heard)
    disclosure = state.policy.disclosure
    if not count:
        return not disclosure.reveals_to(neighbor)
    return not disclosure.reveal(Vector((MachineClass(count=count, attributes=()),)), neighbor).classes
