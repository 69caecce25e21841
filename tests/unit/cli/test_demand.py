"""`messiahs demand`: what is printed for those who plan capacity."""

import json
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

NONE: dict[str, Any] = {"tasks": 0, "processors": 0, "wanted_s": 0, "denied": 0, "classes": []}


def lack(capacity: str, amount: int = 0, *, busy: bool = False, arch: str = "") -> dict[str, Any]:
    size = {"tasks": 2, "processors": 4, "wanted_s": 129_600, "denied": 1}
    return {"capacity": capacity, "busy": busy, "amount": amount, "arch": arch, "os": "", **size}


def reported(*classes: dict[str, Any], **more: object) -> dict[str, Any]:
    total = {name: sum(each[name] for each in classes) for name in ("tasks", "processors", "wanted_s", "denied")}
    part = {**total, "classes": list(classes)}
    return {
        "system": "gate",
        "at": "2026-03-01T13:00:00.000Z",
        "since": "2026-03-01T12:00:00.000Z",
        "total": part,
        "own": NONE,
        "children": {"left": part, "right": NONE},
        "parent": None,
        "given": NONE,
        **more,
    }


def test_demand_of_which_only_zeros_would_be_shown_is_left_out(
    start_peer: StartPeer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faded = {**lack("mem", 1 << 30), "tasks": 0, "processors": 0, "wanted_s": 100, "denied": 0}
    start_peer(state=state).by_path = {"/v1/demand": reported(lack("cpus", 8), faded)}
    assert main(["demand"]) == 0
    assert "memory" not in capsys.readouterr().out
    start_peer(state=state).by_path = {"/v1/demand": reported(faded)}
    assert main(["demand"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["no task lacks any capacity"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (lack("cpus", 1, busy=True), "1 cpus: all in use"),
        (lack("cpus", 8), "up to 8 cpus: no machine has that"),
        (lack("mem", 1 << 36), "up to 64 GiB of memory: no machine has that"),
        (lack("disk", 1 << 40, busy=True), "up to 1 TiB of disk: all in use"),
        (lack("gpus", 2), "up to 2 gpus: no machine has that"),
        (lack("arch"), "machines of this architecture"),
        (lack("policy"), "permission: policies refuse"),
        (lack("requirement"), "another requirement"),
        (lack("other"), "other"),
        (lack("tapes"), "tapes: no machine has that"),
    ],
)
def test_each_class_is_said_in_words(
    start_peer: StartPeer, state: Path, capsys: pytest.CaptureFixture[str], one: dict[str, Any], text: str
) -> None:
    start_peer((200, reported(one)), state=state)
    assert main(["demand"]) == 0
    line = capsys.readouterr().out.splitlines()[2]
    assert line.startswith(f"{text}  ")
    assert line.split()[-6:] == ["-", "-", "2", "4", "1.5", "1"]


def test_the_total_comes_last_and_then_whose_it_is(
    start_peer: StartPeer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, reported(lack("cpus", 8, arch="arm"), lack("mem", 1 << 30))), state=state)
    assert main(["demand"]) == 0
    first, _, arm, _, total, left = capsys.readouterr().out.splitlines()
    assert first.startswith("unmet demand of gate and of 2 below it (left, right), counted since ")
    assert arm.split()[-6:-4] == ["arm", "-"]
    assert total.split() == ["in", "all", "4", "8", "3.0", "2"]
    assert left.split()[:2] == ["through", "left"]


def test_nothing_is_said_in_one_line(start_peer: StartPeer, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start_peer((200, reported(children={})), state=state)
    assert main(["demand"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("unmet demand of gate, counted since ")
    assert second == "no task lacks any capacity"


def test_programs_get_the_document(start_peer: StartPeer, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = reported(lack("cpus", 8))
    peer = start_peer((200, document), state=state)
    assert main(["demand", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, **document}
    assert [(method, path) for method, path, _ in peer.asked] == [("GET", "/v1/demand")]
