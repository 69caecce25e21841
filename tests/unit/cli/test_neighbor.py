"""`messiahs neighbor` against a peer that speaks the local API."""

from pathlib import Path

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


@pytest.mark.parametrize("was_removed", [True, False])
def test_who_brings_a_removed_neighbor_back_learns_what_the_other_end_needs(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], *, was_removed: bool
) -> None:
    neighbors = [] if was_removed else [{"name": "chem"}]
    peer = start_peer((200, {"neighbors": neighbors}), state=state)
    assert main(["neighbor", "on", "chem"]) == 0
    own = peer.socket_path.stem
    here = f"the removal ended the link at chem as well: if the file there lists {own}, type"
    there = f"`messiahs neighbor on {own}` there, too; if {own} joined with a token, get a new one there and type"
    other_end = f"; {here} {there} `messiahs module parent add` here" if was_removed else ""
    assert capsys.readouterr().out == f"{own} admits chem{other_end}\n"
