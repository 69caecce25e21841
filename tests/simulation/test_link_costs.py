"""Communication costs in virtual time: the same code measures them where each message takes 1 ms (MESSIAHS 5.1)."""

from messiahs.core import queries
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.model.link_costs import LinkCosts
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.simulation.policy_chain import LEAF, MIDDLE, OPEN, ROOT, chain


def _settled(policy: str = OPEN) -> SimulatedFederation:
    federation = chain({MIDDLE: policy})
    federation.run(lambda: False, until=Instant(federation.now + 20 * SECOND))
    return federation


def _costs(federation: SimulatedFederation, system: SystemId, neighbor: SystemId) -> LinkCosts:
    state = federation.members[system].module.state
    view = queries.neighbor_view(state, state.neighbors[neighbor], federation.now)
    assert view is not None
    return view.costs


def test_round_trips_add_up_along_the_path_to_the_machine() -> None:
    federation = _settled()
    assert _costs(federation, MIDDLE, LEAF).round_trip_ns == 2 * MILLISECOND
    assert _costs(federation, ROOT, MIDDLE).round_trip_ns == 4 * MILLISECOND


def test_a_policy_that_hides_costs_shows_only_those_that_the_neighbor_measures_itself() -> None:
    federation = _settled(f"{OPEN} reveal to parent {{ all except $comm_cost; }}")
    assert _costs(federation, ROOT, MIDDLE).round_trip_ns == 2 * MILLISECOND
