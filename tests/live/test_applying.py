"""A changed topology file is taken over by a federation that runs, under the tasks that it runs."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.cli.main import main
from messiahs.client.connection import Document
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.shared_folders import open_to_all
from tests.waiting import PATIENCE_SECONDS, eventually

_HEAD = "version: 1\nfederation: grown\ndefaults: {policy: open.policy, update_period: 200ms}\nsystems:\n"
_TOP = "  top: {}\n"
_LEFT = f"  left: {{parent: top, machine: {fixed_machine(attributes='{side: left}', slots=2)}}}\n"
_RIGHT = f"  right: {{parent: top, machine: {fixed_machine(attributes='{side: right}', slots=2)}}}\n"
_NEW = f"  new: {{parent: top, machine: {fixed_machine(attributes='{side: new}', slots=2)}}}\n"
_POLICY = 'policy "%s" version 1;\naccept from any {}\naccept from users {}\n'


class Grown(Federation):
    """A federation whose file a test changes."""

    def write(self, *systems: str) -> None:
        """Write the file anew."""
        self.topology.write_text(_HEAD + "".join(systems))

    def apply(self, *words: str) -> list[str]:
        """Apply the file, and return what is printed."""
        done = self.run("topology", "apply", str(self.topology), *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    def begin(self, side: str, until: Path) -> str:
        """Submit a task that runs on one side until a file exists, and wait until it runs."""
        script = f"until test -e {until}; do sleep 0.05; done; echo done on {side}"
        task = self.submit("--require", f'$side eq "{side}"', "--", "sh", "-c", script)
        eventually(lambda: self.status(task)["state"] == "executing", task)
        return task

    def processes(self) -> dict[str, int]:
        """Return the processes of daemons and starters."""
        files = self.folder("").glob("*/*.pid")
        return {f"{file.parent.name}/{file.stem}": json.loads(file.read_text())["pid"] for file in files}

    def machines(self, module: str) -> int:
        """Return the number of machines in the sum that a module sends up."""
        return int(self.vectors(module)["up"]["machines"])

    def neighbors(self, module: str) -> list[str]:
        """Return the neighbors of a module."""
        with self.client(module) as client:
            return sorted(each["name"] for each in client.neighbors())


def _link(grown: Grown, module: str, neighbor: str) -> Document:
    """Return what a module says of its link with a neighbor."""
    with grown.client(module) as client:
        return next(each for each in client.neighbors() if each["name"] == neighbor)


@pytest.fixture
def shared(short_folder: Path) -> Path:
    """Return a folder that tasks of any account can write to; other test runs close that of pytest."""
    open_to_all(short_folder)
    return short_folder


@pytest.fixture
def grown(tmp_path: Path) -> Iterator[Grown]:
    """Start a parent with two machines."""
    (tmp_path / "open.policy").write_text(_POLICY % "open")
    made = Grown(topology=tmp_path / "grown.yaml", name="grown", state=tmp_path / "state", module="top")
    made.write(_TOP, _LEFT, _RIGHT)
    with brought_up(made):
        yield made


def test_systems_come_and_go_under_running_tasks_and_nothing_else_is_restarted(grown: Grown, shared: Path) -> None:
    tasks = {side: grown.begin(side, shared / side) for side in ("left", "right")}
    before = grown.processes()
    grown.write(_TOP, _LEFT, _NEW)
    # A machine that still has a task stays until it has ended.
    done = grown.run("topology", "apply", str(grown.topology), "--wait", "0")
    assert done.returncode == 1, done.stderr
    assert {"new: started", "top: gains new (primary child)", "left: loses right (sibling)"} <= set(
        done.stdout.splitlines()
    )
    told = "right: is not empty yet (1 attempt, 1 claim granted left); repeat this command later"
    assert told in done.stdout
    assert {**before, **grown.processes()} == grown.processes(), "something was restarted"
    new = grown.begin("new", shared / "new")
    for side in ("left", "right", "new"):
        (shared / side).touch()
    for side, task in {**tasks, "new": new}.items():
        assert grown.run("wait", task).returncode == 0, side
        assert grown.run("logs", task).stdout == f"done on {side}\n"
    assert "right: ended" in grown.apply()
    left = {name: pid for name, pid in before.items() if not name.startswith("right/")}
    assert {**left, **grown.processes()} == grown.processes(), "something was restarted"
    eventually(lambda: grown.neighbors("top") == ["left", "new"])
    eventually(lambda: grown.neighbors("left") == ["new", "top"])
    assert grown.apply() == [f"{name}: nothing changes" for name in ("top", "left", "new")]


def test_a_system_that_goes_takes_no_task_of_its_users_along_and_can_return(grown: Grown, shared: Path) -> None:
    script = f"until test -e {shared}/go; do sleep 0.05; done; echo $MESSIAHS_ARRAY_INDEX >>{shared}/numbers"
    here = replace(grown, module="right")
    array = here.submit("--array", "1-4", "--require", '$side eq "left"', "--", "sh", "-c", script)
    eventually(lambda: here.status(array)["counts"].get("running") == 2)
    grown.write(_TOP, _LEFT)
    done = grown.run("topology", "apply", str(grown.topology), "--wait", "0")
    assert done.returncode == 1, done.stderr
    told = done.stdout.splitlines()
    assert told[0] == "right: is drained, because the topology file does not name it any more"
    assert told[-1] == "right: is not empty yet (4 tasks of its users have not ended); repeat this command later"
    # Those that wait are placed by a module that the file does not name any more, beyond a link that it does not name.
    (shared / "go").touch()
    ended = grown.apply("--wait", str(PATIENCE_SECONDS))
    assert "left: loses right (sibling)" in ended
    assert ended[-1] == "right: ended"
    assert sorted((shared / "numbers").read_text().split()) == ["1", "2", "3", "4"]
    eventually(lambda: grown.neighbors("top") == ["left"])
    grown.write(_TOP, _LEFT, _RIGHT)
    assert "right: started" in grown.apply()
    assert here.status(array)["counts"] == {"finished": 4}
    eventually(lambda: grown.machines("top") == 2)
    assert grown.run("run", "--require", '$side eq "right"', "--", "true").returncode == 0


def test_a_system_that_the_file_names_again_before_it_ended_takes_work_again(grown: Grown, shared: Path) -> None:
    task = grown.begin("right", shared / "right")
    grown.write(_TOP, _LEFT)
    assert grown.run("topology", "apply", str(grown.topology), "--wait", "0").returncode == 1
    grown.write(_TOP, _LEFT, _RIGHT)
    assert "right: takes work again" in grown.apply()
    (shared / "right").touch()
    assert grown.run("wait", task).returncode == 0
    assert grown.run("run", "--require", '$side eq "right"', "--", "true").returncode == 0


def test_a_failure_in_the_middle_names_what_was_applied_and_a_repetition_does_the_rest(
    grown: Grown, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(grown.state))
    grown.write(_TOP, _LEFT, _RIGHT, _NEW)
    # The settings of `right`, the last one of the file that runs, cannot be written.
    obstacle = grown.folder("right") / f".settings.json.{os.getpid()}"
    obstacle.mkdir()
    assert main(["topology", "apply", str(grown.topology), "--json"]) == 1
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["started"], list(document["modules"])) == (["new"], ["top", "left"])
    assert "gains new (sibling)" in document["modules"]["left"]["applied"]
    assert "the file is applied in part, and the same command continues" in document["problem"]
    assert document["problem"] in said.err
    obstacle.rmdir()
    assert "right: gains new (sibling)" in grown.apply()


def test_another_primary_parent_counts_a_machine_that_no_sum_counts_twice(grown: Grown, shared: Path) -> None:
    groups = "  a: {parent: top}\n  b: {parent: top}\n  s: {parent: b}\n"
    machine = fixed_machine(attributes="{side: m}", slots=2)

    def moving(parents: str, primary: str) -> str:
        return f"  m: {{parents: [{parents}], primary: {primary}, machine: {machine}}}\n"

    grown.write(_TOP, _LEFT, _RIGHT, groups, moving("a, b", "a"))
    grown.apply()
    eventually(lambda: grown.machines("top") == 3)
    assert (grown.machines("a"), grown.machines("b")) == (1, 0)
    task = grown.begin("m", shared / "m")
    before = grown.processes()
    grown.write(_TOP, _LEFT, _RIGHT, groups, moving("a, b", "b"))
    assert "m: relation of b: parent -> primary parent" in grown.apply()
    seen = set()

    def counted() -> tuple[int, ...]:
        counts = tuple(map(grown.machines, ("a", "b", "top")))
        seen.add(counts[-1])
        return counts

    eventually(lambda: counted() == (0, 1, 3))
    assert max(seen) == 3
    eventually(lambda: grown.neighbors("m") == ["a", "b", "s"])
    # The parent of before goes, too.
    grown.write(_TOP, _LEFT, _RIGHT, groups, moving("b", "b"))
    grown.apply()
    assert grown.status(task)["state"] == "executing"
    (shared / "m").touch()
    assert grown.run("wait", task).returncode == 0
    eventually(lambda: grown.neighbors("m") == ["b", "s"])
    eventually(lambda: "a" not in "".join(grown.apply("--module", "m")).split())
    assert grown.machines("top") == 3
    assert grown.processes() == before


@pytest.mark.parametrize("order", [("top", "left", "right", "lamp"), ("lamp", "right", "left", "top")])
def test_a_module_that_the_file_moves_beside_its_parent_and_back_is_linked_and_counted_once(
    grown: Grown, order: tuple[str, ...]
) -> None:
    machine = fixed_machine(attributes="{side: lamp}", slots=2)
    below, beside = (
        (_TOP, _LEFT, _RIGHT, f"  lamp: {{parent: {parent}, machine: {machine}}}\n") for parent in ("left", "top")
    )
    siblings = {"top": "parent", "left": "sibling", "right": "sibling", "back": "sibling"}
    most = 0

    def relations() -> tuple[dict[str, str | None], tuple[int, int]]:
        """Return the relations of lamp, that of left to it, and the machines below left and top, as far as linked."""
        nonlocal most
        with grown.client("lamp") as here, grown.client("left") as there:
            found = {each["name"]: each["relation"] for each in here.neighbors() if each["state"] == "linked"}
            back = {each["name"]: each["relation"] for each in there.neighbors() if each["state"] == "linked"}
        counted = (grown.machines("left"), grown.machines("top"))
        most = max(most, *counted)
        return {**found, "back": back.get("lamp")}, counted

    grown.write(*below)
    grown.apply()
    eventually(lambda: relations() == ({"left": "parent", "back": "child"}, (2, 3)))
    before = grown.processes()
    for _ in range(2):
        grown.write(*beside)
        for module in order:
            grown.apply("--module", module)
        eventually(lambda: relations() == (siblings, (1, 3)))
        assert _link(grown, "lamp", "top")["dialed_at"].startswith("127.0.0.1:")
        grown.write(*below)
        for module in order:
            grown.apply("--module", module)
        eventually(lambda: relations() == ({"left": "parent", "back": "child"}, (2, 3)))
    assert most == 3
    for origin, side in (("lamp", "right"), ("right", "lamp")):
        done = replace(grown, module=origin).run("run", "--require", f'$side eq "{side}"', "--", "true")
        assert done.returncode == 0, done.stderr
    assert grown.processes() == before


def test_a_primary_parent_whose_link_is_still_being_ended_counts_again_when_it_has_ended(
    grown: Grown, shared: Path
) -> None:
    machine = fixed_machine(attributes="{side: lamp}", slots=2)
    below, beside = (
        (_TOP, _LEFT, _RIGHT, f"  lamp: {{parent: {parent}, machine: {machine}}}\n") for parent in ("left", "top")
    )

    def linked() -> dict[str, str]:
        with grown.client("lamp") as client:
            known = [each for each in client.neighbors() if each["state"] == "linked" and each["leaving"] is None]
        return {each["name"]: each["relation"] for each in known}

    siblings = {"top": "parent", "left": "sibling", "right": "sibling"}
    grown.write(*beside)
    grown.apply()
    eventually(lambda: linked() == siblings)
    task = grown.begin("lamp", shared / "lamp")
    grown.write(*below)
    grown.apply()
    eventually(lambda: linked() == {"left": "parent"})
    with grown.client("lamp") as client:
        assert [each["name"] for each in client.neighbors() if each["leaving"] is not None] == ["top"]
    grown.write(*beside)
    grown.apply()
    assert linked()["left"] == "parent", "it counts until the other one can"
    (shared / "lamp").touch()
    assert grown.run("wait", task).returncode == 0
    eventually(lambda: (linked(), grown.machines("left"), grown.machines("top")) == (siblings, 1, 3))


def test_a_changed_policy_is_in_force_at_once_and_one_with_mistakes_changes_nothing(grown: Grown) -> None:
    before = grown.processes()
    policy = grown.topology.parent / "open.policy"
    policy.write_text(_POLICY % "other")
    applied = grown.apply("--module", "left")
    assert [line.split(", SHA")[0] for line in applied] == [f"left: policy: {policy}"]
    if os.geteuid() == 0:
        grown.folder("left").parent.chmod(0o711)
        assert grown.status_code_for(65533, "POST", path="/v1/settings", module="left") == 403
    names = {}
    for module in ("top", "left", "right"):
        with grown.client(module) as client:
            names[module] = client.policy()["name"]
    assert names == {"top": "open", "left": "other", "right": "open"}
    policy.write_text("policy")
    done = grown.run("topology", "apply", str(grown.topology))
    assert done.returncode == 1
    assert "open.policy:1" in done.stderr
    with grown.client("top") as client:
        assert client.policy()["name"] == "open"
    assert grown.processes() == before


def test_what_needs_a_restart_is_printed_and_not_done(grown: Grown) -> None:
    before = grown.processes()
    grown.write(_TOP, _LEFT.replace("slots: 2", "slots: 4"), _RIGHT)
    for _ in range(2):
        (line,) = (line for line in grown.apply() if line.startswith("left: "))
        assert line.startswith("left: machine: ")
        assert line.endswith("(after a restart)")
    assert grown.processes() == before
    grown.kill("left", "daemon")
    eventually(lambda: grown.processes()["left/daemon"] != before["left/daemon"])
    eventually(lambda: grown.apply("--module", "left") == ["left: nothing changes"])


def test_a_neighbor_that_was_removed_by_hand_stays_away_until_a_person_brings_it_back(grown: Grown) -> None:
    done = grown.run("module", "remove", "right", "--module", "top", "--reason", "it is sold")
    assert done.returncode == 0, done.stderr
    eventually(lambda: (grown.neighbors("top"), grown.neighbors("right")) == (["left"], []))
    grown.down()
    started = grown.run("up", str(grown.topology), "--detach", "--wait", str(PATIENCE_SECONDS))
    assert started.returncode == 0, started.stdout + started.stderr
    assert (grown.neighbors("top"), grown.neighbors("right")) == (["left"], [])
    told = [line for line in grown.apply() if "differs from the file" in line]
    why = "(it is sold), and the file lists it; `messiahs neighbor on right --module top` brings it back"
    assert f"top: differs from the file: right was removed at run time {why}" in told
    # Only its own people bring it back at `top`. All others follow the file; siblings by a primary parent went with it.
    assert len([line for line in told if "brings it back" in line]) == 1
    found = re.findall("([a-z]+): differs from the file: the link with ([a-z]+) had ended", "\n".join(told))
    assert set(found) == {("right", "top"), ("left", "right"), ("right", "left")}
    eventually(lambda: "right is no neighbor of top" in _link(grown, "right", "top")["text"])
    assert grown.neighbors("top") == ["left"]
    assert grown.machines("top") == 1
    assert "no neighbor of top" in grown.run("neighbor", "on", "other", "--module", "top").stderr
    assert grown.run("neighbor", "on", "right", "--module", "top").returncode == 0
    eventually(lambda: grown.machines("top") == 2)
    eventually(lambda: _link(grown, "left", "right")["state"] == "linked")
    assert grown.apply() == [f"{name}: nothing changes" for name in ("top", "left", "right")]
    assert grown.run("run", "--require", '$side eq "right"', "--", "true").returncode == 0


def test_an_interrupted_application_is_completed_by_a_repetition(grown: Grown) -> None:
    grown.write(_TOP, _LEFT, _RIGHT, _NEW)
    interrupted = grown.start("topology", "apply", str(grown.topology))
    eventually((grown.folder("new") / "settings.json").exists)
    interrupted.kill()
    interrupted.communicate()
    grown.apply()
    eventually(lambda: grown.neighbors("top") == ["left", "new", "right"])
    assert grown.run("run", "--require", '$side eq "new"', "--", "true").returncode == 0


def test_another_file_of_another_federation_finds_nothing_to_change(grown: Grown) -> None:
    grown.topology.write_text(grown.topology.read_text().replace("federation: grown", "federation: other"))
    done = grown.run("topology", "apply", str(grown.topology))
    assert done.returncode == 1
    assert "no module of `other` runs here" in done.stderr
    grown.write(_TOP, _LEFT, _RIGHT)
