"""`messiahs plan` over real modules: a plan says what a submit then does, and leaves nothing behind."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

import messiahs
from messiahs.client.plans import TaskPlan
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

HOME = """
policy "fast machines first" version 1;
attribute $need int 0..99 optional;
accept from any { }
accept from users { require $mem default 0 < 20GiB else "too large for this desk"; require $need default 0 < 9; }
rank candidates by first where $speed > 600, most $free_slots;
"""
STRICT = """
policy "strict" version 1;
accept from any { require $mem < 2GiB else "only small tasks here"; }
accept from users { }
"""
SHY = """
policy "shy" version 1;
accept from any { }
reveal to any nothing;
"""
TOPOLOGY = """
version: 1
federation: plans
defaults: {{update_period: 200ms}}
systems:
  home: {{policy: home.policy, machine: {home}}}
  strict: {{parent: home, policy: strict.policy, machine: {strict}}}
  ready: {{parent: home, machine: {ready}}}
  shy: {{parent: home, policy: shy.policy, machine: {shy}}}
"""


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a module with three children: one is strict and has fast machines, one is open, and one hides."""
    state = tmp_path_factory.mktemp("plans")
    for name, text in (("home", HOME), ("strict", STRICT), ("shy", SHY)):
        (state / f"{name}.policy").write_text(text)
    topology = state / "plans.yaml"
    topology.write_text(
        TOPOLOGY.format(
            home=fixed_machine(total_mem="4GiB", avail_mem="4GiB"),
            strict=fixed_machine(slots=4, speed="900", total_mem="32GiB", avail_mem="32GiB"),
            ready=fixed_machine(slots=2, total_mem="16GiB", avail_mem="16GiB"),
            shy=fixed_machine(slots=64, total_mem="64GiB", avail_mem="64GiB"),
        )
    )
    made = Federation(topology=topology, name="plans", state=state, module="home")
    with brought_up(made):
        eventually(lambda: made.vectors()["up"]["machines"] == 3)
        yield made


def planned_by(plans: Federation, *words: str) -> dict[str, Any]:
    return dict(json.loads(plans.run("plan", "--json", *words).stdout))


def order(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["system"], each["answer"]) for each in document["search"]["order"]]


def whys(document: dict[str, Any]) -> list[str]:
    """Return why each neighbor has its place, without the ages of their vectors."""
    return [each["why"].partition("; ")[2] for each in document["search"]["order"]]


def requests_at(plans: Federation, name: str) -> int:
    with plans.client(name) as client:
        return int(client.explanation()["requests"])


def test_a_submit_asks_whom_the_plan_has_named_and_the_plan_has_asked_nobody(plans: Federation) -> None:
    words, names = ("--mem", "8GiB", "--", "true"), ("home", "strict", "ready", "shy")
    requests, tasks = [requests_at(plans, name) for name in names], plans.document("status")["tasks"]
    done = plans.run("plan", *words)
    assert done.returncode == 0
    planned = planned_by(plans, *words)
    assert order(planned) == [("home", "no_class"), ("strict", "not_asked"), ("ready", "not_asked")]
    assert (planned["outcome"], planned["is_sure"], planned["likely"]) == ("start", False, ["strict", "ready"])
    assert [requests_at(plans, name) for name in names] == requests
    assert plans.document("status")["tasks"] == tasks
    assert done.stdout.splitlines()[0] == (
        "would start now, if a neighbor that shows room agrees: strict would be asked first"
    )
    assert "when asked, they decide by their own policy" in done.stdout
    task = plans.submit(*words)
    assert plans.run("wait", task).returncode == 0
    (real,) = plans.document("explain", task)["tasks"]
    assert [system for system, _ in order(real)] == [system for system, _ in order(planned)]
    assert whys(real) == whys(planned)
    assert real["search"]["order"][0] == planned["search"]["order"][0]
    assert real["search"]["left_out"] == planned["search"]["left_out"]


def test_a_task_that_fits_nowhere_would_wait_and_the_plan_says_what_would_have_to_change(plans: Federation) -> None:
    done = plans.run("plan", "--cpus", "9", "--", "true")
    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == "would wait for a free place"
    assert "no machine is this large: the largest has 4 slots, 32 GiB" in done.stdout
    assert "not strict: it has reported no machine, or none that is large enough" in done.stdout
    assert "$cpus were at most 4" in done.stdout
    assert plans.run("plan", "--no-wait", "--cpus", "9", "--", "true").returncode == 4


def test_a_refusal_of_the_own_policy_has_its_rule_and_the_values_found(plans: Federation) -> None:
    printed = plans.run("plan", "--mem", "24GiB", "--", "true").stdout
    (own,) = (line for line in printed.splitlines() if "1. home" in line)
    assert "refused" in own
    assert "too large for this desk" in own
    assert "$mem" in own.partition("because")[2]


def test_what_a_module_does_not_reveal_is_in_no_plan(plans: Federation) -> None:
    done = plans.run("plan", "--mem", "48GiB", "--", "true")
    assert done.returncode == 3
    assert "64" not in done.stdout
    assert "shy" not in [system for system, _ in order(planned_by(plans, "--", "true"))]


def test_tasks_that_would_wait_for_others_and_what_submit_would_refuse(plans: Federation) -> None:
    task = plans.submit("--cpus", "9", "--", "true")
    done = plans.run("plan", "--after-ok", task, "--", "true")
    assert (done.returncode, done.stdout) == (3, f"would wait for {task} to end with exit code 0\n")
    ahead = plans.run("plan", "--cpus", "9", "--", "true").stdout
    assert ahead.startswith("would wait for a free place, behind 1 task of the same description\n")
    assert "the tasks ahead were asked for at" in ahead
    assert plans.run("cancel", task).returncode == 0
    in_vain = plans.run("plan", "--after-ok", task, "--", "true")
    assert in_vain.returncode == 4
    assert f"{task} did not end with exit code 0 (cancelled)" in in_vain.stdout
    for words in (("--require", "$os > 3"), ("--after", "home.999"), ("--set", "user=eve")):
        refused, submitted = (plans.run(command, *words, "--", "true") for command in ("plan", "submit"))
        assert (refused.returncode, refused.stdout) == (submitted.returncode, "")
        assert refused.returncode in (1, 2)
        assert refused.stderr == submitted.stderr


def test_each_description_of_an_array_is_planned_up_to_sixteen(plans: Federation) -> None:
    words = ("--set", "need={}", "--cpus", "3", "--", "true")
    done = plans.run("plan", "--array", "7,9,8", *words)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("with ")] == ["with need=7 or need=8:", "with need=9:"]
    assert "refused (require $need default 0 < 9" in done.stdout.partition("with need=9:")[2]
    many = plans.run("plan", "--array", "1-20", *words)
    assert "not planned: 4 descriptions more" in many.stdout
    assert len(planned_by(plans, "--array", "1-20", *words)["others"]) == 15


def test_scripts_plan_with_the_same_words(plans: Federation) -> None:
    async def main() -> TaskPlan:
        async with messiahs.AsyncClient("home", plans.state) as client:
            return await client.plan(["true"], cpus=3)

    planned = asyncio.run(main())
    assert planned.keys() == TaskPlan.__annotations__.keys()
    assert planned["likely"] == ["strict"]
    with messiahs.connect("home", plans.state) as client:
        assert client.plan(["true"], cpus=3)["likely"] == ["strict"]
