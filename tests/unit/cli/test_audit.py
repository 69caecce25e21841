"""`messiahs audit` against a peer that speaks the local API."""

from pathlib import Path

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

NEIGHBORS = {"neighbors": [{"name": "right"}, {"name": "up"}], "removed": [{"name": "gone"}]}
LINE = b'{"at": "2026-01-31T12:00:01.000000Z", "kind": "task", "what": "bound", "neighbor": "past"}\n'


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


def test_a_name_about_which_nothing_was_decided_is_told_with_the_known_names(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = start_peer(state=state)
    peer.by_path, peer.pieces = {"/neighbors": NEIGHBORS}, [[]]
    assert main(["audit", "decisions", "--neighbor", "rihgt", "--task", "left.1"]) == 1
    shown = capsys.readouterr()
    text = f"{peer.socket_path.stem} has decided nothing about a neighbor rihgt; its neighbors are right, up, gone"
    assert (shown.out, shown.err) == ("", f"messiahs: {text}\n")
    # Whether anything was decided does not depend on the other options.
    assert [path for _, path, _ in peer.asked if "task=" in path] == []


@pytest.mark.parametrize("name", ["right", "gone"])
def test_a_neighbor_about_which_nothing_was_decided_is_no_mistake(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    peer = start_peer(state=state)
    peer.by_path, peer.pieces = {"/neighbors": NEIGHBORS}, [[]]
    assert main(["audit", "decisions", "--neighbor", name]) == 0
    assert capsys.readouterr().out == ""


def test_a_neighbor_of_the_past_is_shown_as_long_as_its_decisions_are_kept(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = start_peer(state=state)
    peer.by_path, peer.pieces = {"/neighbors": NEIGHBORS}, [[LINE], [LINE]]
    assert main(["audit", "decisions", "--neighbor", "past"]) == 0
    assert capsys.readouterr().out == "2026-01-31T12:00:01.000Z  task  bound  neighbor past\n"
