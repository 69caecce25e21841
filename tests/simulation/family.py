"""Systems in virtual time whose relations a test gives as `child: parents`, and what the sums at one of them hold."""

from collections.abc import Mapping, Sequence

from messiahs.config.topology.neighbors import Neighborhoods
from messiahs.config.topology.topology import System, Topology
from messiahs.core.interface.messages import VectorKind
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.update.counting import counting_of
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.conditions import Conditions
from tests.unit.core.rig import sdv


def family(
    parents: Mapping[str, Sequence[str]],
    *,
    machines: Sequence[str],
    policy: Policy | None = None,
    conditions: Conditions | None = None,
) -> SimulatedFederation:
    """Return systems when they know each other; the first parent of each is its primary one."""
    topology = Topology(
        federation="family",
        systems=tuple(
            System(
                name=SystemId(name),
                parents=tuple(map(SystemId, above)),
                primary_parent=SystemId(above[0]) if above else None,
            )
            for name, above in parents.items()
        ),
    )
    around = Neighborhoods(topology)
    systems = {
        system.name: SimulatedSystem(
            name=system.name,
            neighbors=around.of(system.name),
            machine=sdv(slots=2) if system.name in machines else None,
            policy=policy or OpenPolicy(),
        )
        for system in topology.systems
    }
    federation = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND), conditions=conditions)
    federation.run(lambda: False, until=Instant(10 * SECOND))
    return federation


def let_pass(federation: SimulatedFederation, nanoseconds: int) -> None:
    """Let virtual time pass."""
    federation.run(lambda: False, until=Instant(federation.now + nanoseconds))


def machines_at(federation: SimulatedFederation, system: str) -> int:
    """Return how many machines a system sums up now from the vectors of those that it counts, with its own."""
    state = federation.members[SystemId(system)].module.state
    neighbors = counting_of(state).neighbors
    return state.updates.own.machines + sum(
        view.message.vector.machines
        for (neighbor, kind), view in state.updates.views.items()
        if kind is VectorKind.FOR_PARENTS and neighbors[neighbor].is_primary_child
    )
