"""The policy that weighs moving a task against waiting for it, in a federation of busy machines near and idle ones far.

Nobody tells a module how fast its links are: it takes the first large input to the far machines, and learns.
"""

from pathlib import Path
from typing import Final

from messiahs.config.topology.reading import load_topology
from messiahs.config.workflow.reading import read_workflow
from messiahs.sim.load.scenario import Outcome, Workload, simulate
from messiahs.sim.load.workflows import tasks_in

SCENARIO: Final = Path(__file__).parents[2] / "topologies" / "near-and-far.yaml"
GIB: Final = 1 << 30


def outcome(tasks: str, folder: Path) -> Outcome:
    for name in "abc":
        with (folder / name).open("wb") as file:
            file.truncate(GIB)
    workflow = read_workflow(f"defaults: {{time: 30min}}\ntasks:\n{tasks}", str(folder / "tasks.yaml"))
    return simulate(load_topology(SCENARIO), Workload(tasks=tasks_in(workflow), workflow=workflow), seed=1)


def test_small_tasks_go_to_the_idle_machines_far_away(tmp_path: Path) -> None:
    found = outcome("  small: {command: x, array: 1-6}", tmp_path)
    assert (found.finished, dict(found.placements)) == (6, {"far": 6})


def test_large_ones_stay_near_once_one_has_shown_what_the_way_costs(tmp_path: Path) -> None:
    found = outcome(
        """
  first: {command: x, input: a}
  second: {command: x, input: b, after-any: first}
  third: {command: x, input: c, after-any: second}
  small: {command: x, array: 1-6, after-any: third}""",
        tmp_path,
    )
    assert (found.finished, dict(found.placements)) == (9, {"far": 7, "near": 2})
    # The first one was on its way for 1 GiB at 1 MB a second.
    assert 1_073 < found.makespan_ns / 1e9 < 1_073 + 200


def test_tasks_that_exchange_much_stay_near_too(tmp_path: Path) -> None:
    found = outcome(
        """
  first: {command: x, input: a}
  talks: {command: x, array: 1-6, set: {comm_load: 2000000000}, after-any: first}""",
        tmp_path,
    )
    assert (found.finished, dict(found.placements)) == (7, {"far": 1, "near": 6})


def test_an_order_that_weighs_nothing_asks_both(tmp_path: Path) -> None:
    text = SCENARIO.read_text().replace("defaults: {policy: ../policies/wide-area.policy}\n", "")
    (tmp_path / "plain.yaml").write_text(text)
    found = simulate(load_topology(tmp_path / "plain.yaml"), Workload(tasks=30), seed=1)
    assert {machine for machine, _ in found.placements} == {"near", "far"}
