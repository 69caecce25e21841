"""`messiahs accounting` against a peer that speaks the local API."""

import json
import re
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


USAGE = {
    "day": "2026-03-01",
    "given_by": "right",
    "given_to": "left",
    "origin": "left",
    "user": "ann",
    "account": "",
    "processor_s": 2.0,
    "used_s": 1.0,
}
OF_ANN = {"system": "left", "only_user": "ann", "usage": [USAGE], "neighbors": []}


def test_without_accounts_of_neighbors_usage_is_shown_by_user_and_whose_it_is(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, OF_ANN), state=state)
    assert main(["accounting"]) == 0
    shown = capsys.readouterr()
    header, line = shown.out.splitlines()
    assert (header.split()[0], line.split()[0]) == ("USER", "ann")
    assert shown.err == "only what ann used: root and the user of left see all\n"
    assert main(["accounting", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["by"], document["only_user"]) == ("user", "ann")


def test_a_user_who_asks_for_neighbors_sees_those_whose_machines_ran_the_own_tasks(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, OF_ANN), state=state)
    assert main(["accounting", "--by", "neighbor"]) == 0
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.split() == ["right", "2026-03-01", "0.0", "0.0", "2.0", "1.0", "-2.0"]


@pytest.mark.parametrize("by", ["neighbor", "user", "day"])
def test_no_two_columns_have_the_same_name(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    account = {**ACCOUNT, **NOTHING_TAKEN}
    start_peer((200, {"system": "left", "usage": [USAGE], "neighbors": [account]}), state=state)
    assert main(["accounting", "--by", by]) == 0
    columns = re.split(" {2,}", capsys.readouterr().out.splitlines()[0])
    assert len(set(columns)) == len(columns)
