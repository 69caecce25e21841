"""`messiahs task revoke`, `move`, `hold` and `release`, against a peer that speaks the local API."""

import json
from pathlib import Path

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

TASK = "left.1"


def done(*attempts: int, name: str = TASK) -> tuple[int, object]:
    return (200, {"id": name, "at": "origin", "attempts": [f"{name}#{number}" for number in attempts]})


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("act", "attempts", "line"),
    [
        ("revoke", (2,), "left.1#2 is being revoked"),
        ("move", (2,), "left.1#2 is being moved"),
        ("move", (1, 2), "2 attempts of left.1 are being moved"),
        ("hold", (), "left.1 is on hold"),
        ("hold", (2,), "left.1 is on hold; left.1#2 runs on (`messiahs task revoke` ends that, too)"),
        ("hold", (1, 2), "left.1 is on hold; 2 attempts of left.1 run on (`messiahs task revoke` ends that, too)"),
        ("release", (2,), "left.1 is released"),
    ],
)
def test_an_act_says_what_it_concerns(
    state: Path,
    start_peer: StartPeer,
    capsys: pytest.CaptureFixture[str],
    act: str,
    attempts: tuple[int, ...],
    line: str,
) -> None:
    peer = start_peer(done(*attempts), state=state)
    assert main(["task", act, TASK, "--reason", "it is slow"]) == 0
    assert capsys.readouterr().out == f"{line}\n"
    assert peer.asked == [("POST", "/v1/tasks/left.1/by-hand", {"act": act, "reason": "it is slow"})]


def test_a_refused_task_is_named_and_the_next_one_follows(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((409, {"error": "left.1 has ended"}), done(3, name="left.2"), state=state)
    assert main(["task", "move", TASK, "left.2", "--json"]) == 1
    printed = capsys.readouterr()
    assert printed.err == "messiahs: left.1 has ended\n"
    assert json.loads(printed.out) == {
        "schema": 1,
        "tasks": [{"id": "left.2", "at": "origin", "attempts": ["left.2#3"]}],
    }


def test_quiet_prints_the_ids_alone(state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]) -> None:
    start_peer(done(), done(name="left.2"), state=state)
    assert main(["task", "hold", TASK, "left.2", "--quiet"]) == 0
    assert capsys.readouterr().out == "left.1\nleft.2\n"


def test_a_reason_that_the_module_refuses_is_a_usage_error(state: Path, start_peer: StartPeer) -> None:
    start_peer((400, {"error": "the reason contains control characters"}), state=state)
    assert main(["task", "hold", TASK, "--reason", "a\x1b"]) == 2


@pytest.mark.parametrize("act", ["revoke", "move", "hold", "release"])
def test_an_act_needs_an_id_and_has_a_help(act: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["task", act]) == 2
    assert main(["task", act, "--help"]) == 0
    assert "--reason" in capsys.readouterr().out
