"""The supervisor of `up`, as a real process, with a daemon that cannot start: it has no settings."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.daemon.process.pid_files import PID_FILE, recorded_process
from messiahs.daemon.supervision.supervisor import PLAN_FILE
from tests.waiting import eventually

pytestmark = pytest.mark.processes


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    (tmp_path / "left").mkdir()
    (tmp_path / PLAN_FILE).write_text(json.dumps({"modules": ["left", "gone"]}))
    command = [sys.executable, "-m", "messiahs.daemon.supervision.supervisor", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_a_hangup_before_anything_is_supervised_ends_nothing(
    tmp_path: Path, supervisor: "subprocess.Popen[str]"
) -> None:
    eventually((tmp_path / PID_FILE).exists)
    supervisor.send_signal(signal.SIGHUP)
    assert supervisor.stdout is not None
    assert "left: started" in supervisor.stdout.readline() + supervisor.stdout.readline()


def test_a_daemon_that_ends_is_restarted_with_increasing_delays(
    tmp_path: Path, supervisor: "subprocess.Popen[str]"
) -> None:
    assert supervisor.stdout is not None
    printed = []
    for line in supervisor.stdout:
        printed.append(line)
        if "left: ended" in line and "next start in 0.4 s" in line:
            break
    assert sum("left: started" in line for line in printed) == 2
    assert any("gone: cannot be started" in line for line in printed)
    recorded = recorded_process(tmp_path / PID_FILE)
    assert recorded is not None
    assert recorded.pid == supervisor.pid
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(10) == 0
    assert not (tmp_path / PID_FILE).exists()
