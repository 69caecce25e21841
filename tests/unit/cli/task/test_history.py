"""`messiahs history`: which tasks it shows, and what."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.cli.task.history import show_history
from messiahs.client.history import ended_among
from tests.unit.client.local_api_peer import StartPeer

NOW = datetime(2026, 3, 8, 12, 0, tzinfo=UTC)
TASK: dict[str, Any] = {
    "id": "left.1",
    "user": "ann",
    "tdv": {"cpus": 4},
    "argv": ["render", "a"],
    "state": "finished",
    "exit_code": 0,
    "executed_on": "right",
    "started_at": "2026-03-08T10:00:00.000Z",
    "ended_at": "2026-03-08T11:00:00.000Z",
    "suspended_s": 600.0,
    "usage": {"cpu_s": 12.5, "peak_memory_bytes": 3 << 20},
}
FAILED = {**TASK, "id": "left.2", "exit_code": 1, "ended_at": "2026-03-01T11:00:00.000Z"}
OTHERS = {**TASK, "id": "left.3", "user": "bob", "ended_at": "2026-03-08T10:30:00.000Z"}
DENIED = {**TASK, "id": "left.4", "state": "denied", "exit_code": None, "executed_on": "", "started_at": None}
DENIED |= {"usage": None}
RUNNING = {**TASK, "id": "left.5", "state": "executing", "substate": "running", "ended_at": None}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state directory of the commands."""
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    return tmp_path


def ids(*, days: int = 7, user: str | None = None) -> list[str]:
    tasks = [TASK, FAILED, OTHERS, DENIED, RUNNING]
    return [str(task["id"]) for task in ended_among(tasks, begin=NOW - timedelta(days=days), user=user)]


def test_tasks_that_ended_in_that_time_are_shown_in_the_order_of_their_ends() -> None:
    assert ids() == ["left.3", "left.1", "left.4"]
    assert ids(days=8) == ["left.2", "left.3", "left.1", "left.4"]
    assert ids(user="bob") == ["left.3"]


def test_the_table_has_what_the_tasks_used_and_its_sum(capsys: pytest.CaptureFixture[str]) -> None:
    show_history([TASK, DENIED])
    header, first, second, _, total = capsys.readouterr().out.splitlines()
    assert " ".join(header.split()) == "ID STATE RESULT MODULE ENDED RAN COST CPU MEMORY USER COMMAND"
    assert "50 min 00 s  3 h 20 min  12.5 s  3.0 MiB  ann   render a" in first
    assert second.split()[:4] == ["left.4", "denied", "-", "-"]
    assert (
        total
        == "2 ended, 1 failed; they ran 50 min 00 s in all, cost 3 h 20 min of slots, and used 12.5 s of processors"
    )
    show_history([])
    assert capsys.readouterr().out == "no task has ended in that time\n"
    show_history([], user="nobodyx")
    assert capsys.readouterr().out == "no task of nobodyx has ended in that time\n"


def test_a_module_is_asked_for_what_ended_since_then(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    recent = {**TASK, "ended_at": datetime.now(UTC).isoformat()}
    peer = start_peer((200, {"tasks": [recent, FAILED], "unknown": []}), state=state)
    assert main(["history", "--since", "1d", "--user", "ann", "--json"]) == 0
    assert [task["id"] for task in json.loads(capsys.readouterr().out)["tasks"]] == ["left.1"]
    ((_, path, _),) = peer.asked
    begin = int(path.rpartition("ended_since=")[2])
    assert "members=1&user=ann&" in path
    assert datetime.now(UTC).timestamp() - begin == pytest.approx(86_400, abs=600)


@pytest.mark.skipif(os.geteuid() != 0, reason="other accounts see their own tasks")
def test_root_sees_the_tasks_of_all_users(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC).isoformat()
    start_peer((200, {"tasks": [{**TASK, "ended_at": now}, {**OTHERS, "ended_at": now}], "unknown": []}), state=state)
    assert main(["history", "--quiet"]) == 0
    assert capsys.readouterr().out.split() == ["left.1", "left.3"]


def test_of_whom_no_task_has_ended_is_said(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, {"tasks": [], "unknown": []}), state=state)
    assert main(["history", "--user", "nobodyx"]) == 0
    assert capsys.readouterr().out == "no task of nobodyx has ended in that time\n"


def array_member(number: int, **more: object) -> dict[str, Any]:
    argv, ended_at = ["render", str(number)], f"2026-03-08T11:0{number}:00.000Z"
    return {**TASK, "id": f"left.9.{number}", "argv": argv, "ended_at": ended_at, **more}


def shown_arrays(state: Path, start_peer: StartPeer, *options: str) -> int:
    unused = array_member(3, usage=None, exit_code=2)
    large = array_member(2, usage={"cpu_s": 1.0, "peak_memory_bytes": 5 << 20})
    start_peer((200, {"tasks": [large, TASK, array_member(1), unused], "unknown": []}), state=state)
    return main(["history", "--since", "2026-01-01", "--user", "ann", "--arrays", *options])


def test_each_array_is_a_line_with_its_sums(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown_arrays(state, start_peer) == 0
    header, single, array, _, total = capsys.readouterr().out.splitlines()
    assert " ".join(header.split()) == "ID TASKS FAILED ENDED RAN COST CPU MEMORY USER COMMAND"
    assert single.split()[:3] == ["left.1", "1", "0"]
    assert array.split()[:3] == ["left.9", "3", "1"]
    assert "  2 h 36 min   10 h 24 min  13.5 s  5.0 MiB  ann   render 1" in array
    assert total == (
        "4 ended, 1 failed; they ran 3 h 26 min in all, cost 13 h 44 min of slots, and used 26.0 s of processors"
    )


def test_arrays_are_ids_or_a_document_and_those_with_failures(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown_arrays(state, start_peer, "-q") == 0
    assert capsys.readouterr().out.split() == ["left.1", "left.9"]
    assert shown_arrays(state, start_peer, "--failed", "--json") == 0
    used = {"ran_s": 9360.0, "cost_s": 37440.0, "cpu_s": 13.5, "peak_memory_bytes": 5 << 20}
    counts = {"tasks": 3, "failed": 1, "ended_at": "2026-03-08T11:03:00.000Z"}
    document = {"schema": 1, "arrays": [{"id": "left.9", **counts, **used, "user": "ann", "name": None}]}
    assert json.loads(capsys.readouterr().out) == document


def test_an_array_of_which_nothing_ran_used_nothing_that_is_known(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, {"tasks": [{**DENIED, "id": f"left.8.{each}"} for each in (1, 2)], "unknown": []}), state=state)
    assert main(["history", "--since", "2026-01-01", "--user", "ann", "--arrays"]) == 0
    line = capsys.readouterr().out.splitlines()[1].split()
    assert (line[:3], line[5:9]) == (["left.8", "2", "2"], ["-"] * 4)
