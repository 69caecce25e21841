"""`messiahs demand`: a border shows what tasks below it lack, and its parent sees that if the policy says so."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

TOPOLOGY = """
version: 1
federation: demand
defaults: {{update_period: 200ms}}
systems:
  world: {{}}
  gate: {{parent: world, reach: proxy}}
  left: {{parent: gate, machine: {machine}}}
  right: {{parent: gate, machine: {machine}}}
"""
SHARING = """policy "sharing" version 1;
accept from any { limit 100 tasks; }
reveal to parent { all; demand; }
"""
MEMORY = {"capacity": "mem", "busy": False, "amount": 1 << 40}
CPUS = {"capacity": "cpus", "busy": False, "amount": 64}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a border with two machines behind it, and tasks there that need what neither of them has."""
    state = tmp_path_factory.mktemp("demand")
    topology = state / "demand.yaml"
    topology.write_text(TOPOLOGY.format(machine=fixed_machine(slots=2)))
    (state / "sharing.policy").write_text(SHARING)
    made = Federation(topology=topology, name="demand", state=state, module="gate")
    with brought_up(made):
        eventually(lambda: made.vectors("world")["up"]["machines"] == 2, "both machines at the top")
        made.submit("--module", "left", "--array", "1-3", "--mem", "1TiB", "--", "true")
        made.submit("--module", "right", "--array", "1-2", "--mem", "1TiB", "--", "true")
        made.submit("--module", "right", "--cpus", "50", "--", "true")
        eventually(lambda: lacks(demand(made, "gate")["total"]) == [(CPUS, 1, 50), (MEMORY, 5, 5)], "the sum")
        yield made


def demand(site: Federation, module: str) -> dict[str, Any]:
    return site.document("demand", "--module", module)


def lacks(part: dict[str, Any]) -> list[tuple[dict[str, Any], int, int]]:
    """Return the classes of waiting tasks: what they lack, their number, and their processors."""
    names = ("capacity", "busy", "amount")
    return [({name: each[name] for name in names}, each["tasks"], each["processors"]) for each in part["classes"]]


def test_the_border_has_the_sum_of_both_systems_and_its_parent_nothing(site: Federation) -> None:
    document = demand(site, "gate")
    assert {system: lacks(part) for system, part in document["children"].items()} == {
        "left": [(MEMORY, 3, 3)],
        "right": [(CPUS, 1, 50), (MEMORY, 2, 2)],
    }
    assert (document["parent"], document["own"]["classes"], document["given"]["classes"]) == ("world", [], [])
    assert demand(site, "left")["parent"] == "gate"
    eventually(lambda: demand(site, "gate")["total"]["wanted_s"] > 50, "the time for which processors are wanted")
    # The border has sent several vectors meanwhile.
    world = demand(site, "world")
    assert (world["total"]["classes"], world["children"]["gate"]["classes"]) == ([], [])


def test_the_preview_shows_what_the_parent_would_read_of_it_under_another_policy(site: Federation) -> None:
    policy = site.state / "sharing.policy"
    shown = site.run("module", "preview", "world", "--module", "gate", "--policy", str(policy)).stdout.splitlines()
    unmet = [line for line in shown if "unmet demand" in line]
    assert unmet == [
        "+   unmet demand: up to 64 cpus: no machine has that (1 task, 50 processors)",
        "+   unmet demand: up to 1 TiB of memory: no machine has that (5 tasks, 5 processors)",
    ]


def test_people_read_what_is_missing_and_where(site: Federation) -> None:
    done = site.run("demand", "--module", "gate")
    assert done.returncode == 0, done.stderr
    first, header, cpus, memory, *parts = done.stdout.splitlines()
    assert first.startswith("unmet demand of gate and of 2 below it (left, right), counted since ")
    assert header.split() == ["LACKS", "ARCH", "OS", "TASKS", "PROCESSORS", "DAY", "DENIED"]
    assert cpus.startswith("up to 64 cpus: no machine has that ")
    assert memory.startswith("up to 1 TiB of memory: no machine has that ")
    assert [line.split()[:4] for line in parts] == [
        ["in", "all", "6", "55"],
        ["through", "left", "3", "3"],
        ["through", "right", "3", "52"],
    ]
    assert site.run("demand", "--module", "world").stdout.splitlines()[1:] == ["no task lacks any capacity"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks as another account")
def test_only_the_administrator_reads_what_tasks_of_others_lack(site: Federation) -> None:
    site.folder("gate").parent.chmod(0o711)
    codes = [site.status_code_for(uid, "GET", path="/v1/demand", module="gate") for uid in (0, 61_013)]
    assert codes == [200, 403]
    asked = {"path": "/v1/preview", "module": "left", "body": json.dumps({"neighbor": "gate"})}
    previews = [json.loads(site.answer_for(uid, "POST", **asked)[1]) for uid in (0, 61_013)]
    ((told,), (hidden,)) = [each["now"]["vectors"] for each in previews]
    assert (lacks(told["demand"]), hidden["demand"]) == ([(MEMORY, 3, 3)], None)


def test_a_policy_sends_the_demand_across_the_border_and_takes_it_back(site: Federation) -> None:
    total = [(CPUS, 1, 50), (MEMORY, 5, 5)]
    assert site.run("policy", "load", str(site.state / "sharing.policy"), "--module", "gate").returncode == 0
    eventually(lambda: lacks(demand(site, "world")["total"]) == total, "the demand beyond the border")
    assert lacks(demand(site, "gate")["given"]) == total
    assert set(demand(site, "world")["children"]) == {"gate"}
    assert site.run("policy", "load", "--module", "gate").returncode == 0
    eventually(lambda: demand(site, "world")["total"]["classes"] == [], "no demand beyond the border")
