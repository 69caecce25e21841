"""`messiahs policy explain --task`: a real task, as `messiahs status ID --json` prints it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.documents import task_document
from tests.unit.client.local_api_peer import StartPeer

POLICY = """attribute $bid int optional;
accept from any { require $mem <= 8GiB; when $bid > 3 and $user eq "ann"; limit 4 tasks; }
rank candidates by most $load;
"""
SAID: dict[str, Value] = {
    "bid": 7,
    "cpus": 6,
    "license": "none that the policy declares",
    "mem": 9 << 30,
    "origin": "left",
    "user": "ann",
}
REQUIREMENT = '$load < 2000 and ($os eq "Linux" or not $cpu eq "vax")'


def _status(said: dict[str, Value] = SAID, requirement: str = REQUIREMENT, **changed: object) -> dict[str, Any]:
    submission = SubmissionRow(
        id=TaskId(SystemId("left"), Epoch(5), 1),
        key=ClientKey("ann:1"),
        tdv=TDV(sorted_pairs(said)),
        requirement=requirement,
        command=Command(argv=("true",)),
        members=0,
        submitted_at=Instant(0),
    )
    task = task_document(TaskRow(id=submission.id), submission, reasons=())
    return {"tasks": [{**task, **changed}], "unknown": []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.policy"
    path.write_text(POLICY)
    return path


def _explained(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["policy", "explain", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def _values(document: dict[str, Any]) -> dict[str, Value]:
    compared = (each for rule in document["blocks"][0]["rules"] for each in rule["comparisons"])
    return {name: value for each in compared for name, value in each["values"].items()}


def test_the_output_of_status_is_the_task_that_is_explained(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start_peer: StartPeer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    start_peer((200, _status()), state=tmp_path)
    assert main(["status", "left.1", "--json"]) == 0
    printed = tmp_path / "task.json"
    printed.write_text(capsys.readouterr().out)
    assert json.loads(printed.read_text())["tasks"][0]["tdv"] == SAID
    document = _explained(capsys, str(file), "--task", str(printed))
    assert _values(document) == {"$mem": 9 << 30, "$bid": 7, "$user": "ann"}
    assert document["blocks"][0]["rules"][-1]["note"] == "0 of 4 slots taken, 6 wanted"


def test_a_document_may_come_from_standard_input_and_later_statements_override_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(f"\ufeff\n{json.dumps(_status())}".replace("\n", "", 1).encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    document = _explained(capsys, str(file), "--task", "mem=1B", "--task", "-", "--task", "bid=2")
    assert _values(document) == {"$mem": 9 << 30, "$bid": 2, "$user": "ann"}


def test_statements_may_come_from_standard_input_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"mem = 1GiB\nbid = 9\n")))
    assert _values(_explained(capsys, str(file), "--task", "-"))["$bid"] == 9
    assert main(["policy", "explain", str(file), "--task", "-", "--here", "-"]) == 1
    assert "standard input (`-`) can be used only once" in capsys.readouterr().err


def _pool() -> dict[str, Any]:
    machines = {"avail_disk": [0, 0], "avail_mem": [1 << 40, 1 << 40], "free_slots": [8, 8], "os": "Linux"}
    views: dict[str, dict[str, Any]] = {
        name: {
            "relation": "child",
            "age": 0.5,
            "machines": 2,
            "classes": [{"count": 2, "attributes": {**machines, "load": [load, load]}, "some_lack": []}],
        }
        for name, load in (("busy", 4000), ("idle", 0))
    }
    return {"up": {"machines": 4, "classes": [one["classes"][0] for one in views.values()]}, "views": views}


def test_the_requirement_of_a_task_applies_to_orders_and_pools(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pool.json").write_text(json.dumps(_pool()))
    (tmp_path / "task.json").write_text(json.dumps(_status({**SAID, "mem": 1})))
    words = [str(file), "--pool", str(tmp_path / "pool.json"), "--task", str(tmp_path / "task.json")]
    document = _explained(capsys, *words, "--peer", "name=x")
    assert document["pool"]["matched"] == {"surely": 0, "could": 2}
    # Whether machines that do not say $cpu lack it or keep it to themselves, nobody knows.
    assert document["pool"]["lost"] == [{"text": "$load < 2000", "surely": 2, "could": 2}]
    change = {"text": "`$load < 2000` were `$load < 4096`", "matched": {"surely": 0, "could": 4}}
    assert document["pool"]["changes"] == [change]
    assert [each["system"] for each in document["orders"][0]["ranked"]] == ["idle"]
    assert document["orders"][0]["unable"] == ["busy"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "task.json: not valid JSON: "),
        ("[" * 100_000, "task.json: not valid JSON: "),
        ('{"tasks": 3}', "this JSON is not the output of `messiahs status ID --json`"),
        ('{"tasks": [1]}', "this JSON is not the output of `messiahs status ID --json`"),
        ("[]", "this JSON is not the output of `messiahs status ID --json`"),
        ('{"tasks": []}', "it contains no task; write it with `messiahs status ID --json` for one ID"),
        ('{"tasks": [{}, {}]}', "it contains 2 tasks"),
        ('{"tasks": [{"id": "a.1", "members": 3}]}', "a.1 is an array: name one of its members, such as a.1.1"),
        ('{"tasks": [{"id": "a.1"}]}', "a.1 has no `tdv` or no `requirement`"),
        (json.dumps(_status(tdv={"mem": 1.5, "x": True, "y": 2**63})), "`tdv`: mem is 1.5, x is True, y is 92233"),
        (json.dumps(_status(requirement="$mem <")), "`requirement`: "),
        ("mem = 3 {}", "this is not a statement"),
    ],
)
def test_other_documents_are_reported(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    (tmp_path / "task.json").write_text(text)
    assert main(["policy", "explain", str(file), "--task", str(tmp_path / "task.json")]) == 1
    assert expected in capsys.readouterr().err


def test_a_task_of_several_slots_requests_as_many(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(file), "--task", "mem=1B", "--task", "bid=4", "--task", "user=ann", "--task", "cpus=5"]
    (block,) = _explained(capsys, *words)["blocks"]
    assert (block["verdict"], block["rules"][-1]["note"]) == ("refused", "0 of 4 slots taken, 5 wanted")
