"""Two sites with a root each, in virtual time: tasks run where their streams can go, and nowhere else."""

from collections import Counter

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import Trust
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedSystem
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.world.sites import apart_from
from tests.unit.core.rig import sdv, tdv

UNI, PHYS, CHEM, LAB = map(SystemId, ("uni", "phys", "chem", "lab"))
ROOTS = {UNI: b"u" * 16, PHYS: b"u" * 16, CHEM: b"c" * 16, LAB: b"c" * 16}
PARENTS = {PHYS: UNI, CHEM: UNI, LAB: CHEM}
MEMBERS = 20


def neighbors_of(name: SystemId) -> tuple[Neighbor, ...]:
    children = [child for child, parent in PARENTS.items() if parent == name]
    below = tuple(Neighbor(system=child, is_child=True, is_primary_child=True) for child in children)
    above = (Neighbor(system=PARENTS[name], is_parent=True, is_primary_parent=True),) if name in PARENTS else ()
    return (*below, *above)


def test_tasks_of_one_site_are_not_bound_to_machines_of_another_one() -> None:
    sites = {name: Trust(roots=(root,), vouchers=(root,)) for name, root in ROOTS.items()}
    systems = {
        name: SimulatedSystem(
            name=name,
            neighbors=neighbors_of(name),
            machine=sdv(slots=1 if name == UNI else 8) if name != PHYS else None,
            policy=OpenPolicy(),
            trust=sites[name],
            apart=apart_from(name, neighbors_of(name), sites),
        )
        for name in ROOTS
    }
    federation = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=2 * SECOND))
    federation.run(lambda: False, until=Instant(10 * SECOND))
    event = Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey("k"),
        tdv=tdv(origin=PHYS),
        requirement="",
        command=Command(argv=("true",)),
        members=MEMBERS,
    )
    federation.post(PHYS, event)
    federation.run(lambda: len(federation.ended) == MEMBERS, until=Instant(30 * MINUTE))
    rows = federation.ended.values()
    assert Counter(row.executed_on for row in rows) == {UNI: MEMBERS}
    assert {row.attempt for row in rows} == {1}
