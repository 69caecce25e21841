"""In a tree with borders anywhere, each system reaches each machine, and no border shows what it hides (MESSIAHS 4)."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from messiahs.config.settings import MachineSettings
from messiahs.config.topology.borders import bypasses
from messiahs.config.topology.neighbors import neighbors_of
from messiahs.config.topology.topology import System, Topology
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.checks.invariants import Checks
from messiahs.sim.checks.settled import leftovers
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.load.borders import secrecy_of
from tests.property.budget import examples
from tests.unit.core.rig import sdv, tdv

MEMBERS = 3


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Draw a tree in which some systems have a second parent, and some are borders; no link leads past one."""
    count = draw(st.integers(2, 7))
    parents: dict[str, tuple[str, ...]] = {"sys-0-x": ()}
    for number in range(1, count):
        above = draw(st.lists(st.sampled_from(sorted(parents)), min_size=1, max_size=2, unique=True))
        parents[f"sys-{number}-x"] = tuple(above)
    borders = draw(st.lists(st.sampled_from(sorted(parents)), max_size=3, unique=True))
    while past := next(bypasses(parents, borders), None):
        parents[past.system] = tuple(each for each in parents[past.system] if each != past.parent)
    systems = tuple(
        System(
            name=SystemId(name),
            parents=tuple(map(SystemId, above)),
            primary_parent=SystemId(above[0]) if above else None,
            reach="proxy" if name in borders else "open",
            machine=MachineSettings(),
        )
        for name, above in parents.items()
    )
    return Topology(federation="f", systems=systems)


@examples(15)
@given(topology=topologies(), seed=st.integers(0, 99))
def test_a_task_reaches_a_machine_behind_any_borders_and_nothing_hidden_is_shown(topology: Topology, seed: int) -> None:
    names = [each.name for each in topology.systems]
    # Each machine has a number of slots of its own, by which a requirement names it.
    systems = {
        name: SimulatedSystem(
            name=name,
            neighbors=neighbors_of(topology, name),
            machine=sdv(slots=number + 2),
            policy=OpenPolicy(),
            reach=topology.system(name).reach,
        )
        for number, name in enumerate(names)
    }
    machines = {name: each.machine.description() for name, each in systems.items() if each.machine is not None}
    checks = Checks(machines, {name: each.clock for name, each in systems.items()}, secrecy=secrecy_of(topology))
    run_times = RunTimes(seed=seed, mean_ns=1 * SECOND, writing=100)
    federation = SimulatedFederation(systems, seed=seed, run_times=run_times, watcher=checks)
    checks.agenda = federation.agenda
    federation.run(lambda: False, until=Instant(10 * SECOND))
    random = Random(seed)
    wanted = {origin: random.randrange(len(names)) for origin in random.sample(names, min(3, len(names)))}
    for number, (origin, target) in enumerate(wanted.items()):
        federation.post(
            origin,
            Submitted(
                answer_to=AnswerTo(number),
                key=ClientKey(origin),
                tdv=tdv(origin=origin, user="account-ann"),
                requirement=f"$slots = {target + 2}",
                command=Command(argv=("true",)),
                members=MEMBERS,
            ),
        )
    federation.run(lambda: len(federation.ended) == MEMBERS * len(wanted), until=after(federation.now, 5 * MINUTE))
    federation.run(lambda: False, until=after(federation.now, 1 * MINUTE))
    rows = federation.ended.values()
    assert len(rows) == MEMBERS * len(wanted)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    for row in rows:
        assert row.result is not None
        machine = checks.begun[row.result.attempt]
        assert machine == names[wanted[row.id.system]]
        assert checks.is_shown_as(machine, row.executed_on, origin=row.id.system)
    assert [text for host in federation.members.values() for text in leftovers(host)] == []
