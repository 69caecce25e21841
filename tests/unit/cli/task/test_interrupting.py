"""Ctrl-C during `messiahs run`, with a real process and a real signal."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands import Command
from tests.unit.client.local_api_peer import Peer, StartPeer
from tests.waiting import eventually

pytestmark = pytest.mark.processes

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

SIGNALLED_IN_ANOTHER_THREAD = """
import http.client, signal, sys, threading
from messiahs.cli.main import main

waits = []
ask = http.client.HTTPConnection.request

def asking(connection, method, path, **more):
    if "/wait" in path:
        waits.append(path)
        if len(waits) == 100:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    ask(connection, method, path, **more)

http.client.HTTPConnection.request = asking
sys.exit(main())
"""
"""The command, with a signal that interrupts the thread that waits for the task; the main thread has nothing to do."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    processes: list[subprocess.Popen[bytes]] = []
    # The tests themselves may run below `nohup`.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def start(*program: str) -> "subprocess.Popen[bytes]":
        program = program or ("-m", "messiahs.cli.main")
        command = [sys.executable, *program, "run", "--state", str(tmp_path), "--", "sleep", "9"]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
        )
        return processes[-1]

    yield start
    signal.signal(signal.SIGHUP, before)
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def started_into_a_pipe(tmp_path: Path) -> Iterator[Callable[[], tuple["subprocess.Popen[bytes]", int]]]:
    """Start the command with stdout and stderr on one pipe, as `2>&1 |` does, and return the read end as well."""
    processes: list[subprocess.Popen[bytes]] = []

    def start() -> tuple["subprocess.Popen[bytes]", int]:
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "messiahs.cli.main", "run", "--state", str(tmp_path), "--", "sleep", "9"]
        processes.append(subprocess.Popen(command, stdout=writer, stderr=writer))
        os.close(writer)
        return processes[-1], reader

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def uploading(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    (tmp_path / "data").write_text("x")
    words = ["submit", "--state", str(tmp_path), "--input", str(tmp_path / "data"), "--", "cat", "data"]
    with subprocess.Popen([sys.executable, "-m", "messiahs.cli.main", *words], stderr=subprocess.PIPE) as process:
        yield process
        process.kill()


def was_asked(peer: Peer, part: str) -> Callable[[], bool]:
    return lambda: any(part in path for _, path, _ in peer.asked)


def is_full(reader: int) -> bool:
    """Return whether a pipe is full."""
    writer = os.open(f"/proc/self/fd/{reader}", os.O_WRONLY)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_cancels_the_task_and_waits_for_its_end(
    tmp_path: Path, start_peer: StartPeer, started: Callable[[], "subprocess.Popen[bytes]"], number: int
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started()
    eventually(was_asked(peer, "/wait"))
    process.send_signal(number)
    eventually(was_asked(peer, "/cancel"))
    peer.by_path["/wait"] = KILLED
    assert process.wait(10) == 130
    name = signal.Signals(number).name
    by = "; Ctrl-C" if number == signal.SIGINT else f" after {name}; {name}"
    said = process.communicate()[1].decode()
    assert f"cancelling left.1{by} again: stop waiting (it is ended anyway)" in said


def test_the_second_signal_returns_at_once(
    tmp_path: Path, start_peer: StartPeer, started: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started()
    eventually(was_asked(peer, "/wait"))
    process.send_signal(signal.SIGINT)
    eventually(was_asked(peer, "/cancel"))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert b"Traceback" not in process.communicate()[1]


def test_a_signal_during_a_destructor_is_not_lost(
    tmp_path: Path, start_peer: StartPeer, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started("-c", SIGNALLED_IN_A_DESTRUCTOR)
    assert process.wait(30) == 130
    eventually(was_asked(peer, "/cancel"))


def test_a_signal_that_interrupts_another_thread_is_not_lost(
    tmp_path: Path, start_peer: StartPeer, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process = started("-c", SIGNALLED_IN_ANOTHER_THREAD)
    eventually(was_asked(peer, "/cancel"))
    peer.by_path["/wait"] = KILLED
    assert process.wait(30) == 130


def test_a_second_signal_returns_although_the_output_is_not_read(
    tmp_path: Path, start_peer: StartPeer, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"x" * 1_000_000, "stderr": b""}
    process = started()
    eventually(was_asked(peer, "/logs"))
    process.send_signal(signal.SIGINT)
    eventually(was_asked(peer, "/cancel"))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert b"Fatal" not in process.communicate()[1]


@pytest.mark.parametrize("logs", [{"stdout": b"x", "stderr": b"x"}, {"stdout": b"x", "stderr": b""}])
def test_a_reader_that_closes_ends_the_task_although_it_also_read_our_messages(
    tmp_path: Path,
    start_peer: StartPeer,
    started_into_a_pipe: Callable[[], tuple["subprocess.Popen[bytes]", int]],
    logs: dict[str, bytes],
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = logs
    process, reader = started_into_a_pipe()
    os.close(reader)
    eventually(was_asked(peer, "/cancel"))
    assert process.poll() is None
    peer.by_path["/wait"] = KILLED
    assert process.wait(30) == 141


def test_a_reader_that_closes_is_named_as_the_reason_and_not_an_interrupt(
    tmp_path: Path, start_peer: StartPeer
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"x", "stderr": b""}
    command = [sys.executable, "-m", "messiahs.cli.main", "run", "--state", str(tmp_path), "--", "sleep", "9"]
    with Command(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        eventually(was_asked(peer, "/cancel"))
        peer.by_path["/wait"] = KILLED
        assert process.wait(30) == 141
        assert process.stderr.read() == "messiahs: the reader of stdout has closed the pipe: cancelling left.1\n"


def test_output_to_a_full_disk_ends_the_task(tmp_path: Path, start_peer: StartPeer) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"x", "stderr": b""}
    command = [sys.executable, "-m", "messiahs.cli.main", "run", "--state", str(tmp_path), "--", "sleep", "9"]
    with (
        Path("/dev/full").open("wb") as full,
        Command(command, stdout=full, stderr=subprocess.PIPE, text=True) as process,
    ):
        eventually(was_asked(peer, "/cancel"))
        peer.by_path["/wait"] = KILLED
        assert process.wait(30) == 141
        assert process.stderr is not None
        assert sorted(process.stderr.read().splitlines()) == [
            "messiahs: the output is lost: cancelling left.1",
            "messiahs: the task's stdout cannot be written: [Errno 28] No space left on device",
        ]


def test_a_message_about_a_waiting_task_may_have_no_reader(
    tmp_path: Path, start_peer: StartPeer, started_into_a_pipe: Callable[[], tuple["subprocess.Popen[bytes]", int]]
) -> None:
    peer = start_peer(state=tmp_path)
    waits = RUNNING | {"reasons": [{"module": "left", "code": "no_candidate"}]}
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": waits, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    process, reader = started_into_a_pipe()
    os.close(reader)
    eventually(lambda: sum("/wait" in path for _, path, _ in peer.asked) > 1)
    peer.by_path["/wait"] = RUNNING | {"state": "finished", "exit_code": 3}
    assert process.wait(30) == 3


def test_a_second_signal_returns_although_our_messages_are_not_read(
    tmp_path: Path, start_peer: StartPeer, started_into_a_pipe: Callable[[], tuple["subprocess.Popen[bytes]", int]]
) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/cancel": {"id": "left.1"}, "/wait": RUNNING, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"x" * 1_000_000, "stderr": b""}
    process, reader = started_into_a_pipe()
    eventually(lambda: is_full(reader))
    process.send_signal(signal.SIGINT)
    eventually(was_asked(peer, "/cancel"))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    os.close(reader)


def test_a_signal_during_an_upload_submits_nothing(
    tmp_path: Path, start_peer: StartPeer, request: pytest.FixtureRequest
) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=tmp_path)
    peer.takes_files.clear()
    process = request.getfixturevalue("uploading")
    eventually(was_asked(peer, "/v1/files/2d"))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert not [path for _, path, _ in peer.asked if path == "/v1/tasks"]
    assert process.stderr.read().strip() == b""
