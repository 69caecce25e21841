"""Tasks are revoked, moved, held and released by hand, at their origin and where they run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.output import local_time
from tests.live.conftest import Federation
from tests.live.two_machines import begin, finish, folder, office
from tests.live.workload import Workload, kill_process
from tests.waiting import eventually

__all__ = ["folder", "office"]

TASKS = 150
STRANGER = 65533
_AS_ANOTHER = """
import json, os, pathlib, sys
from messiahs.client import ModuleClient, Submission
from messiahs.errors import ClientError
folder, name, uid, method, *words = sys.argv[1:]
os.chdir(folder)
os.seteuid(int(uid))
with ModuleClient(pathlib.Path(name)) as module:
    try:
        if method == "submit":
            answer = {"id": module.submit(Submission(argv=tuple(words)))}
        else:
            answer = module.act_by_hand(*words)
    except ClientError as error:
        answer = {"error": str(error)}
print(json.dumps(answer))
"""


def other(machine: str) -> str:
    return {"left": "right", "right": "left"}[machine]


def until_attempt(office: Federation, task: str, *, attempt: int) -> dict[str, Any]:
    """Wait until a certain attempt runs."""
    eventually(lambda: (now := office.status(task))["attempt"] == attempt and now["substate"] == "running", task)
    return office.status(task)


def until_counts(office: Federation, array: str, **counts: int) -> None:
    eventually(lambda: office.status(array)["counts"] == counts, f"{array}: {counts}")


def restart(office: Federation, module: str) -> None:
    """Kill the daemon of a module, and wait for the next one."""
    pid = office.pid(module, "daemon")
    kill_process(office, module, process="daemon")
    eventually(lambda: office.pid(module, "daemon") != pid)


def ask_as(office: Federation, uid: int, *words: str, module: str = "top") -> dict[str, Any]:
    """Use the local API of a module as another user; only root can."""
    # The process enters the folder as root, since other users cannot reach it.
    socket = office.folder(module).with_suffix(".sock")
    command = [sys.executable, "-c", _AS_ANOTHER, str(socket.parent), socket.name, str(uid), *words]
    return dict(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def events(task: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(entry["event"], entry["attempt"], entry["text"]) for entry in task["history"]]


@pytest.mark.parametrize(("act", "done"), [("revoke", "revoked"), ("move", "moved")])
def test_a_task_is_taken_back_at_its_origin_and_runs_again(
    office: Federation, folder: Path, act: str, done: str
) -> None:
    task, machine = begin(office, folder / "go", name=f"back-{act}")
    said = office.run("task", act, task, "--reason", "it is slow there")
    assert (said.returncode, said.stdout) == (0, f"{task}#1 is being {done}\n")
    again = until_attempt(office, task, attempt=2)
    assert act == "revoke" or again["executed_on"] == other(machine)
    (folder / "go").touch()
    ended = finish(office, task)
    assert ended["attempt"] == 2
    assert (f"{act} by hand", 1, "it is slow there") in events(ended)
    assert f"attempt 1 {act} by hand at {machine}: it is slow there" in office.run("explain", task).stdout


def test_a_moved_task_leaves_although_its_origin_is_killed_in_that_instant(office: Federation, folder: Path) -> None:
    task, machine = begin(office, folder / "go", name="killed")
    assert office.run("task", "move", task).returncode == 0
    restart(office, "top")
    assert until_attempt(office, task, attempt=2)["executed_on"] == other(machine)
    (folder / "go").touch()
    assert finish(office, task)["attempt"] == 2


@pytest.mark.parametrize("act", ["revoke", "move"])
def test_a_task_is_taken_off_the_machine_where_it_runs(office: Federation, folder: Path, act: str) -> None:
    task, machine = begin(office, folder / "go", name=f"off-{act}")
    done = office.document("task", act, task, "--module", machine, "--reason", "the room is painted")
    assert done["tasks"] == [{"id": task, "at": "executor", "attempts": [f"{task}#1"]}]
    restart(office, machine)
    # The restart ends the bar, so that the second attempt may be there again.
    until_attempt(office, task, attempt=2)
    (folder / "go").touch()
    assert ("vacated", 1, "the room is painted") in events(finish(office, task))


def test_a_waiting_task_on_hold_gets_no_place_until_its_release(office: Federation, folder: Path) -> None:
    full = [begin(office, folder / "go", at="left", name=f"full-{number}")[0] for number in (1, 2)]
    words = ("--require", '$side eq "left"', "--set", "kind=held", "--", "true")
    held, next_one = office.submit(*words), office.submit(*words)
    said = office.run("task", "hold", held, "--reason", "the data are wrong")
    assert (said.returncode, said.stdout) == (0, f"{held} is on hold\n")
    restart(office, "top")
    (folder / "go").touch()
    for task in (*full, next_one):
        finish(office, task)
    waits = office.status(held)
    assert (waits["substate"], waits["attempt"], waits["reasons"]) == ("queued", 0, [])
    assert waits["hold"]["reason"] == "the data are wrong"
    shown = office.run("status", held).stdout
    assert f"{held}  held" in shown
    assert f"{held} is on hold since {local_time(waits['hold']['since'])}\n  the data are wrong\n" in shown
    assert office.run("task", "release", held).stdout == f"{held} is released\n"
    ended = finish(office, held)
    assert (ended["attempt"], ended["hold"]) == (1, None)
    assert [event for event, _, _ in events(ended)][:2] == ["hold by hand", "release by hand"]


def test_a_running_task_on_hold_runs_on_and_after_its_revocation_waits_for_its_release(
    office: Federation, folder: Path
) -> None:
    task, _ = begin(office, folder / "go", name="running")
    said = office.run("task", "hold", task).stdout
    assert said == f"{task} is on hold; {task}#1 runs on (`messiahs task revoke` ends that, too)\n"
    assert office.status(task)["substate"] == "running"
    assert "its attempt runs on, and no other follows" in office.run("status", task).stdout
    assert office.run("task", "revoke", task).returncode == 0
    eventually(lambda: "killed" in {event for event, _, _ in events(office.status(task))}, "the end of the attempt")
    restart(office, "top")
    assert (office.status(task)["substate"], office.status(task)["attempt"]) == ("queued", 1)
    assert office.run("task", "release", task).returncode == 0
    until_attempt(office, task, attempt=2)
    (folder / "go").touch()
    assert finish(office, task)["attempt"] == 2


def test_members_of_an_array_are_held_moved_and_released(office: Federation, folder: Path) -> None:
    words = ("--set", "kind=array", "--require", '$side eq "left"')
    array = office.submit("--array", "1-5", *words, "--", "sh", "-c", f"until [ -e '{folder}/go' ]; do sleep 0.1; done")
    until_counts(office, array, queued=3, running=2)
    assert office.run("task", "hold", f"{array}.4", f"{array}.5", "--reason", "later").returncode == 0
    assert office.run("task", "hold", f"{array}.1").returncode == 0
    assert "1 is on hold since" in office.run("status", array).stdout
    (folder / "go").touch()
    until_counts(office, array, finished=3, queued=2)
    assert office.status(array)["held"] == 2
    assert f"{array}  3 finished, 2 held" in office.run("status", array).stdout
    assert [member["hold"] is not None for member in office.members(array)] == [False, False, False, True, True]
    done = office.document("task", "release", array)
    assert done["tasks"] == [{"id": array, "at": "origin", "attempts": []}]
    eventually(lambda: office.status(array)["counts"] == {"finished": 5}, array)
    assert [member["attempt"] for member in office.members(array)] == [1] * 5


def test_an_array_that_is_revoked_moved_held_and_released_loses_nothing_and_runs_nothing_twice_at_once(
    office: Federation, folder: Path
) -> None:
    load = Workload(folder=folder, tasks=TASKS)
    array = load.submit(office)
    for number, act in enumerate(("revoke", "hold", "release", "move", "revoke"), start=1):
        # Nothing more is written while the array is on hold.
        eventually(lambda least=number * 10: act == "release" or len(load.written()) > least)  # type: ignore[misc] # noqa: B023
        assert office.run("task", act, array).returncode in {0, 1}
        if act == "hold":
            restart(office, "top")
    assert office.run("wait", array).returncode == 0
    assert set(load.times_written()) == set(range(1, TASKS + 1))
    assert load.doubles() == []
    assert office.status(array)["counts"] == {"finished": TASKS}


def test_what_cannot_be_done_is_refused_with_what_to_do(office: Federation, folder: Path) -> None:
    task, machine = begin(office, folder / "go", name="refused")
    away = other(machine)
    where = f"enter this at top, its origin, or where it runs: `messiahs status {task}` at top says where"
    at_origin = "tasks are held and released at their origin: enter this at top"
    for words, text in (
        (("hold", "top.999"), "no task top.999 is known here"),
        (("release", task), f"{task} is not on hold"),
        (("hold", task, "--module", machine), f"{task}: {at_origin}"),
        (("release", task, "--module", away), f"{task}: {at_origin}"),
        (("revoke", task, "--module", away), f"nothing of {task} runs on the machine of {away}: {where}"),
        (("move", "x/y", "--module", away), "no task x/y is known here"),
        (("hold", f"{task}#2"), f"{task}#2 is not the present attempt, {task}#1: name {task}#1, or {task}"),
    ):
        said = office.run("task", *words)
        assert (said.returncode, said.stdout, said.stderr) == (1, "", f"messiahs: {text}\n")
    assert office.document("status", f"{task}#1")["tasks"] == office.document("status", task)["tasks"]
    assert f"name {task}#1, or {task}" in office.run("status", f"{task}#2").stderr
    said = office.run("task", "hold", "top.999", f"{task}#1", "--quiet")
    assert (said.returncode, said.stdout) == (1, f"{task}\n")
    for wrong in ("a\x1b[2J", 201 * "x"):
        assert office.run("task", "release", task, "--reason", wrong).returncode == 2
    (folder / "go").touch()
    finish(office, task)
    for act in ("revoke", "move", "hold", "release"):
        assert office.run("task", act, task).stderr == f"messiahs: {task} has ended\n"
    waiting = office.submit("--require", '$side eq "nowhere"', "--", "true")
    assert f"nothing of {waiting} runs" in office.run("task", "revoke", waiting).stderr
    assert office.run("cancel", waiting).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_users_act_on_their_own_tasks_and_administrators_on_all(office: Federation, folder: Path) -> None:
    mine, machine = begin(office, folder / "go", name="mine")
    office.folder("top").parent.chmod(0o711)
    endless = f"until [ -e '{folder}/go' ]; do sleep 0.1; done"
    theirs = str(ask_as(office, STRANGER, "submit", "sh", "-c", endless)["id"])
    eventually(lambda: office.status(theirs)["substate"] == "running")
    for act in ("revoke", "move", "hold", "release"):
        assert "belongs to another user: only root" in ask_as(office, STRANGER, "act", mine, act)["error"]
        refused = ask_as(office, STRANGER, "act", theirs, act, module=office.status(theirs)["executed_on"])
        assert f"{theirs} is a task of top: enter this there" in refused["error"]
        # Whether anything of it runs here is not told.
        same = ask_as(office, STRANGER, "act", "top.999", act, module=machine)["error"]
        assert same == refused["error"].replace(theirs, "top.999").replace(
            office.status(theirs)["executed_on"], machine
        )
    assert ask_as(office, STRANGER, "act", theirs, "hold")["attempts"] == [f"{theirs}#1"]
    assert office.run("task", "release", theirs, "--reason", "go on").returncode == 0
    assert ask_as(office, STRANGER, "act", theirs, "revoke")["at"] == "origin"
    until_attempt(office, theirs, attempt=2)
    (folder / "go").touch()
    assert [each for each in events(finish(office, theirs)) if "by hand" in each[0]] == [
        ("hold by hand", 1, ""),
        ("release by hand", 1, "root: go on"),
        ("revoke by hand", 1, ""),
    ]
    assert finish(office, mine)["attempt"] == 1
