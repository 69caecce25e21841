"""What tasks lacked, in virtual time: each task is in the sum of the top once, also where systems have two parents."""

import pytest

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.model.demand import OTHER_KEY, Demand, DemandKey, total_of
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.vector_queries import DemandReport
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.simulation.family import family, let_pass
from tests.unit.core.rig import GIB, tdv

TREE = {"top": [], "left": ["top"], "right": ["top"], "low": ["left"]}
DIAMOND = {"top": [], "left": ["top"], "right": ["top"], "low": ["left", "right"]}
TOO_LARGE = DemandKey("mem", amount=64 * GIB)
TOO_WIDE = DemandKey("cpus", amount=16)
FREE = DemandKey("cpus", is_busy=True, amount=1)


def submit(made: SimulatedFederation, system: str, *, members: int, waits: bool = True, **stated: int) -> None:
    """Submit an array at a system, and let five seconds pass."""
    made.post(
        SystemId(system),
        Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey(f"{system}{made.now}{stated}"),
            tdv=tdv(origin=system, **stated),
            requirement="",
            command=Command(argv=("true",)),
            members=members,
            waits=waits,
        ),
    )
    let_pass(made, 5 * SECOND)


def report(made: SimulatedFederation, system: str) -> DemandReport:
    return queries.demand_report(made.members[SystemId(system)].module.state, made.now)


def waiting(demand: Demand) -> dict[DemandKey, tuple[int, int]]:
    return {each.key: (each.size.tasks, each.size.processors) for each in demand if each.size.tasks}


@pytest.mark.parametrize("parents", [TREE, DIAMOND])
def test_the_top_has_the_sum_of_all_systems_once(parents: dict[str, list[str]]) -> None:
    made = family(parents, machines=["left", "right"])
    submit(made, "low", members=3, cpus=1, mem=60 * GIB)
    submit(made, "right", members=2, cpus=1, mem=40 * GIB)
    submit(made, "right", members=4, cpus=12)
    submit(made, "top", members=1, cpus=16)
    let_pass(made, 30 * SECOND)
    assert waiting(report(made, "low").total) == {TOO_LARGE: (3, 3)}
    assert waiting(report(made, "left").total) == {TOO_LARGE: (3, 3)}
    assert waiting(report(made, "right").total) == {TOO_LARGE: (2, 2), TOO_WIDE: (4, 48)}
    top = report(made, "top")
    assert waiting(top.total) == {TOO_LARGE: (5, 5), TOO_WIDE: (5, 64)}
    assert waiting(top.own) == {TOO_WIDE: (1, 16)}
    assert {system: waiting(demand) for system, demand in top.children.items()} == {
        "left": {TOO_LARGE: (3, 3)},
        "right": {TOO_LARGE: (2, 2), TOO_WIDE: (4, 48)},
    }


def test_no_task_is_counted_that_has_a_place_and_those_that_wait_for_busy_machines_are() -> None:
    made = family({"top": [], "low": ["top"]}, machines=["low"])
    submit(made, "low", members=500, cpus=1)
    demand = waiting(report(made, "low").own)
    assert list(demand) == [FREE]
    assert 300 < demand[FREE][0] < 500
    let_pass(made, 600 * SECOND)
    assert waiting(report(made, "top").total) == {}
    assert total_of(report(made, "top").total).wanted_s > 1_000


def test_waiting_tasks_want_processors_as_long_as_they_wait_and_denied_ones_are_counted_once() -> None:
    made = family({"top": [], "low": ["top"]}, machines=["low"])
    submit(made, "low", members=10, cpus=4)
    let_pass(made, 60 * SECOND)
    waited = total_of(report(made, "top").total).wanted_s
    assert 30 * 40 <= waited <= 65 * 40
    submit(made, "low", members=5, waits=False, cpus=4)
    let_pass(made, 30 * SECOND)
    total = total_of(report(made, "top").total)
    assert (total.tasks, total.denied) == (10, 5)
    assert total.wanted_s > waited


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ("all;", {DemandKey("cpus", amount=8): (3, 24), TOO_LARGE: (7, 7)}),
        ("all except $total_mem;", {DemandKey("cpus", amount=8): (3, 24), OTHER_KEY: (7, 7)}),
        ("hide counts below 5;", {OTHER_KEY: (10, 31)}),
        ("hide counts below 11;", {}),
        ("hide demand;", {}),
    ],
)
def test_a_parent_learns_what_the_policy_reveals(rules: str, shown: dict[DemandKey, tuple[int, int]]) -> None:
    policy = parse_policy(f"accept from any {{ }} reveal to parent {{ {rules} }}", file="parent.policy")
    made = family({"top": [], "left": ["top"]}, machines=["left"], policy=policy)
    submit(made, "left", members=3, cpus=8)
    submit(made, "left", members=7, cpus=1, mem=60 * GIB)
    let_pass(made, 30 * SECOND)
    assert total_of(report(made, "left").own).tasks == 10
    assert waiting(report(made, "top").total) == shown
    assert waiting(report(made, "left").given) == shown
