"""`messiahs policy explain` and `messiahs explain`: why, before and after it happens."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.language.runtime.condition_explanation import PAPERS_RULE
from tests.unit.client.local_api_peer import StartPeer

POLICY = """let night = $now.clock >= 20:00 or $now.clock < 7:00;
attribute $bid int optional;
advertise every 1min { set $willingness = 90 when night else 10 when $here.load < 5% else 0; }
accept from parent {
    require night and not $here.keyboard_idle < 15min else "at night";
    require $mem <= 8GiB and $est_time <= 10h;
    limit 2 tasks;
}
accept from any { when $bid >= 20; limit 9 tasks; }
"""
NIGHT = ["--at", "2026-11-21 22:30"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.policy"
    path.write_text(POLICY)
    return path


def _document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["policy", "explain", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_each_rule_is_shown_with_its_line_its_comparisons_and_their_values(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--task", "mem=9GiB", "--here", "keyboard_idle=2min", "--peer", "name=cs", "--peer", "relation=parent"]
    assert main(["policy", "explain", str(file), *words, *NIGHT]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.replace(f"{file}", "FILE").splitlines()]
    assert printed[printed.index("FILE:4: accept from parent: refused") :] == [
        "FILE:4: accept from parent: refused",
        "     5 false require night and not $here.keyboard_idle < 15min",
        "             true     night: $now.clock >= 20:00   $now.clock is 22:30",
        "             false    night: $now.clock < 7:00     $now.clock is 22:30",
        "             true     $here.keyboard_idle < 15min  $here.keyboard_idle is 2min  <- against",
        "     6 false require $mem <= 8GiB and $est_time <= 10h",
        "             false    $mem <= 8GiB      $mem is 9GiB  <- against",
        "             missing  $est_time <= 10h  $est_time has no value  <- against",
        f"             no value of the right type: $est_time; {PAPERS_RULE}",
        "     7 true  limit 2 tasks",
        "             0 of 2 slots taken, 1 wanted",
        (
            "FILE: by default: advertise by key_changes(share = 0%), rank candidates by weighted_free_slots(), "
            "rank neighbors by most_waiting(), rank tasks by arrival(), migrate by least_run(), allocate by as_asked()"
        ),
    ]


def test_lines_are_those_of_a_file_that_windows_wrote(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--task", "mem=9GiB"]
    text = "#\n" * 100 + POLICY
    file.write_text(text)
    plain = _document(capsys, str(file), *words, *NIGHT)
    file.write_bytes(text.replace("\n", "\r\n").encode())
    assert _document(capsys, str(file), *words, *NIGHT)["blocks"] == plain["blocks"]
    assert main(["policy", "explain", str(file), *words, *NIGHT]) == 0
    assert f"{file}:104: accept from parent" in capsys.readouterr().out


def test_a_policy_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, POLICY.encode())
    os.close(writer)
    assert main(["policy", "explain", f"/dev/fd/{reader}", "--task", "mem=9GiB", *NIGHT]) == 0
    os.close(reader)
    assert f"/dev/fd/{reader}:4: accept from parent" in capsys.readouterr().out


def test_a_document_contains_everything(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _document(capsys, str(file), "--task", "bid=30", "--peer", "name=other", *NIGHT)
    assert document["schema"] == 1
    setting, accept = document["blocks"]
    assert (setting["block"], setting["line"], setting["verdict"]) == ("set $willingness", 3, "90")
    assert [rule["result"] for rule in setting["rules"]] == [True, False]
    assert (accept["block"], accept["line"], accept["verdict"]) == ("accept from any", 9, "accepted")
    assert accept["rules"][0] == {
        "rule": "when $bid >= 20",
        "line": 9,
        "result": True,
        "note": "",
        "comparisons": [{"text": "$bid >= 20", "let": "", "finding": "true", "values": {"$bid": 30}, "against": False}],
    }


def test_without_a_peer_every_accept_block_is_explained(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = _document(capsys, str(file), *NIGHT)["blocks"]
    assert [block["block"] for block in blocks] == ["set $willingness", "accept from parent", "accept from any"]


def test_rules_about_running_tasks_are_explained_for_a_task_that_ran(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "running tasks where $task.ran > 1h { suspend unless $here.load < 5%; kill when $task.suspended > 5min; }\n"
        "migrate { offer when $task.ran < 10min; }\n"
    )
    assert _document(capsys, str(file), "--task", "mem=1GiB", "--here", "load=3%")["blocks"] == []
    running, migrate = _document(capsys, str(file), "--task", "ran=2h", "--here", "load=30%")["blocks"]
    assert (running["block"], running["verdict"], running["line"]) == ("running", "due: suspend", 1)
    assert [(rule["rule"], rule["result"], rule["note"]) for rule in running["rules"]] == [
        ("running tasks where $task.ran > 1h", True, ""),
        ("suspend unless $here.load < 5%", False, "due"),
        ("kill when $task.suspended > 5min", False, "not due"),
    ]
    assert (migrate["block"], migrate["verdict"], migrate["line"]) == ("migrate", "it is kept", 2)


def test_attributes_may_be_stated_in_files(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "task").write_text('# a small one\nmem = 1GiB\n\nuser = "ann"\nest_time = 1h\n')
    words = [str(file), "--task", str(tmp_path / "task"), "--task", "est_time=2h", "--peer", "relation=parent"]
    rule = _document(capsys, *words, *NIGHT)["blocks"][1]["rules"][1]
    assert rule["result"]
    assert [each["values"] for each in rule["comparisons"]] == [{"$mem": 1 << 30}, {"$est_time": 7200}]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--task", "mm=1"], "--task:1:1: error[P201]: `mm` is not known here"),
        (["--task", "mem=1min"], "--task:1:5: error[P204]: size compared with a duration"),
        (["--task", "mem=-1"], "--task:1:5: error[P206]: `-1` is out of range"),
        (["--here", "load=4G"], "error[P103]: `4G` has no known unit"),
        (["--here", 'load="low"'], "--here:1:6: error[P203]: `load` is an integer"),
        (["--here", "load="], "--here:1:1: error[P106]: this is not a statement"),
        (["--peer", "relation=uncle"], "unknown relation `uncle`; expected one of self, child, sibling, parent"),
        (["--task", "/no/such/file"], "is neither NAME=VALUE nor a readable file"),
        (["--at", "noon"], "expected a date and a time"),
    ],
)
def test_an_invalid_statement_is_reported(
    file: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    assert main(["policy", "explain", str(file), *words]) in {1, 2}
    assert expected in capsys.readouterr().err


def test_a_policy_with_mistakes_explains_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.policy").write_text("accept from any { require $mm = 1; limit 9 tasks; }")
    assert main(["policy", "explain", str(tmp_path / "bad.policy")]) == 1
    assert "error[P201]" in capsys.readouterr().err


WAITING: dict[str, Any] = {
    "id": "left.1",
    "state": "executing",
    "substate": "queued",
    "executed_on": None,
    "reasons": [
        {
            "module": "left",
            "code": "refused_by_policy",
            "rule": "require $mem <= 8GiB",
            "text": "too large",
            "why": "require $mem <= 8GiB: $mem <= 8GiB is false ($mem is 9GiB)",
            "hops": [{"module": "right", "code": "no_class", "rule": "", "text": "", "hops": []}],
        }
    ],
}


def test_a_task_is_explained_hop_by_hop_with_the_comparisons_of_its_own_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    start_peer((200, {"tasks": [WAITING], "unknown": []}), state=tmp_path)
    assert main(["explain", "left.1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "left.1: queued",
        "  left: refused (require $mem <= 8GiB: too large)",
        "    because require $mem <= 8GiB: $mem <= 8GiB is false ($mem is 9GiB)",
        "    right: no machine is this large",
    ]


def test_an_unknown_task_is_reported_and_not_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    start_peer((200, {"tasks": [], "unknown": ["left.9"]}), state=tmp_path)
    assert main(["task", "explain", "left.9"]) == 1
    assert capsys.readouterr() == ("", "messiahs: no task left.9 is known here\n")


MEMORY_BYTES = 4 << 30
VECTORS: dict[str, Any] = {
    "up": {
        "machines": 3,
        "classes": [
            {
                "count": 3,
                "attributes": {
                    "avail_disk": [0, 0],
                    "avail_mem": [MEMORY_BYTES, 5 * MEMORY_BYTES // 4 - 1],
                    "free_slots": [2, 2],
                    "os": "Linux",
                },
                "some_lack": [],
            }
        ],
    },
    "views": {
        "above": {
            "relation": "parent",
            "age": 1.25,
            "machines": 9,
            "classes": [{"count": 9, "attributes": {"avail_mem": [1 << 30, 1 << 30], "os": None}, "some_lack": ["os"]}],
        },
        "below": {"relation": "child", "age": 0.0, "machines": 3, "classes": []},
    },
}
POOL_WORDS = ["--task", "mem=8GiB", "--task", "est_time=1h", "--peer", "name=x"]


def test_a_pool_shows_matches_exclusions_and_helpful_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, pool = tmp_path / "a.policy", tmp_path / "pool.json"
    policy.write_text("accept from any { require $est_time <= 2h; limit 9 tasks; }")
    pool.write_text(json.dumps(VECTORS))
    assert main(["policy", "explain", str(policy), *POOL_WORDS, "--pool", str(pool)]) == 0
    assert capsys.readouterr().out.splitlines()[-7:] == [
        "machines: 0 of 12 match for the child x (one reported by several neighbors counts for each)",
        "  here and below: 0 of 3",
        "  above: 0 of 9",
        "  0 to 9 lost to $free_slots >= $cpus",
        "  12 lost to $avail_mem >= $mem",
        "  0 to 9 lost to $avail_disk >= $disk",
        "  would match 3 of 12 if $mem were at most 4GiB",
    ]


@pytest.mark.parametrize(
    ("peer", "asker", "matched"),
    [
        ([], "a child", "0 of 12"),
        (["--peer", "relation=sibling"], "a sibling", "0 of 12"),
        (["--peer", "relation=parent", "--peer", "name=cs"], "the parent cs", "3 of 12"),
        (["--peer", "relation=self"], "a user", "3 of 12"),
    ],
)
def test_a_pool_shows_whose_rules_exclude_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], peer: list[str], asker: str, matched: str
) -> None:
    policy, pool = tmp_path / "a.policy", tmp_path / "pool.json"
    policy.write_text("accept from parent { require $mem <= 4GiB; limit 9 tasks; }")
    pool.write_text(json.dumps(VECTORS))
    assert main(["policy", "explain", str(policy), "--task", "mem=2GiB", *peer, "--pool", str(pool)]) == 0
    assert f"machines: {matched} match for {asker} (" in capsys.readouterr().out
    document = _document(capsys, str(policy), "--task", "mem=2GiB", *peer, "--pool", str(pool))
    assert document["pool"]["asker"] == asker


def test_the_views_of_a_running_module_are_a_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    start_peer((200, VECTORS), state=tmp_path)
    policy = tmp_path / "a.policy"
    policy.write_text("accept from any { limit 9 tasks; }")
    pool = _document(capsys, str(policy), *POOL_WORDS, "--views")["pool"]
    assert pool["machines"] == 12
    assert pool["matched"] == {"surely": 0, "could": 0}
    assert list(pool["pools"]) == ["here and below", "above"]
    assert {"text": "$avail_mem >= $mem", "surely": 12, "could": 12} in pool["lost"]
    assert {"text": "$mem were at most 4GiB", "matched": {"surely": 3, "could": 3}} in pool["changes"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("9" * 5_000, "cannot be read"),
        ("[]", "is not a document of `messiahs module vectors --json`"),
        ('{"up": {}}', "is not a document of `messiahs module vectors --json`"),
        (
            '{"views": {}, "up": {"classes": [{"count": 1, "attributes": {"load": [1.5]}, "some_lack": []}]}}',
            "is not a document",
        ),
    ],
)
def test_an_invalid_pool_is_reported(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    (tmp_path / "pool.json").write_text(text)
    assert main(["policy", "explain", str(file), "--pool", str(tmp_path / "pool.json")]) == 1
    assert expected in capsys.readouterr().err
