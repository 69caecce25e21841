"""Killed clients and invalid files: clear messages, and nothing is lost."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.conftest import ROOT, Federation, brought_up, with_processes
from tests.waiting import eventually

ON_RIGHT = ("--require", '$side eq "right"')


def test_a_client_killed_during_a_submit_can_repeat_it(pair: Federation, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(400_000_000)
    words = (
        "submit",
        "--quiet",
        "--key",
        "the-same",
        "--input",
        str(large),
        *ON_RIGHT,
        "--",
        "stat",
        "-c",
        "%s",
        "large",
    )
    first = pair.start(*words)
    drafts = list(Path("/var/tmp").glob("messiahs-*"))
    assert drafts or pair.folder("left").exists()
    first.kill()
    first.communicate()
    task = pair.run(*words).stdout.strip()
    assert pair.run(*words).stdout.strip() == task
    assert pair.run("wait", task).returncode == 0
    assert pair.run("logs", task).stdout == "400000000\n"


def test_a_client_killed_during_a_fetch_can_repeat_it(pair: Federation, tmp_path: Path) -> None:
    task = pair.submit("--output", "large", "--", "sh", "-c", "head -c 60000000 /dev/zero > large")
    assert pair.run("wait", task).returncode == 0
    place = tmp_path / "results"
    first = pair.start("fetch", task, "--into", str(place))
    eventually(lambda: place.exists() and any(place.iterdir()))
    first.kill()
    first.communicate()
    assert pair.run("fetch", task, "--into", str(place)).returncode == 0
    assert [(file.name, file.stat().st_size) for file in place.iterdir() if file.suffix == ""] == [
        ("large", 60_000_000)
    ]


def test_a_missing_input_is_reported_before_anything_is_submitted(pair: Federation, tmp_path: Path) -> None:
    before = len(pair.document("status")["tasks"])
    done = pair.run("run", "--input", str(tmp_path / "nowhere"), "--", "true")
    assert done.returncode != 0
    assert "nowhere" in done.stderr
    assert len(pair.document("status")["tasks"]) == before


def test_a_missing_declared_output_aborts_the_task_and_keeps_the_exit_code(pair: Federation) -> None:
    done = pair.run("run", "--output", "promised", "--", "true")
    assert done.returncode == 125
    last = pair.document("status")["tasks"][-1]
    assert (last["state"], last["cause"], last["exit_code"]) == ("aborted", "output_missing", 0)


def test_a_module_that_is_not_running_is_reported_with_how_to_start_it(tmp_path: Path) -> None:
    nobody = Federation(topology=ROOT / "topologies" / "pair.yaml", name="pair", state=tmp_path, module="left")
    done = nobody.run("status")
    assert done.returncode == 1
    assert "messiahs up" in done.stderr


def test_garbage_at_the_port_of_a_module_is_harmless(pair: Federation) -> None:
    host, port = pair.document("module", "list")["modules"][0]["address"].rsplit(":", 1)
    garbage = "import socket, os; s = socket.create_connection(('{}', {})); s.sendall(os.urandom(100000)); s.close()"
    for _ in range(20):
        subprocess.run(["python3", "-c", garbage.format(host, port)], capture_output=True, check=False)
    assert pair.run("run", *ON_RIGHT, "--", "echo", "well").stdout == "well\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_a_users_tasks_are_hidden_from_other_users(pair: Federation) -> None:
    task = pair.submit("--", "echo", "private")
    assert pair.run("wait", task).returncode == 0
    (pair.state / "pair").chmod(0o711)
    ways = (("GET", "logs"), ("POST", "cancel"), ("POST", "retry"), ("GET", "outputs"))

    def codes(uid: int) -> list[int]:
        paths = [(method, f"/v1/tasks/{task}/{what}") for method, what in ways]
        return [pair.status_code_for(uid, method, path=path, module="left") for method, path in paths]

    assert codes(0) == [200, 200, 200, 200]
    assert codes(65533) == [403, 403, 403, 403]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_another_account_sees_the_modules_that_run(pair: Federation) -> None:
    folder = pair.state / "pair"
    for opened in (folder, *folder.parents):
        if opened.stat().st_mode & 0o055 != 0o055:
            opened.chmod(0o755)
    script = (
        "import os, sys\n"
        "from messiahs.cli import main\n"
        "from messiahs.cli.module import commands\n"
        "from messiahs.config import settings\n"
        "from messiahs.daemon.process import pid_files\n"
        "os.setgid(65533); os.setuid(65533); sys.exit(main.main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", script, "module", "list", "--state", str(pair.state), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(pair.run("module", "list", "--json").stdout)


@pytest.mark.parametrize("offset", ["9" * 5_000, "-1", "%D9%A1", "x"])
def test_an_offset_that_is_not_a_number_of_bytes_is_refused(pair: Federation, offset: str) -> None:
    task = pair.submit("--output", "out", "--", "touch", "out")
    assert pair.run("wait", task).returncode == 0
    for what in ("logs", "outputs/out"):
        path = f"/v1/tasks/{task}/{what}?offset={offset}"
        assert pair.status_code_for(0, "GET", path=path, module="left") == 400


@pytest.mark.parametrize(
    "spoiled",
    [
        {"outputs": ["a\0b"]},
        {"outputs": ["../x"]},
        {"inputs": [{"name": "a\0b", "sha256": "0" * 64, "size": 1}]},
        {"inputs": [{"name": "a", "sha256": "0" * 64, "size": -7}]},
        {"inputs": [{"name": "a", "sha256": "0" * 64, "size": 10**30}]},
        {"deadline_s": 10**18},
        {"retries": 10**30},
        {"retries": -1},
        {"members": 10**9},
        {"tdv": {"cpus": 0}},
        {"tdv": {"mem": 10**30}},
        {"name": "\u001b[2J"},
        {"argv": []},
        {"argv": ["a\ud800"]},
    ],
)
def test_an_impossible_submit_is_refused_and_harmless(pair: Federation, spoiled: dict[str, object]) -> None:
    asked = http.client.HTTPConnection("module")
    asked.sock = socket.socket(socket.AF_UNIX)
    asked.sock.connect(str(pair.state / "pair" / "left.sock"))
    asked.request("POST", "/v1/tasks", json.dumps({"key": "spoiled", "argv": ["true"], **spoiled}))
    answer = asked.getresponse()
    answered = json.loads(answer.read())
    asked.close()
    assert answer.status == 400
    assert answered["error"]
    before = pair.pid("left", "daemon")
    assert pair.run("run", "--", "true").returncode == 0
    assert pair.pid("left", "daemon") == before


def test_modules_started_by_a_process_that_ignores_the_ends_of_its_children_read_exit_codes(tmp_path: Path) -> None:
    topology = with_processes("pair", tmp_path / "pair.yaml")
    made = Federation(topology=topology, name="pair", state=tmp_path / "state", module="left")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with brought_up(made):
            signal.signal(signal.SIGCHLD, before)
            assert made.run("run", *ON_RIGHT, "--", "sh", "-c", "exit 7").returncode == 7
    finally:
        signal.signal(signal.SIGCHLD, before)
