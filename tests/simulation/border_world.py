"""A simulated federation with borders, whose messages are searched for what the borders hide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from messiahs.config.topology.neighbors import neighbors_of
from messiahs.config.topology.topology import System, Topology
from messiahs.core.interface.actions import Action, SendControl, SendTasks
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import HOUR, SECOND, after
from messiahs.core.model.task_files import InputFile
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.checks.invariants import Checks
from messiahs.sim.checks.settled import leftovers
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedHost
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.load.borders import secrecy_of
from tests.unit.core.rig import sdv, tdv

Kind = TypeVar("Kind")
TIMEOUTS = Timeouts(lease_ns=30 * SECOND, update_period_ns=2 * SECOND)
OPEN = "accept from any { limit 1000 tasks; }"
MOVING = "running { move when $here.keyboard_idle < 5s; }"
SLOTS = {"in-a1": 2, "in-a2": 2, "in-b1": 3, "in-b2": 3, "out": 5}
TWO_DEPARTMENTS = {
    "top": (),
    "gate-a": ("top",), "in-lab": ("gate-a",), "in-a1": ("in-lab",), "in-a2": ("in-lab",),
    "gate-b": ("top",), "in-b1": ("gate-b",), "in-b2": ("gate-b",),
}  # fmt: skip
IN_A_ROW = {
    "top": (), "out": ("top",),
    "gate-a": ("top",), "in-a1": ("gate-a",),
    "in-gate": ("gate-a",), "in-b1": ("in-gate",), "in-b2": ("in-gate",),
}  # fmt: skip
SIDE_BY_SIDE = {
    "top": (), "out": ("top",),
    "gate-a": ("top",), "gate-b": ("top",), "in-hub": ("gate-a", "gate-b"), "in-a1": ("in-hub",), "in-b1": ("gate-b",),
}  # fmt: skip
GATES = ("gate-a", "gate-b", "in-gate")
MEMBERS = 12


class Listening(Checks):
    """Also keeps what gates send to those below them."""

    inward: dict[SystemId, bytes]

    def carried(self, sender: SystemId, to: SystemId, body: bytes, /) -> None:
        """Check a message, and keep it if a gate sent it inward."""
        super().carried(sender, to, body)
        if to in self.secrecy.inside.get(sender, ()):
            self.inward[sender] = self.inward.get(sender, b"") + body


@dataclass
class World:
    """A federation with borders; every message that leaves a site is searched for what the border hides."""

    parents: Mapping[str, tuple[str, ...]]
    policies: Mapping[str, str] = field(default_factory=dict)
    mean_run_ns: int = 2 * SECOND
    failing: int = 0
    """Per cent of all attempts."""
    actions: list[tuple[SystemId, Action]] = field(default_factory=list)
    """Of all modules, in order."""

    def __post_init__(self) -> None:
        topology = Topology(federation="f", systems=tuple(map(self._system, self.parents)))
        systems = {each.name: self._simulated(topology, each) for each in topology.systems}
        machines = {name: each.machine.description() for name, each in systems.items() if each.machine is not None}
        clocks = {name: each.clock for name, each in systems.items()}
        self.checks = Listening(machines, clocks, secrecy=secrecy_of(topology))
        self.checks.inward = {}
        run_times = RunTimes(seed=1, mean_ns=self.mean_run_ns, writing=100, failing=self.failing)
        self.federation = SimulatedFederation(systems, seed=1, run_times=run_times, watcher=self.checks)
        self.checks.agenda = self.federation.agenda
        self.federation.observe = self._observe
        self.wait(10)

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.federation.run(lambda: False, until=after(self.federation.now, seconds * SECOND))

    def submit(
        self, origin: str, requirement: str, *, members: int = MEMBERS, inputs: tuple[InputFile, ...] = ()
    ) -> None:
        """Submit tasks that only some machines can run."""
        event = Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey(f"k {origin} {requirement}"),
            tdv=tdv(origin=origin, user="account-ann"),
            requirement=requirement,
            command=Command(argv=("true",), inputs=inputs),
            members=members,
        )
        self.federation.post(SystemId(origin), event)

    def finish(self, count: int) -> list[TaskRow]:
        """Let tasks end, and return their rows, once nothing is left of them anywhere."""
        until = after(self.federation.now, 1 * HOUR)
        self.federation.run(lambda: len(self.federation.ended) == count, until=until)
        self.wait(60)
        assert [text for host in self.federation.members.values() for text in leftovers(host)] == []
        return list(self.federation.ended.values())

    def ran_on(self, row: TaskRow) -> SystemId:
        """Return the machine on which a task really ran."""
        assert row.result is not None
        return self.checks.begun[row.result.attempt]

    @property
    def streams(self) -> set[tuple[SystemId, SystemId]]:
        """The pairs of systems between which tasks were sent."""
        return {(system, action.to) for system, action in self.actions if isinstance(action, SendTasks)}

    def sent(self, kind: type[Kind]) -> list[tuple[SystemId, SystemId, Kind]]:
        """Return the messages of a kind, each with its sender and receiver."""
        return [
            (system, action.to, action.message)
            for system, action in self.actions
            if isinstance(action, SendControl) and isinstance(action.message, kind)
        ]

    def host(self, name: str) -> SimulatedHost:
        """Return the host of a system."""
        return self.federation.members[SystemId(name)]

    def seen_from_top(self) -> dict[str, int]:
        """Return the machines that `top` knows behind each neighbor."""
        views = self.federation.members[SystemId("top")].module.state.updates.views
        return {str(system): view.message.vector.machines for (system, _), view in views.items()}

    def ns_above(self, machines: int, *, seconds: int) -> int:
        """Let time pass, and return for how long `top` knows more machines than there are."""
        above, last = 0, self.federation.now

        def look() -> bool:
            nonlocal above, last
            if sum(self.seen_from_top().values()) > machines:
                above += self.federation.now - last
            last = self.federation.now
            return False

        self.federation.run(look, until=after(self.federation.now, seconds * SECOND))
        return above

    def _system(self, name: str) -> System:
        above = tuple(map(SystemId, self.parents[name]))
        return System(
            name=SystemId(name),
            parents=above,
            primary_parent=above[0] if above else None,
            reach="proxy" if name in GATES else "open",
        )

    def _simulated(self, topology: Topology, system: System) -> SimulatedSystem:
        return SimulatedSystem(
            name=system.name,
            neighbors=neighbors_of(topology, system.name),
            machine=_machine(system.name),
            policy=self._policy(system.name),
            reach=system.reach,
        )

    def _policy(self, name: str) -> Policy:
        return parse_policy(f'policy "p" version 1; {OPEN} {self.policies.get(name, "")}', file=name, timeouts=TIMEOUTS)

    def _observe(self, system: SystemId, action: Action) -> None:
        self.actions.append((system, action))


def _machine(name: str) -> SDV | None:
    return sdv(slots=SLOTS[name]) if name in SLOTS else None
