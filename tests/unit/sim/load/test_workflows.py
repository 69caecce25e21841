"""Files of tasks in the simulator."""

from pathlib import Path

import pytest

from messiahs.config.topology.reading import read_topology
from messiahs.config.workflow.reading import Workflow, read_workflow
from messiahs.core.interface.events import AnswerTo
from messiahs.core.model.ids import SystemId
from messiahs.errors import WorkflowError
from messiahs.sim.load.scenario import Outcome, Workload, simulate
from messiahs.sim.load.workflows import tasks_in, workflow_at

TOPOLOGY = "{version: 1, federation: one, systems: {top: {machine: {slots: 8}}}}"


def workflow(text: str) -> Workflow:
    return read_workflow(f"tasks: {text}", "tasks.yaml")


def outcome(text: str) -> Outcome:
    read = workflow(text)
    return simulate(read_topology(TOPOLOGY, "one.yaml"), Workload(tasks=tasks_in(read), workflow=read), seed=1)


def test_the_tasks_of_a_file_run_in_their_order() -> None:
    beside = outcome("{a: {command: x}, b: {command: x}, c: {command: x, array: 1-3}}")
    chain = outcome("{c: {command: x, array: 1-3, after-ok: b}, b: {command: x, after-ok: a}, a: {command: x}}")
    assert (beside.finished, chain.finished) == (5, 5)
    assert chain.makespan_ns > beside.makespan_ns


def test_a_task_that_takes_an_output_of_another_one_runs_after_it() -> None:
    beside = outcome("{b: {command: x}, a: {command: x, output: [o, p]}}")
    chain = outcome("{b: {command: x, input: ['@a/o', '@a/p:in/']}, a: {command: x, output: [o, p]}}")
    assert (beside.finished, chain.finished) == (2, 2)
    assert chain.makespan_ns > beside.makespan_ns


def test_options_are_those_of_the_module() -> None:
    read = workflow("{a: {command: [x], mem: 1GiB, gpus: 1, set: {n: 7}, no-wait: true, array: 2-8:3%2, deadline: 5s}}")
    (submitted,) = workflow_at(read, SystemId("top"), AnswerTo(1)).submissions
    assert dict(submitted.tdv.pairs) == {
        "cpus": 1,
        "gpus": 1,
        "mem": 1 << 30,
        "n": 7,
        "origin": "top",
        "user": "simulated",
    }
    assert "gpus" in submitted.requirement
    assert (submitted.members, submitted.items, submitted.at_once) == (3, ("2", "5", "8"), 2)
    assert (submitted.waits, submitted.deadline_ns) == (False, 5_000_000_000)


def test_inputs_are_as_long_as_the_files_and_none_is_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, size_bytes in (("a", 3 << 20), ("folder/b", 1 << 20), ("1.in", 5 << 20), ("2.in", 5)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size_bytes)
    text = "tasks: {x: {command: x, input: [a, folder, 'f*r:same', '{}.in', '{}.none'], array: 1-3}}"
    read = read_workflow(text, str(tmp_path / "tasks.yaml"))
    (submitted,) = workflow_at(read, SystemId("top"), AnswerTo(1)).submissions
    assert [(file.name, file.size_bytes >> 20) for file in submitted.command.inputs] == [("a", 3), ("b", 1), ("b", 1)]
    assert [[file.size_bytes for file in own] for own in submitted.member_inputs] == [[5 << 20], [5], []]
    # 3 + 1 + 5 MiB are rounded up.
    assert dict(submitted.tdv.pairs)["input_size"] == 16 << 20


def test_tasks_that_wait_for_others_than_those_of_the_file_are_refused() -> None:
    read = workflow("{a: {command: x, after-ok: left.1}, b: {command: x}}")
    with pytest.raises(WorkflowError, match=r"tasks.yaml:1:9: task `a`: there are no other tasks"):
        workflow_at(read, SystemId("top"), AnswerTo(1))
