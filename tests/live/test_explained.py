"""`messiahs explain` over three real modules: the order of a search, refusals, what would help, before and after."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

FIRST = """
policy "fast machines first" version 1;
accept from any { }
accept from users { }
rank candidates by first where $speed > 600, most $free_slots;
"""
STRICT = """
policy "strict" version 1;
accept from any { require $mem < 2GiB else "only small tasks here"; }
accept from users { }
"""
HESITANT = """
policy "hesitant" version 1;
accept from any { }
accept from users { }
advertise every 1s { set $willingness = 10; }
"""
TOPOLOGY = """
version: 1
federation: three
defaults: {{update_period: 200ms}}
systems:
  home: {{policy: first.policy, machine: {home}}}
  strict: {{parent: home, policy: strict.policy, machine: {strict}}}
  ready: {{parent: home, policy: hesitant.policy, machine: {ready}}}
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a module with a strict child, which has fast machines, and another one."""
    state = tmp_path_factory.mktemp("three")
    (state / "first.policy").write_text(FIRST)
    (state / "strict.policy").write_text(STRICT)
    (state / "hesitant.policy").write_text(HESITANT)
    topology = state / "three.yaml"
    topology.write_text(
        TOPOLOGY.format(
            home=fixed_machine(total_mem="4GiB", avail_mem="4GiB"),
            strict=fixed_machine(slots=4, speed="900", total_mem="32GiB", avail_mem="32GiB"),
            ready=fixed_machine(slots=2, total_mem="16GiB", avail_mem="16GiB"),
        )
    )
    made = Federation(topology=topology, name="three", state=state, module="home")
    with brought_up(made):
        eventually(lambda: made.vectors()["up"]["machines"] == 3)
        yield made


def explained(three: Federation, task: str) -> dict[str, Any]:
    (document,) = three.document("explain", task)["tasks"]
    return dict(document)


def answers(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["system"], each["answer"]) for each in document["search"]["order"]]


def test_a_finished_task_has_who_was_asked_before_also_after_a_restart(three: Federation) -> None:
    task = three.submit("--mem", "8GiB", "--", "true")
    assert three.run("wait", task).returncode == 0
    document = explained(three, task)
    assert answers(document) == [("home", "no_class"), ("strict", "refused_by_policy"), ("ready", "granted")]
    why = [each["why"] for each in document["search"]["order"]]
    assert "first where $speed > 600: surely true; most of $free_slots: 4" in why[1]
    assert "first where $speed > 600: false" in why[2]
    assert document["search"]["order"][1]["reasons"][0]["text"] == "only small tasks here"
    assert document["round"] is None
    printed = three.run("explain", task).stdout
    assert "refused (only small tasks here)" in printed
    assert "granted 1 place" in printed
    three.kill("home", "daemon")
    with three.client() as client:
        (again,) = client.tasks(task, explained=True)["tasks"]
    assert again["search"] == document["search"]
    # The daemon has its links again, as the other tests need them.
    eventually(lambda: three.vectors()["up"]["machines"] == 3)


def test_a_waiting_task_has_what_it_waits_for_and_what_would_have_to_change(three: Federation) -> None:
    task = three.submit("--cpus", "9", "--", "true")
    eventually(lambda: explained(three, task)["search"])
    document = explained(three, task)
    assert [each["text"] for each in document["machines"]["lost"]] == ["$slots >= $cpus"]
    assert {"text": "$cpus were at most 4", "least": 1, "most": 1} in document["machines"]["changes"]
    assert document["round"]["is_searching"] or document["round"]["next_at"]
    assert {each["code"] for each in document["search"]["left_out"]} == {"no_class"}
    printed = three.run("explain", task).stdout
    assert "no machine is this large: the largest has 4 slots, 32 GiB" in printed
    assert "$cpus were at most 4" in printed
    assert three.run("cancel", task).returncode == 0


def test_a_denied_task_keeps_who_was_asked(three: Federation) -> None:
    task = three.submit("--no-wait", "--cpus", "4", "--mem", "3GiB", "--", "true")
    assert three.run("wait", task).returncode != 0
    document = explained(three, task)
    assert document["state"] == "denied"
    assert answers(document) == [("home", "no_class"), ("strict", "refused_by_policy")]
    assert "the policy of strict let it in" in three.run("explain", task).stdout


def test_the_states_of_many_tasks_have_no_searches(three: Federation) -> None:
    assert "search" not in three.status(three.submit("--", "true"))


def test_a_running_task_has_who_was_asked_and_a_revoked_one_who_was_asked_since(three: Federation) -> None:
    task = three.submit("--mem", "8GiB", "--", "sleep", "1000")
    eventually(lambda: three.status(task)["substate"] == "running")
    document = explained(three, task)
    assert answers(document) == [("home", "no_class"), ("strict", "refused_by_policy"), ("ready", "granted")]
    assert "granted 1 place" in three.run("explain", task).stdout
    assert three.run("module", "revoke", task, "--module", "ready", "--kill").returncode == 0
    eventually(lambda: answers(explained(three, task))[-1] == ("ready", "no_capacity"))
    assert answers(explained(three, task))[:-1] == answers(document)[:-1]
    assert "a task like this was revoked here, and none gets a place here until" in three.run("explain", task).stdout
    assert three.run("cancel", task).returncode == 0


def test_the_default_order_weighs_free_slots_by_the_willingness_that_machines_state(three: Federation) -> None:
    # Each of the two free slots weighs one more than the willingness.
    plan = json.loads(three.run("plan", "--module", "strict", "--require", "$slots = 2", "--json", "--", "true").stdout)
    (ready,) = (each["why"] for each in plan["search"]["order"] if each["system"] == "ready")
    assert ready.endswith("that surely have room, with the weight 22 (free slots by willingness)")
