"""Owners who take their machines back with `messiahs lend`: real tasks are suspended and continue, new ones refused."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.client.lending import turn
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.live.two_machines import begin, finish, folder
from tests.waiting import eventually

__all__ = ["folder"]

_TOPOLOGY = """version: 1
federation: lent
defaults: {policy: lent.policy, update_period: 500ms}
systems:
  top:   {}
  left:  {parent: top, machine: LEFT}
  right: {parent: top, machine: RIGHT}
"""
_POLICY = 'policy "lent"; accept from any { } accept from users { } timeouts { lease 10s; kill_grace 2s; }'
_ANN, _EVE = 61_011, 61_012


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share two machines, each with a file that shows the use of its console."""
    place, topology = tmp_path_factory.mktemp("lent"), _TOPOLOGY
    for name in ("left", "right"):
        (place / name).touch()
        machine = fixed_machine(slots=2, attributes=f"{{side: {name}}}", console=str(place / name))
        topology = topology.replace(name.upper(), machine)
    (place / "lent.yaml").write_text(topology)
    (place / "lent.policy").write_text(_POLICY)
    made = Federation(topology=place / "lent.yaml", name="lent", state=place / "state", module="top")
    with brought_up(made):
        yield made


@pytest.fixture(autouse=True)
def _left_to_the_policies(lent: Federation) -> None:
    for module in ("left", "right"):
        assert lent.run("lend", "policy", "--module", module).returncode == 0
    eventually(lambda: lent.vectors("top")["up"]["machines"] == 2, "both machines")


def test_an_owner_takes_the_machine_back_through_a_kill_and_lends_it_again(lent: Federation, folder: Path) -> None:
    task, _ = begin(lent, folder / "go", at="left", name="shown")
    done = lent.run("lend", "off", "--module", "left")
    text = "left is not lent to others until `messiahs lend on` or `messiahs lend policy`\n"
    assert (done.returncode, done.stdout) == (0, text), done.stderr
    eventually(lambda: lent.status(task)["substate"] == "suspended", "suspended")
    assert lent.status(task)["text"] == "its owner does not lend this machine"
    pid = lent.pid("left", "daemon")
    lent.kill("left", "daemon")
    eventually(lambda: lent.pid("left", "daemon") != pid, "another daemon")
    assert lent.document("lend", "--module", "left")["lend"]["position"] == "off"
    assert "the machine of left is not lent" in lent.run("status", "--module", "left").stderr
    assert "not lent to others" in lent.run("module", "list").stdout
    assert "not lent to others" in lent.run("doctor", "--module", "left").stdout
    (folder / "go").touch()
    other = lent.submit("--", "true")
    assert finish(lent, other)["executed_on"] == "right"
    assert lent.status(task)["substate"] == "suspended"
    assert lent.run("lend", "on", "--module", "left").returncode == 0
    ended = finish(lent, task)
    assert (ended["attempt"], ended["executed_on"]) == (1, "left")


def test_who_waits_learns_until_when_and_the_machine_is_lent_by_itself_then(lent: Federation) -> None:
    # People write whole minutes of the local time.
    until = int(time.time()) // 60 * 60 + 3_600
    local = time.strftime("%Y-%m-%dT%H:%M", time.localtime(until))
    for module in ("left", "right"):
        done = lent.run("lend", "off", "--until", local, "--module", module)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{module} is not lent to others until {local.replace('T', ' ')}")
        assert lent.document("lend", "--module", module)["lend"]["until"] == _stamp(until, ".000Z")
    task = lent.submit("--", "true")
    eventually(lambda: _stamp(until, "Z") in json.dumps(lent.status(task)["reasons"]), "the reason")
    shown = lent.run("explain", task).stdout
    assert "its owner does not lend this machine until " in shown
    assert _stamp(until, "Z") not in shown
    soon = int(time.time()) + 10
    for module in ("left", "right"):
        found = turn(lent.folder(module).with_suffix(".sock"), "off", until_seconds=soon)
        assert found["lend"]["until"] == _stamp(soon, ".000Z")
    assert finish(lent, task)["attempt"] == 1
    assert lent.document("lend", "--module", "left")["lend"]["position"] == "policy"


def _stamp(seconds: int, end: str) -> str:
    return time.strftime(f"%Y-%m-%dT%H:%M:%S{end}", time.gmtime(seconds))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks as another account")
def test_only_the_owners_may_turn_the_dial(lent: Federation) -> None:
    console = lent.topology.parent / "left"
    lent.folder("left").parent.chmod(0o711)

    def code(uid: int) -> int:
        return lent.status_code_for(uid, "POST", path="/v1/lend", module="left", body='{"lend": "off"}')

    assert code(_EVE) == 403
    os.chown(console, _ANN, -1)
    assert (code(_ANN), code(_EVE)) == (200, 403)
    assert lent.document("lend", "--module", "left")["lend"]["by"] == f"uid-{_ANN}"
    assert lent.status_code_for(_EVE, "GET", path="/v1/lend", module="left") == 200
    assert "no machine that could be lent" in lent.run("lend", "off", "--module", "top").stderr
