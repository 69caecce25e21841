"""What shells are told about the tasks of a module."""

from pathlib import Path

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

TASK = {"id": "left.1", "name": "render", "state": "finished"}
ARRAY = {"id": "left.2", "name": "", "members": 3, "counts": {"finished": 2, "killed": 0, "running": 1}}


@pytest.mark.parametrize(
    ("entered", "expected"),
    [
        ("left.", ["plain,left.2\t2 finished, 1 running", "plain,left.1\tfinished render"]),
        ("left.2.", ["plain,left.2.1", "plain,left.2.2", "plain,left.2.3"]),
        ("left.2.3", ["plain,left.2.3"]),
        ("left.1.", []),
    ],
)
def test_ids_of_tasks_and_arrays_are_offered_with_their_states_the_newest_first_and_those_of_members(
    entered: str,
    expected: list[str],
    tmp_path: Path,
    start_peer: StartPeer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start_peer((200, {"tasks": [TASK, ARRAY], "unknown": []}), state=tmp_path)
    asked = {"_MESSIAHS_COMPLETE": "fish_complete", "COMP_WORDS": f"messiahs status {entered}", "COMP_CWORD": entered}
    for name, value in {**asked, "MESSIAHS_STATE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    offered = capsys.readouterr().out
    assert [line for line in offered.splitlines() if line] == expected
