"""`messiahs run` reports why its task makes no progress, with a real process."""

import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.cli.output import local_time
from tests.unit.client.local_api_peer import StartPeer
from tests.waiting import eventually

pytestmark = pytest.mark.processes

STAGING = {"id": "left.1", "state": "executing", "substate": "staging", "executed_on": "b2"}
SINCE = "2026-03-01T12:00:00.000Z"


def delayed(text: str) -> dict[str, object]:
    return {**STAGING, "delay": {"of": "inputs", "since": SINCE, "text": text}}


def report_of(text: str) -> str:
    return f"messiahs: left.1 waits for its files since {local_time(SINCE)}\n    {text}\n  Ctrl-C cancels it\n"


def test_run_reports_a_delay_once_and_again_when_its_reason_changes(tmp_path: Path, start_peer: StartPeer) -> None:
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/wait": delayed("it can continue in 24.0 h"), "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    command = [sys.executable, "-m", "messiahs.cli.main", "run", "--state", str(tmp_path), "--", "true"]
    with (
        (tmp_path / "stderr").open("w") as stderr,
        subprocess.Popen(command, stderr=stderr, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            first = report_of("it can continue in 24.0 h")
            eventually(lambda: (tmp_path / "stderr").read_text() == first)
            peer.by_path["/wait"] = delayed("it can continue in 23.9 h")
            asked = len(peer.asked)
            eventually(lambda: len(peer.asked) > asked + 4)
            peer.by_path["/wait"] = delayed("connection refused")
            both = first + report_of("connection refused")
            eventually(lambda: (tmp_path / "stderr").read_text() == both)
            peer.by_path["/wait"] = {**STAGING, "state": "finished", "exit_code": 3}
            assert process.wait() == 3
            assert (tmp_path / "stderr").read_text() == both
        finally:
            process.kill()


def test_run_reports_refusals_once_in_whatever_order_the_neighbors_were_asked(
    tmp_path: Path, start_peer: StartPeer
) -> None:
    refusals = [
        {"module": name, "code": "no_match", "text": text} for name, text in (("b2", "too small"), ("c3", "too old"))
    ]
    waiting = {"id": "left.1", "state": "executing", "substate": "queued"}
    peer = start_peer(state=tmp_path)
    peer.by_path = {"/wait": {**waiting, "reasons": refusals}, "/v1/tasks": {"id": "left.1"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    command = [sys.executable, "-m", "messiahs.cli.main", "run", "--state", str(tmp_path), "--", "true"]
    printed = tmp_path / "stderr"
    with printed.open("w") as stderr, subprocess.Popen(command, stderr=stderr, stdin=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: printed.read_text().endswith("  Ctrl-C cancels it\n"))
            first = printed.read_text()
            assert first.index("too small") < first.index("too old")
            peer.by_path["/wait"] = {**waiting, "reasons": refusals[::-1]}
            asked = len(peer.asked)
            eventually(lambda: len(peer.asked) > asked + 4)
            peer.by_path["/wait"] = {**STAGING, "state": "finished", "exit_code": 0}
            assert process.wait() == 0
            assert printed.read_text() == first
        finally:
            process.kill()
