"""A third-party part in a real daemon: it decides, traces name it, and its exceptions are logged."""

import json
import os
from pathlib import Path

import pytest

from tests.contract.part_example import files_of_page, install
from tests.live.conftest import Federation, brought_up, fixed_machine

TOPOLOGY = f"""version: 1
federation: parts
defaults: {{policy: resting.policy, update_period: 500ms}}
systems:
  top: {{}}
  leaf: {{parent: top, machine: {fixed_machine()}}}
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Federation:
    """Install the example of docs/policy-parts.md for all commands, and return a federation that is not running."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    install(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (tmp_path / "parts.yaml").write_text(TOPOLOGY)
    (tmp_path / "resting.policy").write_text(files_of_page()["resting.policy"])
    return Federation(topology=tmp_path / "parts.yaml", name="parts", state=tmp_path / "state", module="top")


def test_its_decisions_are_replayed_where_it_is_installed_and_missed_where_it_is_not(
    made: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with brought_up(made):
        assert made.run("trace", "start", "--all").returncode == 0
        assert made.run("run", "--", "echo", "done").stdout == "done\n"
        assert made.run("trace", "stop", "--all").returncode == 0
        replayed = made.run("trace", "replay", "--json")
        assert (replayed.returncode, json.loads(replayed.stdout)["differences"]) == (0, []), replayed.stderr
    monkeypatch.delenv("PYTHONPATH")
    missing = made.run("trace", "replay")
    assert missing.returncode == 1
    assert "recorded with messiahs-resting 1.0, which is not installed" in missing.stderr


def test_a_part_that_raises_is_logged_once_and_tasks_still_run(made: Federation) -> None:
    module = Path(os.environ["PYTHONPATH"]) / "messiahs_resting.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace("        since = query.at", '        raise KeyError("x")\n        since = query.at'))
    with brought_up(made):
        for number in range(3):
            assert made.run("run", "--", "echo", str(number)).stdout == f"{number}\n"
        log = (made.folder("top") / "module.log").read_text()
    line = "rank candidates part_failed resting(rest = 5min): KeyError: 'x'; weighted_free_slots() decides"
    assert log.count(line) == 1
