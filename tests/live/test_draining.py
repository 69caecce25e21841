"""A drained module takes nothing new, loses nothing, and its tasks run elsewhere, whatever happens meanwhile."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.live.conftest import Federation
from tests.live.two_machines import begin, finish, folder, machines_of, office, until_machines
from tests.live.workload import HARMLESS, Workload, kill_process, what_befell
from tests.waiting import PATIENCE_SECONDS, eventually

__all__ = ["folder", "office"]

TASKS = 200


@pytest.fixture(autouse=True)
def _undrained(office: Federation) -> Iterator[None]:
    yield
    office.run("module", "undrain", "--module", "left")
    until_machines(office, 2)


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "killed in the middle"])
def test_a_module_that_is_drained_under_load_loses_and_repeats_nothing(
    office: Federation, folder: Path, *, is_killed: bool
) -> None:
    load = Workload(folder=folder, tasks=TASKS)
    array = load.submit(office)
    eventually(lambda: len(load.written()) > TASKS // 5)
    drained = office.start("module", "drain", "--module", "left", "--reason", "a new disk")
    if is_killed:
        for _ in range(3):
            kill_process(office, "left", process="daemon")
    out, err = drained.communicate(timeout=PATIENCE_SECONDS)
    assert (drained.returncode, out.splitlines()[-1]) == (0, "left is drained: it is empty"), err
    assert office.document("module", "tasks", "--module", "left")["attempts"] == []
    assert office.run("wait", array).returncode == 0
    assert load.times_written() == dict.fromkeys(range(1, TASKS + 1), 1)
    assert load.doubles() == []
    assert what_befell(office, array) <= HARMLESS
    assert "left" in machines_of(office, array)
    until_machines(office, 1)
    assert machines_of(office, office.submit("--array", "1-4", "--", "true")) <= {"", "right"}


def test_a_drain_is_shown_with_its_reason_and_survives_a_kill(office: Federation, folder: Path) -> None:
    task, _ = begin(office, folder / "go", at="left", name="shown")
    done = office.document("module", "drain", "--module", "left", "--reason", "a new disk", "--no-wait")
    assert done["drain"]["left"]["attempts"] == 1
    pid = office.pid("left", "daemon")
    kill_process(office, "left", process="daemon")
    eventually(lambda: office.pid("left", "daemon") != pid)
    with office.client("left") as client:
        assert client.drain_state()["drain"]["reason"] == "a new disk"
        assert client.module()["drain"]["empty"] is False
    assert "left: drained since" in office.run("module", "list").stdout
    waiting = office.submit("--module", "left", "--require", '$side eq "left"', "--", "true")
    eventually(lambda: "a new disk" in str(office.status(waiting)["reasons"]), "the reason")
    (folder / "go").touch()
    assert finish(office, task)["attempt"] == 1
    assert office.run("module", "drain", "--module", "left").returncode == 0
    assert office.run("module", "undrain", "--module", "left").stdout == "left takes work\n"
    assert finish(office, waiting)["executed_on"] == "left"


def test_until_an_announced_maintenance_the_machine_takes_what_ends_before(office: Federation) -> None:
    tomorrow = (datetime.now(UTC).astimezone() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    words = ("module", "drain", "--module", "left", "--from", tomorrow, "--reason", "a new roof")
    assert office.run(*words).stdout.startswith("left is away for maintenance from ")
    assert "left: away for maintenance from" in office.run("module", "list").stdout
    assert "a new roof" in office.run("status", "--module", "left").stderr
    there = ("--module", "left", "--require", '$side eq "left"')
    assert finish(office, office.submit(*there, "--time", "1h", "--", "true"))["executed_on"] == "left"
    assert finish(office, office.submit(*there, "--", "true"))["executed_on"] == "left"
    long = office.submit(*there, "--time", "25h", "--", "true")
    eventually(lambda: "by their --time" in str(office.status(long)["reasons"]), "the reason")
    assert "a new roof" in office.run("explain", long, "--module", "left").stdout
    assert finish(office, office.submit("--module", "left", "--time", "25h", "--", "true"))["executed_on"] == "right"
    assert office.run("module", "drain", "--module", "left", "--from", "2020-01-01").returncode == 2
    assert office.run("module", "undrain", "--module", "left").returncode == 0
    assert finish(office, long)["executed_on"] == "left"


def test_what_runs_at_the_deadline_is_revoked_and_runs_elsewhere(office: Federation, folder: Path) -> None:
    tasks = [begin(office, folder / "go", name=name)[0] for name in ("one", "two", "three", "four")]
    here = [task for task in tasks if office.status(task)["executed_on"] == "left"]
    assert here
    out = office.run("module", "drain", "--module", "left", "--deadline", "1s", "--reason", "fire").stdout
    assert out.splitlines()[-1] == "left is drained: it is empty"
    (folder / "go").touch()
    for task in here:
        ended = finish(office, task)
        assert (ended["attempt"], ended["executed_on"]) == (2, "right")
        assert any("fire" in entry["text"] for entry in ended["history"])


def test_an_interrupted_command_leaves_the_drain_and_says_so(office: Federation, folder: Path) -> None:
    task, _ = begin(office, folder / "go", at="left", name="interrupted")
    command = office.start("module", "drain", "--module", "left")
    assert command.stdout is not None
    assert "left drains: 1 attempt" in command.stdout.readline()
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=PATIENCE_SECONDS)
    assert command.returncode == 130
    assert "left stays drained: `messiahs module undrain --module left`" in err
    with office.client("left") as client:
        assert client.drain_state()["drain"] is not None
    (folder / "go").touch()
    finish(office, task)


def test_a_module_without_users_elsewhere_places_its_own_tasks_at_others(office: Federation) -> None:
    assert office.run("module", "drain", "--module", "left").returncode == 0
    task = office.submit("--module", "left", "--", "true")
    assert finish(office, task)["executed_on"] == "right"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
@pytest.mark.parametrize(
    "path", ["/v1/drain", "/v1/neighbors", "/v1/neighbors/remove", "/v1/neighbors/leave", "/v1/policy"]
)
def test_only_the_modules_own_user_and_root_may_change_it(office: Federation, path: str) -> None:
    office.folder("left").parent.chmod(0o711)
    assert office.status_code_for(65533, "POST", path=path, module="left") == 403
    assert office.status_code_for(0, "POST", path=path, module="left") == 400
