"""The simulation of a topology: its systems, a workload, and the outcome."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from messiahs.config.policies import read_policy
from messiahs.config.settings import MachineSettings
from messiahs.config.topology.neighbors import Neighborhoods
from messiahs.config.topology.topology import System, Topology
from messiahs.config.workflow.reading import Workflow
from messiahs.core.interface.events import AnswerTo, Submitted, WorkflowSubmitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import HOUR, SECOND, Instant
from messiahs.core.model.task_limits import Maxima
from messiahs.errors import MessiahsError
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.garbage import rare_collections
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.load.workflows import workflow_at
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.links import Links

_LONGEST_RUN_NS = 10_000 * HOUR
_GIB = 1 << 30
_TYPICAL_MACHINE: dict[str, Value] = {
    "nproc": 4,
    "slots": 4,
    "speed": 1000,
    "total_mem": 16 * _GIB,
    "avail_mem": 16 * _GIB,
    "total_disk": 500 * _GIB,
    "avail_disk": 250 * _GIB,
    "load": 0,
    "arch": "x86_64",
    "os": "Linux",
}
"""Attributes of a machine that its host would measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`tasks` tasks, or those of a workflow, that are submitted together at one system; run times are exponential."""

    tasks: int
    workflow: Workflow | None = None
    at: str = ""
    """The system of the submit; empty: the first system of the topology."""
    mean_run_ns: int = 1 * SECOND
    requirement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a simulation. `placements` counts tasks by the machine that finished them."""

    tasks: int
    finished: int
    makespan_ns: int
    placements: tuple[tuple[str, int], ...]
    messages: int
    events: int
    digest: str

    @property
    def messages_per_task(self) -> float:
        """Messages of all channels, divided by the tasks."""
        return self.messages / self.tasks if self.tasks else 0.0


def simulate(
    topology: Topology, workload: Workload, *, seed: int, on_progress: Callable[[int], None] = lambda _ended: None
) -> Outcome:
    """Run a workload until every task has ended; raise `MessiahsError` if the submit is refused.

    `on_progress` is called repeatedly with the number of ended tasks.
    """
    neighborhoods = Neighborhoods(topology)
    systems = {system.name: _simulated(topology, system, neighborhoods) for system in topology.systems}
    links = Links(
        topology.simulated_links,
        {name: [each.system for each in system.neighbors] for name, system in systems.items()},
    )
    federation = SimulatedFederation(
        systems,
        seed=seed,
        run_times=RunTimes(seed=seed, mean_ns=workload.mean_run_ns),
        conditions=Conditions(links=links),
    )
    origin = topology.system(workload.at).name if workload.at else topology.systems[0].name
    submitted: Submitted | WorkflowSubmitted = _submitted(origin, workload)
    if workload.workflow is not None:
        submitted = workflow_at(workload.workflow, origin, AnswerTo(1))
    # Vectors are exchanged first, as they would have been before the first user comes.
    settled_at = Instant(5 * topology.update_period_ns)
    with rare_collections():
        federation.run(lambda: False, until=settled_at)
    started_at = settled_at
    federation.later(settled_at - federation.now, lambda: federation.post(origin, submitted))

    def is_done() -> bool:
        on_progress(len(federation.ended))
        return len(federation.ended) >= workload.tasks or any(answer.problem for answer in federation.answers)

    with rare_collections():
        federation.run(is_done, until=Instant(settled_at + _LONGEST_RUN_NS))
    for answer in federation.answers:
        if answer.problem:
            raise MessiahsError(f"the tasks were refused: {answer.problem}")
    rows = federation.ended.values()
    placements = Counter(row.executed_on for row in rows if row.result is not None)
    last = max((row.ended_at for row in rows if row.ended_at is not None), default=started_at)
    return Outcome(
        tasks=workload.tasks,
        finished=sum(row.result is not None and row.result.exit_code == 0 for row in rows),
        makespan_ns=last - started_at,
        placements=tuple(sorted(placements.items())),
        messages=federation.messages,
        events=federation.events,
        digest=federation.digest,
    )


def describe(machine: MachineSettings) -> SDV:
    """Return the description of a machine in the simulation."""
    return SDV(sorted_pairs({**_TYPICAL_MACHINE, **machine.attributes}))


def _simulated(topology: Topology, system: System, neighborhoods: Neighborhoods) -> SimulatedSystem:
    return SimulatedSystem(
        name=system.name,
        neighbors=neighborhoods.of(system.name),
        machine=describe(system.machine) if system.machine is not None else None,
        policy=_policy(topology, system),
        reach=system.reach,
        counted=system.machine.counted if system.machine is not None else (),
        maxima=system.machine.maxima if system.machine is not None else Maxima(),
    )


def _policy(topology: Topology, system: System) -> Policy:
    timeouts = Timeouts(update_period_ns=topology.update_period_ns)
    if system.policy_file is None:
        return OpenPolicy(timeouts=timeouts)
    return read_policy(system.policy_file, timeouts=timeouts)


def _submitted(origin: SystemId, workload: Workload) -> Submitted:
    tdv: dict[str, Value] = {"cpus": 1, "origin": origin, "user": "simulated"}
    return Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey("workload"),
        tdv=TDV(sorted_pairs(tdv)),
        requirement=workload.requirement,
        command=Command(argv=("simulated",)),
        members=workload.tasks,
    )
