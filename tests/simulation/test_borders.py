"""Departments behind borders, in virtual time: they run each other's tasks, and nothing from inside is seen outside."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from messiahs.config.topology.neighbors import neighbors_of
from messiahs.config.topology.reading import read_topology
from messiahs.config.topology.topology import System, Topology
from messiahs.core import module
from messiahs.core.interface.actions import Action, SendTasks
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import AttemptId, ClientKey, SystemId
from messiahs.core.model.instants import HOUR, SECOND, after
from messiahs.core.relay import byte_route
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.checks.invariants import Checks, Violation
from messiahs.sim.checks.settled import leftovers
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedSystem
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.load.borders import secrecy_of
from messiahs.sim.load.owners import Owners
from messiahs.sim.load.scenario import Workload, simulate
from tests.unit.core.rig import sdv, tdv

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
    streams: set[tuple[SystemId, SystemId]] = field(default_factory=set)

    def __post_init__(self) -> None:
        topology = Topology(federation="f", systems=tuple(map(self._system, self.parents)))
        systems = {each.name: self._simulated(topology, each) for each in topology.systems}
        machines = {name: each.machine.description() for name, each in systems.items() if each.machine is not None}
        clocks = {name: each.clock for name, each in systems.items()}
        self.checks = Listening(machines, clocks, secrecy=secrecy_of(topology))
        self.checks.inward = {}
        run_times = RunTimes(seed=1, mean_ns=self.mean_run_ns, writing=100)
        self.federation = SimulatedFederation(systems, seed=1, run_times=run_times, watcher=self.checks)
        self.checks.agenda = self.federation.agenda
        self.federation.observe = self._observe
        self.wait(10)

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.federation.run(lambda: False, until=after(self.federation.now, seconds * SECOND))

    def submit(self, origin: str, requirement: str, *, members: int = MEMBERS) -> None:
        """Submit tasks that only some machines can run."""
        event = Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey(f"k {origin} {requirement}"),
            tdv=tdv(origin=origin, user="account-ann"),
            requirement=requirement,
            command=Command(argv=("true",)),
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
        if isinstance(action, SendTasks):
            self.streams.add((system, action.to))


def _machine(name: str) -> SDV | None:
    return sdv(slots=SLOTS[name]) if name in SLOTS else None


def test_two_departments_run_each_others_tasks_and_each_sees_only_the_others_gate() -> None:
    world = World(TWO_DEPARTMENTS)
    world.submit("in-a1", "$slots = 3")
    world.submit("in-b1", "$slots = 2")
    rows = world.finish(2 * MEMBERS)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    assert Counter((row.id.system, row.executed_on) for row in rows) == {
        ("in-a1", "gate-b"): MEMBERS,
        ("in-b1", "gate-a"): MEMBERS,
    }
    assert {world.ran_on(row) for row in rows} == {"in-a1", "in-a2", "in-b1", "in-b2"}
    for row in rows:
        assert row.result is not None
        assert row.result.outputs
    crossings = {frozenset(pair) for pair in world.streams if not any(name.startswith("in-") for name in pair)}
    assert crossings <= {frozenset(("gate-a", "gate-b")), frozenset(("gate-a", "top")), frozenset(("gate-b", "top"))}


@pytest.mark.parametrize(
    ("origin", "requirement", "shown", "machines"),
    [
        ("out", "$slots = 3", "gate-a", {"in-b1", "in-b2"}),
        ("in-b1", "$slots = 5", "out", {"out"}),
        ("in-a1", "$slots = 3", "in-gate", {"in-b1", "in-b2"}),
        ("in-b1", "$slots = 2", "in-a1", {"in-a1"}),
    ],
)
def test_a_border_below_a_border_hides_its_site_from_both(
    origin: str, requirement: str, shown: str, machines: set[str]
) -> None:
    world = World(IN_A_ROW)
    world.submit(origin, requirement)
    rows = world.finish(MEMBERS)
    assert {(row.state, row.executed_on) for row in rows} == {(TaskState.FINISHED, shown)}
    assert {world.ran_on(row) for row in rows} <= machines


@pytest.mark.parametrize("down", ["gate-a", "gate-b"])
def test_with_two_borders_side_by_side_tasks_go_both_ways_by_the_other_while_one_is_down(down: str) -> None:
    world = World(SIDE_BY_SIDE)
    world.federation.members[SystemId(down)].crash()
    world.submit("in-a1", "$slots = 5")
    world.submit("out", "$slots = 2")
    world.wait(300)
    assert Counter(row.state for row in world.federation.ended.values()) == {TaskState.FINISHED: 2 * MEMBERS}
    assert {row.executed_on for row in world.federation.ended.values()} == {"out", *GATES[:2]} - {down}
    assert {world.ran_on(row) for row in world.federation.ended.values()} == {"out", "in-a1"}
    world.federation.members[SystemId(down)].start()
    world.finish(2 * MEMBERS)


def test_a_machine_behind_two_borders_is_counted_once_by_the_first_that_is_up() -> None:
    world = World(SIDE_BY_SIDE)
    gate = world.federation.members[SystemId("gate-a")]
    assert world.seen_from_top() == {"gate-a": 1, "gate-b": 1, "out": 1}
    gate.crash()
    assert world.ns_above(3, seconds=30) == 0
    assert world.seen_from_top() == {"gate-b": 2, "out": 1}
    gate.start()
    # The news takes two ways to the top.
    assert world.ns_above(3, seconds=30) < SECOND // 2
    assert world.seen_from_top() == {"gate-a": 1, "gate-b": 1, "out": 1}


def test_the_outside_is_hidden_from_children_to_whom_the_policy_names_the_gate() -> None:
    hiding = 'reveal to children { all; as "campus"; }'
    world = World(TWO_DEPARTMENTS, policies={"gate-a": hiding, "gate-b": hiding})
    world.submit("in-a1", "$slots = 3")
    world.submit("in-b1", "$slots = 2")
    rows = world.finish(2 * MEMBERS)
    assert {(row.state, row.attempt) for row in rows} == {(TaskState.FINISHED, 1)}
    assert {(row.id.system, row.executed_on) for row in rows} == {("in-a1", "gate-a"), ("in-b1", "gate-b")}
    account = b"account-ann"
    hidden = {"gate-a": (b"gate-b", b"in-b", b"top", account), "gate-b": (b"gate-a", b"in-a", b"top", account)}
    for gate, names in hidden.items():
        assert [name for name in names if name in world.checks.inward[SystemId(gate)]] == []


def test_a_task_moves_within_the_site_where_it_runs_although_another_place_ranks_first() -> None:
    rank = "rank candidates by most $free_slots;"
    policies = {"in-b1": MOVING, "in-b2": MOVING, "gate-a": rank, "top": rank}
    world = World({**TWO_DEPARTMENTS, "out": ("top",)}, policies=policies, mean_run_ns=600 * SECOND)
    out = world.federation.members[SystemId("out")]
    out.crash()
    world.submit("in-a1", "$slots >= 3", members=1)
    world.wait(5)
    ((first, began),) = world.checks.begun.items()
    assert began in ("in-b1", "in-b2")
    out.start()
    world.wait(10)
    Owners(world.federation).come(began)
    world.wait(10)
    second = AttemptId(first.task, 2)
    assert world.checks.begun[second] in {"in-b1", "in-b2"} - {began}


def test_a_task_leaves_the_site_where_it_runs_if_there_is_no_other_place() -> None:
    policies = {"in-b1": MOVING}
    parents = {name: above for name, above in TWO_DEPARTMENTS.items() if name != "in-b2"}
    world = World({**parents, "out": ("top",)}, policies=policies, mean_run_ns=600 * SECOND)
    out = world.federation.members[SystemId("out")]
    out.crash()
    world.submit("in-a1", "$slots >= 3", members=1)
    world.wait(5)
    ((first, began),) = world.checks.begun.items()
    out.start()
    world.wait(10)
    Owners(world.federation).come(began)
    world.wait(10)
    assert world.checks.begun[AttemptId(first.task, 2)] == "out"


@pytest.mark.parametrize("gate", ["gate-a", "gate-b"])
@pytest.mark.parametrize("is_wiped", [False, True])
def test_a_gate_that_is_killed_or_loses_its_state_doubles_no_attempt_and_loses_no_task(
    gate: str, *, is_wiped: bool
) -> None:
    world = World(TWO_DEPARTMENTS, mean_run_ns=5 * SECOND)
    world.checks.is_forgetful = is_wiped
    world.submit("in-a1", "$slots = 3")
    world.submit("in-b1", "$slots = 2")
    host = world.federation.members[SystemId(gate)]
    for _ in range(3):
        world.wait(4)
        host.crash()
        if is_wiped:
            host.wipe()
        world.wait(2)
        host.start()
    rows = world.finish(2 * MEMBERS)
    assert {row.state for row in rows} == {TaskState.FINISHED}
    if not is_wiped:
        assert {row.attempt for row in rows} == {1}


@pytest.mark.parametrize("gate", ["gate-a", "gate-b"])
def test_a_gate_that_is_restored_from_an_older_copy_doubles_no_attempt_and_loses_no_task(gate: str) -> None:
    world = World(TWO_DEPARTMENTS, mean_run_ns=5 * SECOND)
    host = world.federation.members[SystemId(gate)]
    world.submit("in-a1", "$slots = 3")
    world.submit("in-b1", "$slots = 2")
    world.wait(6)
    host.crash()
    host.restore_database()
    host.start()
    rows = world.finish(2 * MEMBERS)
    assert {row.state for row in rows} == {TaskState.FINISHED}


def test_a_border_that_forgets_to_hide_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "outward", lambda _, actions: actions)
    world = World(TWO_DEPARTMENTS)
    world.submit("in-a1", "$slots = 3")
    with pytest.raises(Violation, match=r"behind gate-. is in a message from there to"):
        world.finish(MEMBERS)


def test_bytes_that_would_go_past_a_border_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_route, "crosses", lambda _, __, ___: False)
    world = World(TWO_DEPARTMENTS)
    world.submit("in-a1", "$slots = 3")
    with pytest.raises(Violation, match=r"past the border|is in a message"):
        world.finish(MEMBERS)


def test_a_topology_file_with_borders_is_a_scenario() -> None:
    machine = "{probe: fixed, slots: 2, avail_mem: 8GiB, speed: 500, load: 0%}"
    text = (
        "version: 1\nfederation: f\nsystems:\n  top: {}\n"
        f"  cs: {{parent: top, reach: proxy}}\n  blays: {{parent: cs, machine: {machine}}}\n"
        f"  ee: {{parent: top, reach: proxy}}\n  volt: {{parent: ee, machine: {machine}}}\n"
    )
    outcome = simulate(read_topology(text, "t"), Workload(tasks=40, at="blays"), seed=1)
    assert outcome.finished == 40
    assert {name for name, _ in outcome.placements} == {"blays", "ee"}
