"""`messiahs status` and `messiahs cancel` of one's own tasks, and of those that have not ended."""

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

ME = pwd.getpwuid(os.geteuid()).pw_name
DONE: dict[str, Any] = {"id": "left.1", "state": "finished", "substate": None, "exit_code": 0, "user": ME}
RUNNING = {**DONE, "id": "left.2", "state": "executing", "substate": "running", "exit_code": None}
OTHERS = {**RUNNING, "id": "left.3", "user": "somebody"}
ARRAY = {"id": "left.4", "user": ME, "members": 3, "counts": {"finished": 2, "running": 1}, "exit_codes": {"0": 2}}
LISTED = {"tasks": [DONE, RUNNING, OTHERS, ARRAY], "unknown": []}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state directory of the commands."""
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "query", "ids"),
    [
        ((), "", ["left.1", "left.2", "left.3", "left.4"]),
        (("--mine",), f"user={ME}", ["left.1", "left.2", "left.4"]),
        (("--user", "somebody"), "user=somebody", ["left.3"]),
        (("--active",), "active=1", ["left.2", "left.3", "left.4"]),
        (("--mine", "--active"), f"user={ME}&active=1", ["left.2", "left.4"]),
    ],
)
def test_a_module_is_asked_for_some_tasks_and_what_one_of_an_earlier_release_adds_is_left_out(
    state: Path,
    start_peer: StartPeer,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    query: str,
    ids: list[str],
) -> None:
    peer = start_peer((200, LISTED), state=state)
    assert main(["status", "-q", *options]) == 0
    assert capsys.readouterr().out.split() == ids
    assert [path for _, path, _ in peer.asked] == [f"/v1/tasks?{query}"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("status", "--mine", "--user", "ann"), "--mine and --user cannot be combined"),
        (("status", "--failed", "--active"), "--failed and --active cannot be combined"),
        (("cancel",), "name tasks, or say --mine for all of yours that have not ended"),
        (("cancel", "--mine", "left.1"), "name tasks, or say --mine for all of yours that have not ended"),
    ],
)
def test_options_that_contradict_each_other_are_usage_errors(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str
) -> None:
    peer = start_peer((200, LISTED), state=state)
    assert main(words) == 2
    assert text in capsys.readouterr().err
    assert not peer.asked


def test_all_own_tasks_that_have_not_ended_are_cancelled_the_newest_first(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    array = {"id": "left.4", "cancelled": 1, "members": 3}
    # This one has ended in between.
    single = {"id": "left.2", "cancelled": 0, "members": 1, "has_ended": True, "states": ["finished"]}
    peer = start_peer((200, LISTED), (200, array), (200, single), state=state)
    assert main(["cancel", "--mine"]) == 0
    assert [path for _, path, _ in peer.asked[1:]] == ["/v1/tasks/left.4/cancel", "/v1/tasks/left.2/cancel"]
    assert capsys.readouterr() == ("1 of 4 cancelled; 3 had ended before\n", "")


def test_without_own_tasks_nothing_is_cancelled(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = start_peer((200, {"tasks": [DONE, OTHERS], "unknown": []}), state=state)
    assert main(["cancel", "--mine"]) == 0
    assert main(["cancel", "--mine", "-q"]) == 0
    assert len(peer.asked) == 2
    assert capsys.readouterr() == ("none of your tasks is left to cancel\n", "")
