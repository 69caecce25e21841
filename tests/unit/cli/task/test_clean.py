"""`messiahs clean`: what it asks for, and what it says."""

import json
from pathlib import Path

import pytest

from messiahs.cli.main import main
from messiahs.cli.task.clean import size_text
from tests.unit.client.local_api_peer import StartPeer

CLEANED = {"cleaned": [{"id": "left.1", "tasks": 3, "bytes": 2_048, "memory_bytes": 1_536}], "kept": [], "after": 0}
KEPT = {"cleaned": [], "kept": [{"id": "left.2", "error": "left.2 has not ended"}], "after": 0}


@pytest.mark.parametrize("words", [(), ("left.1", "--older-than", "2d")])
def test_either_tasks_are_named_or_an_age(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", *words]) == 2
    assert "name tasks, or say which with --older-than" in capsys.readouterr().err


def test_all_pages_are_asked_for(tmp_path: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]) -> None:
    peer = start_peer((200, {**CLEANED, "after": 128}), (200, CLEANED), state=tmp_path)
    assert main(["clean", "--older-than", "2d", "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "6 tasks forgotten, 4.0 KiB of disk and 3.0 KiB of memory freed\n"
    assert [body for _, _, body in peer.asked] == [
        {"older_than_s": 172_800, "after": 0},
        {"older_than_s": 172_800, "after": 128},
    ]


def test_a_named_task_that_is_kept_is_a_failure(
    tmp_path: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, KEPT), (200, KEPT), (200, KEPT), state=tmp_path)
    assert main(["clean", "left.2", "--state", str(tmp_path)]) == 1
    assert capsys.readouterr() == ("nothing forgotten\n", "messiahs: left.2 has not ended\n")
    assert main(["clean", "--older-than", "0s", "--state", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["clean", "left.2", "--json", "--state", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out)["kept"] == {"left.2": "left.2 has not ended"}


def test_a_size_has_a_unit_of_its_magnitude() -> None:
    assert [size_text(size) for size in (0, 1_023, 1_536, 5 << 30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]


def test_of_tasks_without_outputs_an_earlier_release_says_nothing_about_room(
    tmp_path: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, {**CLEANED, "cleaned": [{"id": "left.1", "tasks": 8_000_000, "bytes": 0}]}), state=tmp_path)
    assert main(["clean", "left.1", "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "8000000 tasks forgotten\n"
