"""Queries of hosts about vectors: the sums of a module, its views of neighbors, and what they get (MESSIAHS 7.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.parts import Policy
from messiahs.core.model.demand import Demand
from messiahs.core.model.descriptions import Description, Pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.link_costs import LinkCosts
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.search.routing import view_behind
from messiahs.core.search.task_request import waiting_behind
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.update.counting import counting_of
from messiahs.core.update.demand import demand_below, demand_of_children, own_demand
from messiahs.core.update.link_costs import costs_behind
from messiahs.core.update.outgoing import passed_on
from messiahs.core.update.preview import preview
from messiahs.core.update.self_description import described_now
from messiahs.core.update.sums import vector_for_children, vector_for_parents, vector_for_siblings, view_of
from messiahs.core.vectors.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSums:
    """The three sums of the machines known to the module (MESSIAHS 7.2)."""

    up: Vector
    down: Vector
    sibling: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborView:
    """The view of a neighbor: the machines that it reports, and the tasks that wait there."""

    vector: Vector
    age_ns: int
    """The age of its oldest part."""
    waiting: int
    """The number of tasks waiting there."""
    history: Pairs
    """What the history of its attributes tells, as far as the policy keeps it."""
    costs: LinkCosts
    """The costs of the path to the nearest machines behind it, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The vectors for a neighbor under a policy, and the name under which it sees denials from here."""

    name: str
    vectors: tuple[StatusVector, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSent:
    """The last vector of one kind that a neighbor was sent: with how many machines, and when."""

    kind: VectorKind
    machines: int
    at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosed:
    """What a neighbor was sent of the own machine; the policy does not reveal the `hidden` attributes to it."""

    neighbor: Neighbor
    is_linked: bool
    is_revealed: bool
    hidden: tuple[str, ...]
    sent: tuple[LastSent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertised:
    """The own machine as it is, and as the policy and the owner's dial advertise it.

    `kept` are attributes that are not advertised at all, apart from those that never leave the machine.
    """

    here: Description
    told: Description
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandReport:
    """The unmet demand of the local users, counted since an instant, and what each primary child reports of its part.

    `total` is the sum of all. `given` is what the parent that counts this system gets of it, with that parent's name.
    """

    since: Instant | None
    own: Demand
    children: Mapping[SystemId, Demand]
    total: Demand
    parent: SystemId | None
    given: Demand


def demand_report(state: ModuleState, now: Instant) -> DemandReport:
    """Return the unmet demand here and below as of now, and what went up with the last vector."""
    own, parent = own_demand(state, now), counting_of(state).parent
    sent = state.updates.sent.get((parent, VectorKind.FOR_PARENTS)) if parent is not None else None
    return DemandReport(
        since=state.demand.since,
        own=own,
        children=demand_of_children(state),
        total=demand_below(state, own),
        parent=parent,
        given=sent.demand if sent is not None else (),
    )


def disclosed(state: ModuleState) -> tuple[Disclosed, ...]:
    """Return what each neighbor was sent of the own machine."""
    return tuple(_disclosed(state, neighbor) for neighbor in state.neighbors.values())


def advertised(state: ModuleState, now: Instant) -> Advertised | None:
    """Return the own machine as it is and as it is advertised; None without a machine, or before it was measured."""
    here = own_sdv(state)
    if here is None:
        return None
    told = described_now(state, now)
    described = {} if told is None else told.description()
    kept = tuple(name for name, _ in here.pairs if name not in described)
    return Advertised(here=here.description(), told=described, kept=kept)


def _disclosed(state: ModuleState, neighbor: Neighbor) -> Disclosed:
    updates, disclosure = state.updates, state.policy.disclosure
    is_revealed = disclosure.reveals_to(neighbor)
    names = [name for each in updates.own.classes for name, _ in each.attributes]
    return Disclosed(
        neighbor=neighbor,
        is_linked=state.has_lasting_link(neighbor.system),
        is_revealed=is_revealed,
        hidden=tuple(name for name in names if is_revealed and not disclosure.shows(name, neighbor)),
        sent=tuple(
            LastSent(kind=kind, machines=message.vector.machines, at=updates.sent_to_at.get((system, kind)))
            for (system, kind), message in updates.sent.items()
            if system == neighbor.system
        ),
    )


def own_sums(state: ModuleState) -> OwnSums:
    """Return the three sums of the present views, not compacted."""
    own, keys, neighbors = state.updates.own, state.policy.keys, tuple(counting_of(state).neighbors.values())
    views = passed_on({key: view.message.vector for key, view in state.updates.views.items()}, state.policy)
    return OwnSums(
        up=vector_for_parents(own, neighbors, views=views, keys=keys),
        down=vector_for_children(own, neighbors, views=views, keys=keys),
        sibling=vector_for_siblings(own, neighbors, views=views, keys=keys),
    )


def neighbor_view(state: ModuleState, neighbor: Neighbor, now: Instant) -> NeighborView | None:
    """Return the view of a neighbor; None before its first vector."""
    # A sibling that is also a parent sends two vectors: the one by which tasks are placed counts, once it has arrived.
    heard = [view for (system, _), view in state.updates.views.items() if system == neighbor.system]
    if not heard:
        return None
    viewed = view_behind(state, neighbor)
    return NeighborView(
        vector=view_of(neighbor, {key: view.message.vector for key, view in state.updates.views.items()}),
        age_ns=max(view.age_ns(now) for view in ((viewed,) if viewed is not None else heard)),
        waiting=waiting_behind(state, neighbor),
        history=state.updates.histories.facts_of(neighbor.system, now),
        costs=costs_behind(state, neighbor.system, viewed),
    )


def sight_of(state: ModuleState, neighbor: Neighbor, policy: Policy, /, now: Instant) -> Sight:
    """Return the vectors that a neighbor would be sent now under a policy, and the name that it would see."""
    return Sight(
        name=policy.disclosure.name_for(neighbor) or state.system,
        vectors=preview(state, neighbor.system, policy, now=now),
    )
