"""Files that `up` writes, its lock, and the end of processes."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.cli.federation.deployment import federation_directory, lock_federation, prepare
from messiahs.cli.main import main
from messiahs.config.settings import load_settings
from messiahs.config.topology.reading import load_topology
from messiahs.core.model.instants import MILLISECOND
from messiahs.daemon.process.pid_files import PID_FILE, end_processes, recorded_process, recorded_processes
from messiahs.errors import ClientError
from messiahs.executor.linux.processes import identity_of
from tests.waiting import eventually

TRIO = Path(__file__).parents[4] / "topologies" / "trio.yaml"
Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return federation_directory(tmp_path, "trio")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python programs that print a word when they are ready."""
    processes: list[subprocess.Popen[bytes]] = []

    def run(program: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-uc", program]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def test_every_module_gets_settings_that_match_those_of_its_neighbors(directory: Path) -> None:
    made = {settings.name: settings for settings in prepare(load_topology(TRIO), directory)}
    leaf = load_settings(directory / "leaf" / "settings.json")
    assert leaf == made["leaf"]
    assert leaf.neighbors[0].address == made["middle"].listen
    assert [link.address for link in made["root"].neighbors] == [None]
    assert leaf.update_period_ns == 500 * MILLISECOND


def test_keys_are_for_their_owner_alone(directory: Path) -> None:
    prepare(load_topology(TRIO), directory)
    keys = [directory / "tls" / "root.key", *directory.glob("*/key.pem")]
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600] * 4
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_ports_and_root_are_kept_for_the_next_run(directory: Path) -> None:
    first = prepare(load_topology(TRIO), directory)
    root = (directory / "tls" / "root.pem").read_bytes()
    second = prepare(load_topology(TRIO), directory)
    assert [settings.listen for settings in first] == [settings.listen for settings in second]
    assert (directory / "tls" / "root.pem").read_bytes() == root


def test_a_module_for_a_group_that_is_not_there_is_refused_before_anything_starts(
    directory: Path, tmp_path: Path
) -> None:
    file = tmp_path / "host.yaml"
    file.write_text('version: 1\nfederation: host\nsystems:\n  lab: {users: "group:no-such-group"}\n')
    with pytest.raises(ClientError, match=r"`lab` has `users: group:no-such-group`.*groupadd no-such-group"):
        prepare(load_topology(file), directory)
    assert not (directory / "lab" / "settings.json").exists()


def test_a_port_taken_by_another_process_is_replaced(directory: Path) -> None:
    prepare(load_topology(TRIO), directory)
    ports = json.loads((directory / "ports.json").read_bytes())
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports["leaf"]))
        other.listen()
        listens = {settings.name: settings.listen for settings in prepare(load_topology(TRIO), directory)}
    assert listens["leaf"] != f"127.0.0.1:{ports['leaf']}"
    assert listens["root"] == f"127.0.0.1:{ports['root']}"


def test_a_federation_cannot_be_up_twice(tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = lock_federation(directory)
    assert main(["up", str(TRIO), "--state", str(tmp_path), "--detach"]) == 1
    assert "`trio` is already up" in capsys.readouterr().err
    os.close(lock)
    os.close(lock_federation(directory))


@pytest.mark.processes
def test_down_ends_an_up_that_holds_the_lock_and_has_not_recorded_itself_yet(directory: Path, start: Start) -> None:
    program = f"""
import fcntl, os, pathlib, signal, sys
from messiahs.daemon.process.pid_files import PID_FILE, record_this_process
directory = pathlib.Path({str(directory)!r})
fcntl.flock(os.open(directory / "up.lock", os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
print("ready")
sys.stdin.readline()
record_this_process(directory / PID_FILE)
signal.pause()
"""
    beginning = start(program)
    assert beginning.stdin is not None
    command = [sys.executable, "-m", "messiahs.cli.main", "down", str(TRIO), "--state", str(directory.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as down:
        try:
            _await_open(down, directory / "up.lock")
            # By now it has looked for a pid file, and found none.
            beginning.stdin.write(b"\n")
            beginning.stdin.flush()
            assert down.communicate(timeout=60)[0] == "trio: down\n"
        finally:
            down.kill()
    assert beginning.wait(5) == -signal.SIGTERM


def _await_open(process: "subprocess.Popen[str]", file: Path) -> None:
    def has_opened() -> bool:
        assert process.poll() is None, "it ended before it opened the file"
        for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
            with suppress(OSError):
                if descriptor.readlink() == file:
                    return True
        return False

    eventually(has_opened)


def test_an_up_that_fails_leaves_no_record(tmp_path: Path, directory: Path) -> None:
    (directory / "root").write_text("no folder")
    assert main(["up", str(TRIO), "--state", str(tmp_path), "--detach"]) == 1
    assert not (directory / PID_FILE).exists()
    # This process does not hold the lock.
    os.close(lock_federation(directory))


@pytest.mark.processes
def test_down_during_up_leaves_no_process(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "messiahs.cli.main"]
    place = [str(TRIO), "--state", str(tmp_path)]
    with subprocess.Popen([*words, "up", *place, "--detach"], stderr=subprocess.PIPE, text=True) as up:
        try:
            eventually(lambda: (tmp_path / "trio" / PID_FILE).exists() or up.poll() is not None)
            done = subprocess.run([*words, "down", *place], capture_output=True, text=True, check=False, timeout=120)
            assert (done.returncode, done.stdout) == (0, "trio: down\n")
            # It ends with 0 if all was up before `down` looked.
            up.wait(60)
        finally:
            up.kill()
            subprocess.run([*words, "down", *place], capture_output=True, check=False, timeout=120)
    assert recorded_process(tmp_path / "trio" / PID_FILE) is None
    assert recorded_processes(tmp_path / "trio") == ()
    os.close(lock_federation(tmp_path / "trio"))


def _brought_up(directory: Path, file: Path) -> None:
    file.write_bytes(TRIO.read_bytes())
    prepare(load_topology(file), directory, file=file)


@pytest.mark.processes
@pytest.mark.parametrize(
    "broken",
    [None, "", "}{ no YAML", "version: 1\nfederation: trio\nsystems: {a: {parent: nobody}}\n", "federation: other\n"],
)
def test_down_works_when_the_topology_file_is_invalid_or_missing(
    broken: str | None, tmp_path: Path, directory: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    _brought_up(directory, file)
    file.unlink()
    if broken is not None:
        file.write_text(broken)
    left = start("import signal; print('ready'); signal.pause()")
    identity = identity_of(left.pid)
    assert identity is not None
    (directory / "leaf" / "starter.pid").write_text(json.dumps({"pid": identity.pid, "started": identity.started}))
    assert main(["down", str(file), "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "trio: down\n"
    assert left.wait(5) == -signal.SIGTERM


def test_down_with_an_invalid_file_under_another_name_uses_the_federation_that_it_names(
    tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _brought_up(directory, tmp_path / "mine.yaml")
    (tmp_path / "moved.yaml").write_text('version: 1\nfederation: "trio"  # ours\nsystems: [}\n')
    assert main(["down", str(tmp_path / "moved.yaml"), "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "trio: nothing was running\n"


def test_down_with_an_invalid_file_of_an_unknown_federation_reports_its_problems_and_the_known_ones(
    tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _brought_up(directory, tmp_path / "mine.yaml")
    (tmp_path / "broken.yaml").write_text("version: 1\nfederation: other\nsystems: {a: {parent: nobody}}\n")
    assert main(["down", str(tmp_path / "broken.yaml"), "--state", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert "broken.yaml:3:" in printed
    assert "this file does not identify the federation to end; known here: trio" in printed


def test_down_with_a_missing_file_says_how_to_name_a_federation_of_modules_that_run_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "lab" / "leaf"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text("{}")
    assert main(["down", str(tmp_path / "none.yaml"), "--state", str(tmp_path)]) == 1
    assert "known here: lab; a file with the line `federation: lab` names it" in capsys.readouterr().err


def test_modules_left_by_a_killed_supervisor_must_be_ended_first(directory: Path) -> None:
    own = identity_of(os.getpid())
    assert own is not None
    (directory / "leaf").mkdir()
    (directory / "leaf" / "daemon.pid").write_text(json.dumps({"pid": own.pid, "start_time": own.started}))
    with pytest.raises(ClientError, match=rf"still run \(processes {own.pid}\)"):
        lock_federation(directory)


def test_a_pid_file_of_an_earlier_process_with_the_same_number_is_ignored(tmp_path: Path) -> None:
    own = identity_of(os.getpid())
    assert own is not None
    file = tmp_path / "daemon.pid"
    file.write_text(json.dumps({"pid": own.pid, "start_time": own.started}))
    assert recorded_process(file) == own
    file.write_text(json.dumps({"pid": own.pid, "start_time": own.started - 1}))
    assert recorded_process(file) is None


@pytest.mark.processes
def test_a_process_that_ignores_sigterm_is_killed(start: Start) -> None:
    deaf = start("import signal; signal.signal(15, signal.SIG_IGN); print('ready'); signal.pause()")
    meek = start("import signal; print('ready'); signal.pause()")
    found = [identity_of(process.pid) for process in (deaf, meek)]
    end_processes((one for one in found if one is not None), seconds=0.2)
    assert [deaf.wait(5), meek.wait(5)] == [-signal.SIGKILL, -signal.SIGTERM]


@pytest.mark.processes
def test_down_ends_processes_left_by_a_killed_supervisor(
    tmp_path: Path, directory: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    left = start("import signal; print('ready'); signal.pause()")
    identity = identity_of(left.pid)
    assert identity is not None
    (directory / "leaf").mkdir()
    (directory / "leaf" / "starter.pid").write_text(json.dumps({"pid": identity.pid, "started": identity.started}))
    assert main(["down", str(TRIO), "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "trio: down\n"
    assert left.wait(5) == -signal.SIGTERM
