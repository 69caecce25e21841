"""`messiahs accounting` against a peer that speaks the local API."""

from pathlib import Path

import pytest

from messiahs.cli.main import main
from tests.unit.client.local_api_peer import StartPeer

ACCOUNT = {"neighbor": "right", "since": "2026-03-01T12:00:00.000Z", "given_s": 0.02, "given_used_s": 0.01}
NOTHING_TAKEN = {"taken_s": 0.0, "taken_used_s": 0.0, "balance_s": 0.02}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


def test_a_time_is_cut_to_the_second_and_a_name_is_not_cut(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    account = {**ACCOUNT, "neighbor": "physics.university.example", **NOTHING_TAKEN}
    start_peer((200, {"system": "left", "usage": [], "neighbors": [account]}), state=state)
    assert main(["accounting"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["physics.university.example", "2026-03-01T12:00:00"]


def test_a_small_debt_is_shown_as_nothing_and_not_as_minus_nothing(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    account = {**ACCOUNT, "taken_s": 0.06, "taken_used_s": 0.06, "balance_s": -0.04}
    start_peer((200, {"system": "left", "usage": [], "neighbors": [account]}), state=state)
    assert main(["accounting"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("right"))
    assert line.split()[-1] == "0.0"
