"""Departments behind borders, in virtual time: they run each other's tasks, and nothing from inside is seen outside."""

from collections import Counter

import pytest

from messiahs.config.topology.reading import read_topology
from messiahs.core import module
from messiahs.core.interface.messages import TaskState
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.relay import byte_route
from messiahs.sim.checks.invariants import Violation
from messiahs.sim.load.owners import Owners
from messiahs.sim.load.scenario import Workload, simulate
from tests.simulation.border_world import GATES, IN_A_ROW, MEMBERS, MOVING, SIDE_BY_SIDE, TWO_DEPARTMENTS, World


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
