"""`messiahs policy explain`: orders with the value of each key, and the answer to the sender."""

import json
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main

RANKS = """accept from any { limit 9 tasks; }
rank candidates by most $willingness, least $task.priority;
rank tasks by most $task.priority,
    first where $user eq "ann";
join { allow child when $peer.name like "*.cs" limit 5; allow parent when $now.clock > 3:00; }
"""


def _document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["policy", "explain", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def _neighbors(count: int) -> dict[str, Any]:
    views = {
        f"s{number:02}": {
            "relation": "child" if number % 2 else "parent",
            "age": 0.5,
            "machines": 1,
            "classes": [{"count": 1, "attributes": {"willingness": [number, number]}, "some_lack": []}],
        }
        for number in range(count)
    }
    return {"up": {"machines": 0, "classes": []}, "views": views}


def test_orders_are_shown_with_the_value_of_each_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "a.policy"
    policy.write_text(RANKS)
    assert main(["policy", "explain", str(policy), "--task", "user=ann"]) == 0
    printed = capsys.readouterr().out.replace(f"{policy}", "FILE").splitlines()
    assert printed[printed.index("FILE:3: rank tasks") - 3 :] == [
        "FILE:2: rank candidates: no neighbors are known without --views or --pool",
        "     2 most $willingness: differs from candidate to candidate",
        "     2 least $task.priority: uninitialised, goes last: $priority has no value",
        "FILE:3: rank tasks",
        "     3 most $task.priority: uninitialised, goes last: $priority has no value",
        '     4 first where $user eq "ann": true',
        '             true     $user eq "ann"  $user is "ann"',
        (
            "FILE: by default: advertise by key_changes(share = 0%), rank neighbors by most_waiting(), "
            "migrate by least_run(), allocate by as_asked()"
        ),
    ]


def test_the_first_ten_candidates_are_shown_and_a_document_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, pool = tmp_path / "a.policy", tmp_path / "pool.json"
    policy.write_text(RANKS)
    pool.write_text(json.dumps(_neighbors(12)))
    words = [str(policy), "--task", "priority=3", "--pool", str(pool)]
    assert main(["policy", "explain", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(place for place, line in enumerate(lines) if "1. s" in line)
    assert lines[first - 3].endswith(":2: rank candidates: 12 could be asked")
    assert lines[first] == "     1. s10 (parent): 10; 3"
    assert lines[first + 9] == "    10. s02 (parent): 2; 3"
    assert lines[first + 10] == "        and 2 more, which --json lists"
    candidates, tasks = _document(capsys, *words)["orders"]
    assert (candidates["block"], candidates["line"], candidates["unable"]) == ("rank candidates", 2, [])
    assert [each["system"] for each in candidates["ranked"]][-3:] == ["s02", "s01", "s00"]
    assert candidates["ranked"][-1]["keys"][1] == {"text": "3", "value": 3, "unset": []}
    assert (tasks["block"], tasks["ranked"]) == ("rank tasks", None)
    assert [(key["key"], key["line"], key["unset"]) for key in tasks["keys"]] == [
        ("most $task.priority", 3, []),
        ('first where $user eq "ann"', 4, []),
    ]
    assert tasks["keys"][1]["comparisons"][0]["finding"] == "missing"


@pytest.mark.parametrize(
    ("peer", "asked"),
    [
        (["name=s01"], ["s03", "s02", "s00"]),
        (["name=s02", "relation=parent"], ["s03", "s01"]),
        (["name=x", "relation=self"], ["s03", "s02", "s01", "s00"]),
    ],
)
def test_the_sender_of_a_task_is_not_asked_and_for_a_parent_only_children_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], peer: list[str], asked: list[str]
) -> None:
    policy, pool = tmp_path / "a.policy", tmp_path / "pool.json"
    policy.write_text(RANKS)
    pool.write_text(json.dumps(_neighbors(4)))
    words = [str(policy), "--pool", str(pool), *(word for text in peer for word in ("--peer", text))]
    order = _document(capsys, *words)["orders"][0]
    assert [each["system"] for each in order["ranked"]] == asked


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("child", ("accept from children", "refused: no task is accepted from children")),
        ("self", ("accept from users", "accepted: no block is about users")),
        ("parent", ("accept from parent", "accepted")),
    ],
)
def test_a_sender_is_answered_although_no_rule_is_about_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], relation: str, expected: tuple[str, str]
) -> None:
    policy = tmp_path / "a.policy"
    policy.write_text("accept from parent { }\n")
    (block,) = _document(capsys, str(policy), "--peer", f"relation={relation}")["blocks"]
    assert (block["block"], block["verdict"], block["rules"]) == (*expected, [])


def test_a_peer_is_shown_whether_it_may_join_and_by_which_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "a.policy"
    policy.write_text(RANKS)
    assert [block["block"] for block in _document(capsys, str(policy))["blocks"]] == ["accept from any"]
    *_, join = _document(capsys, str(policy), "--peer", "name=a.cs")["blocks"]
    assert (join["block"], join["line"], join["verdict"]) == ("join", 5, "it may join")
    (rule,) = join["rules"]
    assert (rule["result"], rule["note"]) == (True, "there are 0 of at most 5")
    assert rule["comparisons"][0]["values"] == {"$peer.name": "a.cs"}
    *_, other = _document(capsys, str(policy), "--peer", "name=a.ee")["blocks"]
    assert other["verdict"] == "it may not join: no rule lets it in as child"
    assert other["rules"][0]["comparisons"][0]["against"]
