"""Communication costs: of the links with neighbors, and of the paths behind them (MESSIAHS 5.1).

Vectors of both directions measure the round trip of a link, and files that are sent its throughput. Each vector says
what its sender adds: the costs between the sender and the nearest machine of the vector, by round trip, and likewise
by throughput. So on every path round trips add up, and the least throughput counts, as far as policies reveal them. The
nearest machine counts, because one that is far, or says that it is, must not put others behind the same system off.
"""

from collections.abc import Collection, Iterator, Mapping

from messiahs.core.border.sides import hides_from
from messiahs.core.interface.actions import Action
from messiahs.core.interface.messages import VectorKind
from messiahs.core.interface.spliced_bytes import FilesSent
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.link_costs import LEAST_MEASURED_BYTES, UNKNOWN_COSTS, LinkCosts, Probe
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.link_costs import MeasuredLink, PathCosts
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import View
from messiahs.core.update.counting import counting_of
from messiahs.core.update.sums import VectorKey, in_down, in_up


def probe_for(state: ModuleState, neighbor: SystemId, now: Instant) -> Probe:
    """Return the probe of a vector that is sent to a neighbor now."""
    return state.updates.measured_links.setdefault(neighbor, MeasuredLink()).probe(now)


def note_probe(state: ModuleState, neighbor: SystemId, probe: Probe, /, now: Instant) -> None:
    """Note the probe of a vector from a neighbor; one of an earlier release has none."""
    if probe.stamp:
        state.updates.measured_links.setdefault(neighbor, MeasuredLink()).on_probe(probe, now)


def on_files_sent(state: ModuleState, event: FilesSent) -> tuple[Action, ...]:
    """Count files for the link over which they went, or for the one through which their receiver was found."""
    neighbor = event.to
    if neighbor not in state.neighbors:
        held = state.origin.claims.get(event.claim)
        if held is None or held.row.via not in state.neighbors:
            return ()
        neighbor = held.row.via
    if event.size_bytes >= LEAST_MEASURED_BYTES:
        link = state.updates.measured_links.setdefault(neighbor, MeasuredLink())
        link.on_transfer(event.size_bytes, event.duration_ns)
    return ()


def note_connection_ended(state: ModuleState, neighbor: SystemId) -> None:
    """Begin to measure a link anew; what was measured counts until then."""
    if neighbor in state.updates.measured_links:
        state.updates.measured_links[neighbor].on_connection_ended()


def forget_link(state: ModuleState, system: SystemId) -> None:
    """Forget the link with a system that is no neighbor any more, or that is another system than before."""
    state.updates.measured_links.pop(system, None)


def costs_behind(state: ModuleState, system: SystemId, /, view: View | None) -> LinkCosts:
    """Return the costs of the path to the nearest machines behind a neighbor, as far as they are known."""
    link = state.updates.link_costs(system)
    return link if view is None else link.then(view.message.behind)


def path_costs(state: ModuleState, views: Mapping[VectorKey, View]) -> PathCosts:
    """Return the costs of all paths from which what neighbors are sent is chosen."""
    if state.updates.own.classes:
        return PathCosts(is_here=True)
    neighbors = counting_of(state).neighbors.values()
    above = [costs for _, costs in _paths(state, views, in_down(neighbors))]
    below = tuple(_paths(state, views, in_up(neighbors)))
    trips = ((costs.round_trip_ns, system) for system, costs in below if costs.round_trip_ns is not None)
    throughputs = ((costs.throughput, system) for system, costs in below if costs.throughput is not None)
    return PathCosts(
        above=LinkCosts(
            min((each.round_trip_ns for each in above if each.round_trip_ns is not None), default=None),
            max((each.throughput for each in above if each.throughput is not None), default=None),
        ),
        round_trips=tuple(sorted(trips)),
        throughputs=tuple(sorted(throughputs, reverse=True)),
    )


def behind_for(
    state: ModuleState, costs: PathCosts, neighbor: Neighbor, /, kind: VectorKind, kept: Collection[SystemId]
) -> LinkCosts:
    """Return the costs from here to the nearest machines of a vector, without those behind `kept`.

    They are shown to those who may see `$comm_cost`; to another site, or outside this border, only if a `reveal` names
    it. They are of single machines, so a policy that hides small counts hides them.
    """
    disclosure = state.policy.disclosure
    is_apart = neighbor.system in state.identity.apart or hides_from(state, neighbor.system)
    is_shown = disclosure.reveals_costs_to(neighbor, is_apart=is_apart) and not disclosure.least_shown_to(neighbor)
    if costs.is_here or not is_shown:
        return UNKNOWN_COSTS
    above = costs.above if kind is VectorKind.FOR_CHILDREN else UNKNOWN_COSTS
    trips = (above.round_trip_ns, next((value for value, child in costs.round_trips if child not in kept), None))
    throughputs = (above.throughput, next((value for value, child in costs.throughputs if child not in kept), None))
    return LinkCosts(
        min((each for each in trips if each is not None), default=None),
        max((each for each in throughputs if each is not None), default=None),
    )


def _paths(
    state: ModuleState, views: Mapping[VectorKey, View], keys: tuple[VectorKey, ...]
) -> Iterator[tuple[SystemId, LinkCosts]]:
    """Yield the costs through each of some neighbors behind which there are machines."""
    for key in keys:
        view = views.get(key)
        if view is not None and view.message.vector.classes:
            yield key[0], costs_behind(state, key[0], view)
