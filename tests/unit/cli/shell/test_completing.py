"""What shells are told about the tasks of a module."""

from pathlib import Path

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

TASK = {"id": "left.1", "name": "render", "state": "finished"}
ARRAY = {"id": "left.2", "name": "", "members": 3, "counts": {"finished": 2, "killed": 0, "running": 1}}


def test_ids_of_tasks_and_arrays_are_offered_with_their_states_the_newest_first(
    tmp_path: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start_peer((200, {"tasks": [TASK, ARRAY], "unknown": []}), state=tmp_path)
    asked = {"_MESSIAHS_COMPLETE": "fish_complete", "COMP_WORDS": "messiahs status left.", "COMP_CWORD": "left."}
    for name, value in {**asked, "MESSIAHS_STATE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    offered = capsys.readouterr().out
    assert [line for line in offered.splitlines() if line] == [
        "plain,left.2\t2 finished, 1 running",
        "plain,left.1\tfinished render",
    ]
