"""What `up` lays down, how it is kept from running twice, and how processes are ended."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from messiahs.cli.deployment import federation_directory, lock_federation, prepare
from messiahs.cli.main import main
from messiahs.config.settings import load_settings
from messiahs.config.topology_reading import load_topology
from messiahs.core.instants import MILLISECOND
from messiahs.daemon.recorded import end_processes, recorded_process
from messiahs.errors import ClientError
from messiahs.executor.processes import identity_of

TRIO = Path(__file__).parents[3] / "topologies" / "trio.yaml"
Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return federation_directory(tmp_path, "trio")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python programs that say a word when they are ready."""
    processes: list[subprocess.Popen[bytes]] = []

    def run(program: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([sys.executable, "-uc", program], stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def test_every_module_gets_settings_that_fit_those_of_its_neighbors(directory: Path) -> None:
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


def test_ports_and_root_are_kept_for_the_next_time(directory: Path) -> None:
    first = prepare(load_topology(TRIO), directory)
    root = (directory / "tls" / "root.pem").read_bytes()
    second = prepare(load_topology(TRIO), directory)
    assert [settings.listen for settings in first] == [settings.listen for settings in second]
    assert (directory / "tls" / "root.pem").read_bytes() == root


def test_a_port_that_somebody_else_took_is_replaced(directory: Path) -> None:
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
    assert "`trio` is up already" in capsys.readouterr().err
    os.close(lock)
    os.close(lock_federation(directory))


def test_modules_that_a_killed_supervisor_left_must_be_ended_first(directory: Path) -> None:
    own = identity_of(os.getpid())
    assert own is not None
    (directory / "leaf").mkdir()
    (directory / "leaf" / "daemon.pid").write_text(json.dumps({"pid": own.pid, "start_time": own.started}))
    with pytest.raises(ClientError, match=rf"still run \(processes {own.pid}\)"):
        lock_federation(directory)


def test_a_pid_file_of_an_earlier_process_with_the_same_number_names_nobody(tmp_path: Path) -> None:
    own = identity_of(os.getpid())
    assert own is not None
    file = tmp_path / "daemon.pid"
    file.write_text(json.dumps({"pid": own.pid, "start_time": own.started}))
    assert recorded_process(file) == own
    file.write_text(json.dumps({"pid": own.pid, "start_time": own.started - 1}))
    assert recorded_process(file) is None


def test_a_process_that_does_not_listen_is_killed(start: Start) -> None:
    deaf = start("import signal; signal.signal(15, signal.SIG_IGN); print('ready'); signal.pause()")
    meek = start("import signal; print('ready'); signal.pause()")
    found = [identity_of(process.pid) for process in (deaf, meek)]
    end_processes((one for one in found if one is not None), seconds=0.2)
    assert [deaf.wait(5), meek.wait(5)] == [-signal.SIGKILL, -signal.SIGTERM]


def test_down_ends_what_a_killed_supervisor_left(
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
