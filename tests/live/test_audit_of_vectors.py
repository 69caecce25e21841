"""`messiahs audit vectors` on live federations: of several levels with several parents, and with modules that lie."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.cli.federation.temporary import remove_tasks
from messiahs.config.topology.reading import load_topology
from messiahs.daemon.process.environment import daemon_environment
from tests.live.conftest import ROOT, Federation, brought_up, fixed_machine
from tests.live.lying_sums import BOASTS, DOUBLES, HIDES
from tests.waiting import eventually

pytestmark = pytest.mark.live

_LEVELS = f"""
version: 1
federation: levels
defaults: {{update_period: 500ms}}
systems:
  top: {{}}
  left: {{parent: top, machine: {fixed_machine(slots=2)}}}
  right: {{parent: top, policy: close.policy}}
  left1: {{parent: left, machine: {fixed_machine(slots=4)}}}
  both: {{parents: [left, right], primary: left, machine: {fixed_machine(slots=3)}}}
  right1: {{parents: [right, left], primary: right, machine: {fixed_machine(slots=5)}}}
  low: {{parents: [both, right1], primary: right1, machine: {fixed_machine()}}}
"""
_CLOSE = """
policy "shows two machines or more, without their memory" version 1;
accept from any {}
accept from users {}
reveal to parent { all except $avail_mem; hide counts below 2; }
"""
_LIARS = f"""
version: 1
federation: liars
defaults: {{update_period: 500ms}}
systems:
  top: {{}}
  {DOUBLES}: {{parent: top, machine: {fixed_machine(slots=2)}}}
  under: {{parent: {DOUBLES}, machine: {fixed_machine(slots=4)}}}
  {BOASTS}: {{parent: top, machine: {fixed_machine(slots=3)}}}
  {HIDES}: {{parent: top, machine: {fixed_machine(slots=5)}}}
  honest: {{parent: top, machine: {fixed_machine(slots=6)}}}
"""


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("levels")
    (folder / "close.policy").write_text(_CLOSE)
    topology = folder / "levels.yaml"
    topology.write_text(_LEVELS)
    made = Federation(topology=topology, name="levels", state=folder / "state", module="top")
    with brought_up(made):
        yield made


@pytest.fixture(scope="module")
def liars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("liars")
    topology = folder / "liars.yaml"
    topology.write_text(_LIARS)
    made = Federation(topology=topology, name="liars", state=folder / "state", module="top")
    prepare(load_topology(topology), federation_directory(made.state, made.name))
    folders = [str(made.folder(name)) for name in ("top", DOUBLES, "under", BOASTS, HIDES, "honest")]
    command = [sys.executable, "-m", "tests.live.lying_sums", *folders]
    with subprocess.Popen(command, cwd=ROOT, env=daemon_environment(), stdin=subprocess.PIPE) as daemons:
        try:
            with made.client() as client:
                eventually(lambda: len(client.module()["heard"]) == len(folders) - 2)
            yield made
        finally:
            daemons.communicate()
    remove_tasks(made.state)


def audited(one: Federation, *words: str) -> tuple[int, dict[str, Any]]:
    done = one.run("audit", "vectors", "--json", *words)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_every_sum_of_a_federation_with_several_levels_and_parents_holds(levels: Federation) -> None:
    code, found = audited(levels)
    assert (code, found["deviating"], found["unsettled"]) == (0, [], []), found
    assert found["modules"] == ["both", "left", "left1", "low", "right", "right1", "top"]
    assert (found["outside"], found["unread"], found["withheld"]) == ([], [], [])
    # For each direction of each of the 8 links: a sum, the vectors from which it was computed, and its arrival.
    assert found["held"] > 2 * 3 * 8


def test_neighbors_that_are_not_read_are_believed(levels: Federation) -> None:
    done = levels.run("audit", "vectors", "--module", "left", "--module", "both")
    assert done.returncode == 0, done.stdout
    assert "2 modules, " in done.stdout
    assert "believed, since only their neighbors were read: left1, low, right, right1, top\n" in done.stdout


def test_each_lie_is_found_with_its_module_neighbor_equation_and_machines(liars: Federation) -> None:
    code, found = audited(liars)
    assert (code, found["unsettled"]) == (1, []), found
    lies = {
        (each["module"], each["neighbor"], each["equation"], one["what"], one["count"], *one["machines"])
        for each in found["deviating"]
        for one in each["deviations"]
    }
    assert lies == {
        (DOUBLES, "top", 19, "twice", 2, DOUBLES, "under"),
        (BOASTS, "top", 19, "outside", 1, BOASTS),
        ("top", HIDES, 22, "lost", 1, HIDES),
    }
