"""Ctrl-C during `messiahs run`, with a real process and a real signal."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.client.local_api_peer import Peer, StartPeer

RUNNING = {"id": "left.1", "state": "executing", "substate": "running"}
KILLED = {"id": "left.1", "state": "killed", "signal": 15, "exit_code": None, "cause": "", "text": ""}


SIGNALLED_IN_A_DESTRUCTOR = """
import http.client, os, signal, sys
from messiahs.cli.main import main

awaited = ["/wait", "/cancel"]
asked = []
ask, close = http.client.HTTPConnection.request, http.client.HTTPResponse.close

def asking(connection, method, path, **more):
    ask(connection, method, path, **more)
    asked.append(path)

def closing(response):
    if awaited and any(awaited[0] in path for path in asked):
        awaited.pop(0)
        os.kill(os.getpid(), signal.SIGINT)
    close(response)

http.client.HTTPConnection.request, http.client.HTTPResponse.close = asking, closing
sys.exit(main())
"""
"""The command, with a signal when an answer is finalized after it has asked to wait, and one after the cancel."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(*program: str) -> "subprocess.Popen[bytes]":
        program = program or ("-m", "messiahs.cli.main")
        command = [sys.executable, *program, "run", "--state", str(tmp_path), "--", "sleep", "9"]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def uploading(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    (tmp_path / "data").write_text("x")
    words = ["submit", "--state", str(tmp_path), "--input", str(tmp_path / "data"), "--", "cat", "data"]
    with subprocess.Popen([sys.executable, "-m", "messiahs.cli.main", *words], stderr=subprocess.PIPE) as process:
        yield process
        process.kill()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass within 10 s"
        pause.wait(0.01)


def was_asked(peer: Peer, part: str) -> Callable[[], bool]:
    return lambda: any(part in path for _, path, _ in peer.asked)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_cancels_the_task_and_waits_for_its_end(
    tmp_path: Path, start_peer: StartPeer, started: Callable[[], "subprocess.Popen[bytes]"], number: int
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started()
    until(was_asked(peer, "/wait"))
    process.send_signal(number)
    until(was_asked(peer, "/cancel"))
    peer.by_path["/wait"] = KILLED
    assert process.wait(10) == 130


def test_the_second_signal_leaves_at_once(
    tmp_path: Path, start_peer: StartPeer, started: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started()
    until(was_asked(peer, "/wait"))
    process.send_signal(signal.SIGINT)
    until(was_asked(peer, "/cancel"))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert b"Traceback" not in process.communicate()[1]


def test_no_signal_is_lost_that_comes_in_a_destructor(
    tmp_path: Path, start_peer: StartPeer, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started("-c", SIGNALLED_IN_A_DESTRUCTOR)
    assert process.wait(30) == 130
    until(was_asked(peer, "/cancel"))


def test_a_second_signal_leaves_although_nobody_reads_the_output(
    tmp_path: Path, start_peer: StartPeer, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"x" * 1_000_000, "stderr": b""}
    process = started()
    until(was_asked(peer, "/logs"))
    process.send_signal(signal.SIGINT)
    until(was_asked(peer, "/cancel"))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert b"Fatal" not in process.communicate()[1]


def test_a_signal_during_an_upload_submits_nothing(
    tmp_path: Path, start_peer: StartPeer, request: pytest.FixtureRequest
) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=tmp_path)
    peer.takes_files.clear()
    process = request.getfixturevalue("uploading")
    until(was_asked(peer, "/v1/files/2d"))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert not [path for _, path, _ in peer.asked if path == "/v1/tasks"]
    assert process.stderr.read().strip() == b""
