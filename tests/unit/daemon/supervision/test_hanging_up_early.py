"""SIGHUP to a daemon that is still starting: its starter waits at a pipe, after the policy was read."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from messiahs.cli.federation.certificates import make_certificates, tls_paths
from messiahs.config.settings import MachineSettings, ModuleSettings, save_settings
from messiahs.daemon.supervision.supervisor import PLAN_FILE
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.processes

OLD = 'policy "old"; accept from any { limit 1 tasks; }'
NEW = 'policy "new"; accept from any { limit 2 tasks; }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make the state of a federation of one module, `a`, with a machine."""
    made = tmp_path / "f"
    made.mkdir()
    (made / "a").mkdir()
    make_certificates(made, ["a"])
    paths = tls_paths(made, "a")
    (tmp_path / "own.policy").write_text(OLD)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = ModuleSettings(
        federation="f",
        name="a",
        state_directory=made,
        listen=address,
        certificate_file=paths.certificate_file,
        key_file=paths.key_file,
        trust_file=paths.trust_file,
        policy_file=tmp_path / "own.policy",
        machine=MachineSettings(),
    )
    save_settings(settings, made / "a" / "settings.json")
    (made / PLAN_FILE).write_text(json.dumps({"modules": ["a"]}))
    return made


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a pipe: a line from it lets the starter begin, for which its daemon waits."""
    unshare = shutil.which("unshare")
    made = tmp_path / "gate"
    os.mkfifo(made)
    (tmp_path / "bin").mkdir()
    waiting = tmp_path / "bin" / "unshare"
    waiting.write_text(f'#!/bin/sh\nread -r line <{made}\nexec {unshare} "$@"\n')
    waiting.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    return made


@pytest.fixture(params=["alone", "supervised"])
def process(folder: Path, gate: Path, request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the daemon."""
    assert gate.is_fifo()
    words = {
        "alone": ["messiahs.daemon", str(folder / "a" / "settings.json")],
        "supervised": ["messiahs.daemon.supervision.supervisor", str(folder)],
    }
    with subprocess.Popen([sys.executable, "-m", *words[request.param]], stdin=subprocess.DEVNULL) as started:
        yield started
        started.terminate()
        try:
            started.wait(PATIENCE_SECONDS)
        finally:
            started.kill()


def until(condition: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    eventually(lambda: condition() or process.poll() is not None)
    assert process.returncode is None, f"it has ended with {process.returncode}"


def log(folder: Path) -> str:
    return (folder / "a" / "module.log").read_text()


def test_a_hangup_during_the_start_ends_nothing_and_what_has_changed_since_is_read_again(
    folder: Path, gate: Path, process: "subprocess.Popen[bytes]"
) -> None:
    until((folder / "a" / "daemon.pid").exists, process)
    daemon = int(json.loads((folder / "a" / "daemon.pid").read_text())["pid"])
    held = opened(gate, process)
    own = folder.parent / "own.policy"
    assert sha256(OLD.encode()).hexdigest() in log(folder)
    own.write_text(NEW)
    os.kill(daemon, signal.SIGHUP)
    os.write(held, b"go on\n")
    os.close(held)
    until(lambda: f"{sha256(NEW.encode()).hexdigest()}, is in force" in log(folder), process)
    assert int(json.loads((folder / "a" / "daemon.pid").read_text())["pid"]) == daemon


def opened(pipe: Path, process: "subprocess.Popen[bytes]") -> int:
    """Open a pipe to write into it, once somebody reads from it."""
    opened: list[int] = []

    def is_open() -> bool:
        try:
            opened.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    until(is_open, process)
    return opened[0]
