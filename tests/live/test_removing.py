"""A neighbor is removed, or left, while tasks run beyond it: none is lost, none runs twice, and it stays away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation
from tests.live.two_machines import begin, finish, folder, machines_of, neighbors, two_machines, until_machines
from tests.live.workload import HARMLESS, Workload, kill_process, what_befell
from tests.waiting import eventually

__all__ = ["folder"]

TASKS = 200
REMOVE = ("module", "remove", "left", "--module", "top", "--reason", "it is sold")
LEAVE = ("module", "leave", "top", "--module", "left", "--reason", "it is sold")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Federation]:
    with two_machines(tmp_path / "office") as made:
        yield made


def are_apart(office: Federation) -> bool:
    return "left" not in neighbors(office, "top") and "top" not in neighbors(office, "left")


@pytest.mark.parametrize("command", [REMOVE, LEAVE], ids=["removed", "left"])
@pytest.mark.parametrize("killed", ["", "top", "left"])
def test_a_link_that_is_ended_under_load_loses_and_repeats_nothing(
    office: Federation, folder: Path, command: tuple[str, ...], killed: str
) -> None:
    load = Workload(folder=folder, tasks=TASKS)
    array = load.submit(office)
    eventually(lambda: len(load.written()) > TASKS // 5)
    done = office.run(*command)
    assert done.returncode == 0, done.stderr
    if killed:
        kill_process(office, killed, process="daemon")
    assert office.run("wait", array).returncode == 0
    assert load.times_written() == dict.fromkeys(range(1, TASKS + 1), 1)
    assert load.doubles() == []
    assert what_befell(office, array) <= HARMLESS
    assert "left" in machines_of(office, array)
    eventually(lambda: are_apart(office), "the end of the link")
    until_machines(office, 1)
    for module in ("top", "left"):
        kill_process(office, module, process="daemon")
    eventually(lambda: are_apart(office), "the end of the link, also after a restart")
    until_machines(office, 1)
    assert office.run("run", "--", "true").returncode == 0


def test_a_link_with_a_running_task_is_shown_as_leaving_until_that_ends(office: Federation, folder: Path) -> None:
    task, _ = begin(office, folder / "go", at="left")
    out = office.run(*REMOVE).stdout
    assert out == "the link of top with left ends when nothing is left on it\n"
    entry = neighbors(office, "top")["left"]
    assert (entry["leaving"]["reason"], entry["leaving"]["left"]["held"]) == ("it is sold", 1)
    assert "top: the link with left is being ended" in office.run("module", "list").stdout
    (folder / "go").touch()
    assert finish(office, task)["attempt"] == 1
    eventually(lambda: are_apart(office), "the end of the link")
    assert office.run("module", "remove", "left", "--module", "top").returncode == 1


def test_a_removal_at_once_kills_and_begins_elsewhere_when_the_lease_has_expired(
    office: Federation, folder: Path
) -> None:
    task, machine = begin(office, folder / "go")
    done = office.run("module", "remove", machine, "--module", "top", "--now", "--reason", "stolen")
    assert (done.returncode, done.stdout) == (0, f"{machine} is no neighbor of top any more\n")
    eventually(lambda: office.status(task)["attempt"] == 2, "the second attempt")
    (folder / "go").touch()
    ended = finish(office, task)
    assert ended["executed_on"] not in (machine, "")
    eventually(lambda: "top" not in neighbors(office, machine), "the other side")


def test_only_a_neighbor_is_removed_and_only_a_parent_is_left(office: Federation) -> None:
    done = office.run("module", "remove", "gamma", "--module", "top")
    assert (done.returncode, done.stderr) == (1, "messiahs: gamma is no neighbor of top\n")
    done = office.run("module", "leave", "left", "--module", "top")
    assert (done.returncode, done.stderr) == (1, "messiahs: left is no parent of top\n")


def test_up_names_the_links_that_were_removed_by_hand_and_what_brings_them_back(office: Federation) -> None:
    assert office.run(*REMOVE).returncode == 0
    eventually(lambda: are_apart(office), "the end of the link")
    office.down()
    up = ("up", str(office.topology), "--detach", "--state", str(office.state))
    done = office.run(*up)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    # Its sibling was left with it.
    assert len(lines) == 4
    assert (
        "messiahs: top has no link with left, which was removed by hand (it is sold): `messiahs neighbor on" in lines[0]
    )
    for line in lines:
        words = line.split("`")[1].split()
        assert office.run(*words[1:]).returncode == 0
    eventually(lambda: "left" in neighbors(office, "top") and "top" in neighbors(office, "left"), "the link")
    office.down()
    assert office.run(*up).stderr == ""
