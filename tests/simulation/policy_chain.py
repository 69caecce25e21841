"""Three modules in a row in virtual time, each with a policy as an administrator writes it; the last has a machine."""

from collections.abc import Mapping

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, VectorKind
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import MachineClass
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from tests.unit.core.rig import sdv

ROOT, MIDDLE, LEAF = map(SystemId, ("root", "middle", "leaf"))
OPEN = "accept from any { limit 100 tasks; }"
SETTLED = Instant(5 * SECOND)


def chain(policies: Mapping[SystemId, str], *, slots: int = 2) -> SimulatedFederation:
    """Return the chain when its modules know each other; a system without a policy accepts every task."""
    neighbors = {ROOT: (_child(MIDDLE),), MIDDLE: (_parent(ROOT), _child(LEAF)), LEAF: (_parent(MIDDLE),)}
    systems = {
        name: SimulatedSystem(
            name=name,
            neighbors=others,
            machine=sdv(slots=slots) if name == LEAF else None,
            policy=parse_policy(policies.get(name, OPEN), file=f"{name}.policy"),
        )
        for name, others in neighbors.items()
    }
    federation = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND))
    federation.run(lambda: False, until=SETTLED)
    return federation


def task(origin: SystemId, requirement: str = "", *, members: int = 0, waits: bool = True, **said: Value) -> Submitted:
    """Return a submission of a user of a system."""
    return Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey(repr((origin, said))),
        tdv=TDV(sorted_pairs({"cpus": 1, "origin": origin, "user": "ann", **said})),
        requirement=requirement,
        command=Command(argv=("true",)),
        members=members,
        waits=waits,
    )


def seen_below(federation: SimulatedFederation, system: SystemId) -> tuple[MachineClass, ...]:
    """Return the classes in the last vector from the only child of a system."""
    views = federation.members[system].module.state.updates.views
    (view,) = [view for (_, kind), view in views.items() if kind is VectorKind.FOR_PARENTS]
    return view.message.vector.classes


def _child(name: SystemId) -> Neighbor:
    return Neighbor(system=name, is_child=True, is_primary_child=True)


def _parent(name: SystemId) -> Neighbor:
    return Neighbor(system=name, is_parent=True, is_primary_parent=True)
