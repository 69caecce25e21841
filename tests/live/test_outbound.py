"""Modules that nobody can dial, under a parent that they dial: tasks, files and standard input reach them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, brought_up
from tests.ports import listening_ports
from tests.waiting import eventually

TOPOLOGY = """
version: 1
federation: outbound
defaults: {update_period: 500ms}
systems:
  root: {}
  near: {parent: root, reach: outbound, machine: {isolation: process, slots: 2, attributes: {side: near}}}
  far: {parent: root, reach: outbound, machine: {isolation: process, slots: 2, attributes: {side: far}}}
  below: {parent: far, machine: {isolation: process, slots: 2, attributes: {side: below}}}
"""
LARGE = bytes(range(256)) * 20_000
ON_FAR = ("--require", '$side eq "far"')
ON_BELOW = ("--require", '$side eq "below"')


@pytest.fixture(scope="module")
def outbound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("outbound")
    topology = folder / "outbound.yaml"
    topology.write_text(TOPOLOGY)
    made = Federation(topology=topology, name="outbound", state=folder, module="near")
    with brought_up(made):
        eventually(lambda: made.vectors()["down"]["machines"] == 3)
        yield made


def test_only_the_others_listen(outbound: Federation) -> None:
    assert len(listening_ports(outbound.pid("root", "daemon"))) == 2
    assert len(listening_ports(outbound.pid("below", "daemon"))) == 2
    for module in ("near", "far"):
        assert listening_ports(outbound.pid(module, "daemon")) == set()
        assert listening_ports(outbound.pid(module, "starter")) == set()
    listed = {module["name"]: module["address"] for module in outbound.document("module", "list")["modules"]}
    assert (listed["near"], listed["far"]) == ("", "")


def test_a_task_with_files_runs_at_such_a_module_for_another_one(outbound: Federation, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(LARGE)
    (tmp_path / "small").write_bytes(b"small")
    inputs = ("--input", str(tmp_path / "large"), "--input", str(tmp_path / "small"))
    task = outbound.submit(*ON_FAR, *inputs, "--output", "both", "--", "sh", "-c", "cat small large | tee both; echo")
    assert outbound.run("wait", task).returncode == 0
    assert outbound.status(task)["executed_on"] == "far"
    assert outbound.run("fetch", task, "--into", str(tmp_path / "home")).returncode == 0
    both = (tmp_path / "home" / "both").read_bytes()
    assert hashlib.sha256(both).digest() == hashlib.sha256(b"small" + LARGE).digest()


def test_many_small_tasks_run_there(outbound: Federation) -> None:
    array = outbound.submit(*ON_FAR, "--array", "1-40", "--", "echo", "{}")
    assert outbound.run("wait", array).returncode == 0
    members = outbound.members(array)
    assert {(member["state"], member["attempt"], member["executed_on"]) for member in members} == {
        ("finished", 1, "far"),
    }  # fmt: skip


def test_output_is_shown_while_the_task_runs(outbound: Federation, shared: Path) -> None:
    script = f"echo first; while [ ! -e {shared}/go ]; do sleep 0.05; done; echo second"
    running = outbound.start("run", *ON_FAR, "--", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "first\n"
    (shared / "go").touch()
    out, _ = running.communicate()
    assert (running.returncode, out) == (0, "second\n")


def test_a_system_below_such_a_module_is_dialed_by_it_and_gets_tasks(outbound: Federation) -> None:
    done = outbound.run("run", *ON_BELOW, "--", "echo", "below")
    assert (done.returncode, done.stdout) == (0, "below\n")


def test_such_a_module_that_is_killed_links_again_and_loses_nothing(outbound: Federation) -> None:
    array = outbound.submit(*ON_FAR, "--array", "1-20", "--", "sleep", "0.2")
    eventually(lambda: outbound.status(array)["counts"].get("finished", 0) >= 3)
    before = outbound.pid("far", "daemon")
    outbound.kill("far", "daemon")
    eventually(lambda: outbound.pid("far", "daemon") != before)
    assert outbound.run("wait", array).returncode == 0
    members = outbound.members(array)
    assert {(member["state"], member["attempt"]) for member in members} == {("finished", 1)}
