"""GPUs and licences of a real machine (without such devices): tasks learn which are theirs, over restarts."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.lab import Lab, lab
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: things
defaults: {update_period: 500ms}
systems:
  home: {}
  box:
    parent: home
    machine:
      isolation: process
      slots: 8
      counted:
        gpus: [0, 3]
        licences: 2
  plain: {parent: home, machine: {isolation: process, slots: 8}}
  bench: {parent: home, machine: {isolation: process, slots: 8, counted: {boards: 2}}}
"""
_CELL = "  cell: {parent: home, machine: {slots: 8, isolation: sandbox, counted: {scopes: 2}}}\n"
_HOLD = 'flock -n "{folder}/$NUMBER" sh -c "exec sleep 600" || exit 9'
"""A task that ends if a process of another one has its thing; the lock is open until the last process ends."""
_TELL = 'echo "$CUDA_VISIBLE_DEVICES|$MESSIAHS_GPUS|$MESSIAHS_LICENCES"'


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("things")
    topology = folder / "things.yaml"
    topology.write_text(_TOPOLOGY + (_CELL if os.geteuid() == 0 else ""))
    with lab(topology, name="things", module="home") as made:
        yield made


@pytest.fixture
def locks() -> Iterator[Path]:
    """Return a folder with a file for each number, which tasks of all accounts and sandboxes can read."""
    # The temporary folders of a sandbox are its own.
    with tempfile.TemporaryDirectory(prefix="messiahs-test-", dir="/var/lib" if os.geteuid() == 0 else None) as name:
        folder = Path(name)
        folder.chmod(0o755)
        for number in range(2):
            (folder / str(number)).touch(0o644)
        yield folder


def held(made: Lab, *wish: str) -> str:
    """Submit a task that tells what it has, and runs until it is killed; return its id."""
    return made.federation.submit(*wish, "--", "sh", "-c", f"{_TELL}; exec sleep 600")


def told(made: Lab, task: str) -> str:
    eventually(lambda: made.federation.run("logs", task).stdout.endswith("\n"))
    return made.federation.run("logs", task).stdout.strip()


def test_tasks_learn_what_is_theirs_and_a_restarted_daemon_assigns_nothing_twice(things: Lab) -> None:
    first = held(things, "--gpus", "1", "--use", "licences=1")
    assert told(things, first) == "0|0|0"
    things.kill("box")
    things.start("box")
    second = held(things, "--gpus", "1")
    assert told(things, second) == "3|3|"
    third = held(things, "--gpus", "1")
    eventually(lambda: things.federation.status(third)["reasons"])
    shown = things.federation.run("status", second).stdout
    assert f"{second}: gpus 3 of box" in shown
    assert things.federation.status(first)["assigned"] == {"gpus": [0], "licences": [0]}
    things.federation.run("cancel", first)
    assert told(things, third) == "0|0|"
    for task in (second, third):
        things.federation.run("cancel", task)


def test_a_task_that_asks_for_none_sees_none(things: Lab) -> None:
    task = things.federation.submit("--require", "$gpus = 2", "--", "sh", "-c", _TELL)
    assert things.federation.run("wait", task).returncode == 0
    assert told(things, task) == "||"


def test_nobody_takes_things_by_setting_their_variable(things: Lab) -> None:
    task = things.federation.submit(
        "--require", "$gpus = 2", "--env", "CUDA_VISIBLE_DEVICES=0", "--", "sh", "-c", _TELL
    )
    assert things.federation.run("wait", task).returncode == 0
    assert told(things, task) == "||"


def test_a_wish_that_no_machine_can_fulfil_is_explained(things: Lab) -> None:
    task = things.federation.submit("--gpus", "3", "--", "true")
    eventually(lambda: things.federation.status(task)["reasons"])
    explained = things.federation.run("explain", task).stdout
    things.federation.run("cancel", task)
    assert "plain: own machine has no GPUs" in explained, explained
    assert "too few GPUs: at most 2 at box" in explained, explained


@pytest.mark.parametrize(("module", "name"), [("bench", "boards"), ("cell", "scopes")])
def test_no_killed_starter_or_daemon_leads_to_two_tasks_with_one_thing(
    things: Lab, locks: Path, module: str, name: str
) -> None:
    if module == "cell" and os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    script = f"NUMBER=$MESSIAHS_{name.upper()}; {_HOLD.format(folder=locks)}"
    # An origin gives another machine that has lost tasks one at a time.
    own = replace(things.federation, module=module)
    tasks = [own.submit("--use", f"{name}=1", "--", "sh", "-c", script) for _ in range(3)]

    def is_begun(attempts: int) -> bool:
        """Whether two tasks run, after so many attempts of all; one that finds its thing in use ends."""
        statuses = [own.status(task) for task in tasks]
        assert all(each["state"] == "executing" for each in statuses), statuses
        runs = sum(each["substate"] == "running" for each in statuses)
        return runs == 2 and sum(int(each["attempt"]) for each in statuses) >= attempts

    eventually(lambda: is_begun(2))
    own.kill(module, "starter")
    eventually(lambda: is_begun(4))
    things.kill(module)
    things.start(module)
    eventually(lambda: is_begun(4))
    things.kill(module, starter=True)
    things.start(module)
    eventually(lambda: is_begun(6))
    for task in tasks:
        own.run("cancel", task)
