"""GPUs and licences of a real machine (without such devices): tasks learn which are theirs, over restarts."""

from collections.abc import Iterator

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
      slots: 8
      counted:
        gpus: [0, 3]
        licences: 2
  plain: {parent: home, machine: {slots: 8}}
"""
_TELL = 'echo "$CUDA_VISIBLE_DEVICES|$MESSIAHS_GPUS|$MESSIAHS_LICENCES"'


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("things")
    topology = folder / "things.yaml"
    topology.write_text(_TOPOLOGY)
    with lab(topology, name="things", module="home") as made:
        yield made


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
    assert "plain: requirement_unmet (this machine does not report $free_gpus, $gpus)" in explained, explained
