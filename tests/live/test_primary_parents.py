"""An administrator changes the primary parent of a module that runs (`messiahs module parent primary`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

_TOPOLOGY = f"""version: 1
federation: moved
defaults: {{update_period: 200ms}}
systems:
  top: {{}}
  left: {{parent: top}}
  right: {{parent: top}}
  leaf: {{parents: [left, right], primary: left, machine: {fixed_machine(slots=2)}}}
"""


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[Federation]:
    (tmp_path / "moved.yaml").write_text(_TOPOLOGY)
    made = Federation(topology=tmp_path / "moved.yaml", name="moved", state=tmp_path / "state", module="top")
    with brought_up(made):
        yield made


def machines(federation: Federation) -> dict[str, int]:
    """Return how many machines each system reports to its parents."""
    return {name: federation.vectors(name)["up"]["machines"] for name in ("top", "left", "right")}


def test_a_command_lets_another_parent_count_a_module_while_its_tasks_run(moved: Federation) -> None:
    eventually(lambda: machines(moved) == {"top": 1, "left": 1, "right": 0})
    task = moved.submit("--", "sleep", "3600")
    eventually(lambda: moved.status(task)["state"] == "executing", task)
    done = moved.run("module", "parent", "primary", "right", "--module", "leaf", "--reason", "left moves out")
    assert (done.returncode, done.stdout) == (0, "right counts leaf\n"), done.stderr
    eventually(lambda: machines(moved) == {"top": 1, "left": 0, "right": 1})
    assert moved.run("module", "parent", "show", "--module", "leaf").stdout == "left\nright (primary, counts it)\n"
    moved.kill("leaf", "daemon")
    eventually(lambda: machines(moved) == {"top": 1, "left": 0, "right": 1})
    assert moved.status(task)["state"] == "executing"
    assert moved.run("cancel", task).returncode == 0
    assert moved.document("module", "parent", "show", "--module", "leaf")["handover"]["done"]


def test_a_system_that_is_no_parent_cannot_become_the_primary_one(moved: Federation) -> None:
    done = moved.run("module", "parent", "primary", "top", "--module", "leaf")
    assert done.returncode == 1
    assert "top is no parent of leaf" in done.stderr
