"""Killing daemons and starters under load: nothing is lost, and no task runs twice at a time."""

from collections import Counter
from pathlib import Path

import pytest

from messiahs.client import ModuleClient, Submission
from tests.live.conftest import Federation
from tests.waiting import eventually

TASKS = 120


def _numbers(shared: Path) -> list[int]:
    file = shared / "numbers"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def _await_numbers(shared: Path, limit: int) -> None:
    eventually(lambda: len(_numbers(shared)) >= limit)


def _kill_daemon(federation: Federation, module: str) -> None:
    before = federation.pid(module, "daemon")
    federation.kill(module, "daemon")
    eventually(lambda: federation.pid(module, "daemon") != before)


def _submit_counting(federation: Federation, shared: Path, *options: str) -> str:
    # The tasks of each module have an account of their own.
    script = f"sleep 0.05; echo $MESSIAHS_ARRAY_INDEX >> {shared}/numbers"
    words = (*options, "--array", f"1-{TASKS}", "--", "sh", "-c", script)
    return federation.submit(*words)


@pytest.mark.parametrize("killed", [("left",), ("right",), ("left", "right")])
def test_a_killed_daemon_loses_and_repeats_nothing(own_pair: Federation, shared: Path, killed: tuple[str, ...]) -> None:
    array = _submit_counting(own_pair, shared)
    for limit in (TASKS // 5, 2 * TASKS // 5, 3 * TASKS // 5):
        _await_numbers(shared, limit)
        for module in killed:
            _kill_daemon(own_pair, module)
    assert own_pair.run("wait", array).returncode == 0
    assert Counter(_numbers(shared)) == dict.fromkeys(range(1, TASKS + 1), 1)
    members = own_pair.members(array)
    assert {member["attempt"] for member in members} == {1}


def test_a_killed_starter_ends_its_attempts_and_the_next_ones_run(own_pair: Federation, shared: Path) -> None:
    script = f"echo $MESSIAHS_ATTEMPT >> {shared}/numbers; while [ ! -e {shared}/go ]; do sleep 0.05; done"
    task = own_pair.submit("--require", '$side eq "right"', "--", "sh", "-c", script)
    eventually(lambda: _numbers(shared) == [1])
    own_pair.kill("right", "starter")
    eventually(lambda: _numbers(shared) == [1, 2])
    (shared / "go").touch()
    assert own_pair.run("wait", task).returncode == 0
    status = own_pair.status(task)
    assert (status["attempt"], status["state"]) == (2, "finished")
    assert "lost" in [step["event"] for step in status["history"]]


def test_waiting_survives_a_restart_of_the_module(own_pair: Federation, shared: Path) -> None:
    script = f"while [ ! -e {shared}/go ]; do sleep 0.05; done; echo done"
    task = own_pair.submit("--require", '$side eq "right"', "--", "sh", "-c", script)
    waiting = own_pair.start("wait", task)
    eventually(lambda: own_pair.status(task)["substate"] == "running")
    _kill_daemon(own_pair, "left")
    (shared / "go").touch()
    waiting.communicate()
    assert waiting.returncode == 0
    assert own_pair.run("logs", task).stdout == "done\n"


def test_down_leaves_no_process_and_up_resumes(own_pair: Federation, shared: Path) -> None:
    script = f"echo $MESSIAHS_ATTEMPT >> {shared}/numbers; while [ ! -e {shared}/go ]; do sleep 0.05; done"
    task = own_pair.submit("--", "sh", "-c", script)
    eventually(lambda: _numbers(shared) == [1])
    pids = [own_pair.pid(module, process) for module in ("left", "right") for process in ("daemon", "starter")]
    own_pair.down()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    own_pair.up()
    (shared / "go").touch()
    assert own_pair.run("wait", task).returncode == 0
    assert own_pair.status(task)["attempt"] == 2
    assert _numbers(shared) == [1, 2]


def test_a_repeated_submit_is_one(own_pair: Federation) -> None:
    submission = Submission(argv=("true",))
    with ModuleClient(own_pair.state / "pair" / "left.sock") as client:
        first = client.submit(submission)
        own_pair.kill("left", "daemon")
        assert client.submit(submission) == first
        assert client.wait(first)["state"] == "finished"


def test_no_more_members_run_at_once_than_their_user_allows_across_kills(own_pair: Federation, shared: Path) -> None:
    script = (
        f"mkdir {shared}/runs.$MESSIAHS_ARRAY_INDEX; ls -d {shared}/runs.* | wc -l >> {shared}/beside; sleep 0.05; "
        f"rmdir {shared}/runs.$MESSIAHS_ARRAY_INDEX; echo $MESSIAHS_ARRAY_INDEX >> {shared}/numbers"
    )
    array = own_pair.submit("--array", "0-195:5%2", "--", "sh", "-c", script)
    for limit in (10, 20):
        _await_numbers(shared, limit)
        _kill_daemon(own_pair, "left")
    assert own_pair.run("wait", array).returncode == 0
    assert Counter(_numbers(shared)) == dict.fromkeys(range(0, 200, 5), 1)
    assert {int(line) for line in (shared / "beside").read_text().splitlines()} <= {1, 2}
    assert own_pair.status(array)["at_once"] == 2
