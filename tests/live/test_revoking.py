"""An administrator revokes tasks of others at the machine where they run: they end there, and run elsewhere."""

import os
from collections.abc import Iterator

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

TOPOLOGY = """version: 1
federation: host
defaults: {policy: host.policy, update_period: 500ms}
systems:
  top:   {}
  left:  {parent: top, machine: MACHINE}
  right: {parent: top, machine: MACHINE}
"""
POLICY = 'policy "host"; accept from any { limit 9 tasks; } timeouts { kill_grace 20s; }'
POLITE = """
[ "$MESSIAHS_ATTEMPT" = 1 ] || { echo elsewhere; exit 0; }
trap 'exit 0' TERM
while :; do sleep 0.1; done
"""
STUBBORN = POLITE.replace("'exit 0'", "''")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share two machines of one slot among the tests of this file."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "host.yaml").write_text(TOPOLOGY.replace("MACHINE", fixed_machine()))
    (folder / "host.policy").write_text(POLICY)
    made = Federation(topology=folder / "host.yaml", name="host", state=folder / "state", module="top")
    with brought_up(made):
        yield made


def begin(host: Federation, script: str, *, name: str) -> tuple[str, str]:
    """Submit a task, wait until it runs, and return its id and its machine."""
    task = host.submit("--set", f"kind={name}", "--", "sh", "-c", script)
    eventually(lambda: host.status(task)["substate"] == "running")
    return task, host.status(task)["executed_on"]


def finish(host: Federation, task: str) -> dict[str, object]:
    eventually(lambda: host.status(task)["state"] == "finished")
    return host.status(task)


def test_a_revoked_task_leaves_with_the_grace_and_runs_elsewhere_with_the_reason_in_its_history(
    host: Federation,
) -> None:
    task, machine = begin(host, POLITE, name="polite")
    (listed,) = host.document("module", "tasks", "--module", machine)["attempts"]
    assert (listed["attempt"], listed["origin"], listed["substate"]) == (f"{task}#1", "top", "running")
    header, line = host.run("module", "tasks", "--module", machine).stdout.splitlines()
    assert header.split() == ["ATTEMPT", "STATE", "USER", "VIA", "SLOTS", "SINCE"]
    assert line.split()[:2] == [f"{task}#1", "running"]
    assert host.run("module", "tasks", "--module", machine, "--quiet").stdout == f"{task}#1\n"
    done = host.run("module", "revoke", task, "--module", machine, "--reason", "the room is painted")
    assert (done.returncode, done.stdout) == (0, f"{task}#1 is being vacated\n")
    ended = finish(host, task)
    assert ended["attempt"] == 2
    assert ended["executed_on"] != machine
    history = ended["history"]
    assert isinstance(history, list)
    vacated = [entry for entry in history if entry["event"] == "vacated"]
    assert [(entry["attempt"], entry["text"]) for entry in vacated] == [(1, "the room is painted")]
    assert host.document("module", "tasks", "--module", machine)["attempts"] == []


def test_a_task_that_does_not_leave_is_killed(host: Federation) -> None:
    task, machine = begin(host, STUBBORN, name="stubborn")
    done = host.document("module", "revoke", f"{task}#1", "--module", machine, "--kill")
    assert done["revoked"] == [f"{task}#1"]
    ended = finish(host, task)
    assert ended["attempt"] == 2
    assert ended["executed_on"] != machine


def test_a_task_of_another_machine_cannot_be_revoked(host: Federation) -> None:
    done = host.run("module", "revoke", "top.999", "--module", "left")
    assert (done.returncode, "nothing of top.999 runs on this machine" in done.stderr) == (1, True)
    done = host.run("module", "revoke", "top.999", "--module", "left", "--reason", "a\x1b[2J")
    assert (done.returncode, "control characters" in done.stderr) == (2, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/attempts"), ("POST", "/v1/attempts/revoke")])
def test_only_the_modules_own_user_and_root_may_see_and_revoke(host: Federation, method: str, path: str) -> None:
    host.folder("left").parent.chmod(0o711)
    assert host.status_code_for(65533, method, path=path, module="left") == 403
    assert host.status_code_for(0, method, path=path, module="left") == (200 if method == "GET" else 400)
