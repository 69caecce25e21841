"""`messiahs plan`: a plan for people, and its exit codes."""

from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.cli.task.plan_lines import plan_lines
from tests.unit.client.local_api_peer import StartPeer

AT = "2026-03-01T12:00:00.000Z"
NOTE = "neighbors are judged by what they last advertised: when asked, they decide by their own policy"
MACHINES = {"known": 2, "least": 1, "most": 1, "lost": [], "changes": []}


def reason(module: str, code: str, **more: str) -> dict[str, Any]:
    return {"module": module, "code": code, "rule": "", "text": "", "why": "", "hops": [], **more}


def asked(system: str, answer: str, *reasons: dict[str, Any], places: int = 0) -> dict[str, Any]:
    return {"system": system, "why": f"why {system}", "answer": answer, "places": places, "reasons": list(reasons)}


def search(*order: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"at": AT, "order": list(order), "left_out": [], "unlisted": 0, **more}


def plan(**more: object) -> dict[str, Any]:
    document = {
        "at": AT, "outcome": "start", "is_sure": True, "is_known": True, "tdv": {}, "requirement": "", "tasks": 1,
        "descriptions": 1, "ahead": 0, "after": [], "held": [], "search": None, "likely": [], "asks": 64, "reasons": [],
        "round": None, "last_search": None, "machines": MACHINES,
    }  # fmt: skip
    return document | more


def test_a_task_that_its_own_module_takes_starts_there() -> None:
    lines = plan_lines(plan(search=search(asked("home", "granted", places=1))))
    assert list(lines) == [
        "would start now on home",
        "would ask for a place, in this order:",
        "  1. home (why home): would grant 1 place",
        NOTE,
    ]


def test_tasks_of_an_array_are_counted_with_those_that_a_held_claim_takes() -> None:
    own = search(asked("home", "granted", places=2), asked("gate", "not_asked"))
    document = plan(tasks=9, ahead=1, held=[{"system": "far", "tasks": 3}], search=own)
    assert next(plan_lines(document)) == (
        "4 of 9 tasks would start now on far, home, and neighbors would be asked for the other 5"
    )


def test_descriptions_of_which_the_same_would_become_are_told_together() -> None:
    own = search(asked("home", "granted", places=1))
    first, alike = ({"tdv": {"cpus": 1, "size": each}, "search": own} for each in (1, 3))
    other = plan(tdv={"cpus": 1, "size": 2}, outcome="deny")
    document = plan(**first, descriptions=5, others=[other, plan(**alike)])
    assert list(plan_lines(document)) == [
        "with size=1 or size=3:",
        "  would start now on home",
        "  would ask for a place, in this order:",
        "    1. home (why home): would grant 1 place",
        "with size=2:",
        "  would be denied, since no machine is known to have room now",
        "  1 of 2 machines known here could take it, if idle and if the owner agrees",
        "not planned: 2 descriptions more",
        NOTE,
    ]


def test_a_refusal_by_the_own_policy_has_its_rule_and_values_and_neighbors_only_show_room() -> None:
    refused = reason("home", "refused_by_policy", rule="require $mem < 1GiB", text="small only", why="$mem is 2GiB")
    own = search(
        asked("home", "refused_by_policy", refused),
        asked("gate", "not_asked"),
        asked("far", "not_asked"),
        left_out=[{"system": "tiny", "code": "no_class"}],
    )
    assert list(plan_lines(plan(is_sure=False, likely=["gate"], search=own, asks=1))) == [
        "would start now, if a neighbor that shows room agrees: gate would be asked first",
        "would ask for a place, in this order:",
        "  1. home (why home): refused (require $mem < 1GiB: small only), because $mem is 2GiB",
        "  2. gate (why gate): would be asked",
        "  3. far (why far): would be asked",
        "  not tiny: it has reported no machine, or none that is large enough",
        "  at most 1 neighbor would be asked in one search",
        NOTE,
    ]


def test_a_start_at_a_neighbor_that_does_not_say_whether_it_has_such_a_machine_is_only_possible() -> None:
    own = search(asked("home", "requirement_unmet"), asked("gate", "not_asked"))
    lost = {"text": '$site eq "mars" (not known of 3 machines)', "least": 0, "most": 1}
    machines = {**MACHINES, "known": 3, "least": 0, "most": 3, "lost": [lost]}
    document = plan(is_sure=False, is_known=False, likely=["gate"], search=own, machines=machines)
    lines = list(plan_lines(document))
    assert (
        lines[0] == "may start now: no machine shows all that it needs; gate, which may have one, would be asked first"
    )
    assert lines[4:6] == [
        "perhaps 3 of 3 machines known here could take it, if idle and if the owner agrees",
        '  perhaps 1 not: $site eq "mars" (not known of 3 machines)',
    ]


def test_a_task_that_would_wait_has_why_and_what_would_have_to_change() -> None:
    own = search(asked("home", "no_capacity", reason("home", "no_capacity")), asked("gate", "not_asked"))
    document = plan(outcome="wait", is_sure=False, search=own, reasons=[reason("home", "no_capacity")])
    lines = list(plan_lines(document))
    assert lines[:2] == [
        "would wait for a free place, unless a neighbor makes room",
        "  home: no machine that fits is free now",
    ]
    assert lines[-4:] == [
        "1 of 2 machines known here could take it, if idle and if the owner agrees",
        "it would get a place if",
        "  a place became free at home",
        NOTE,
    ]


def test_tasks_ahead_come_with_what_their_last_search_was_answered() -> None:
    denied = asked("gate", "refused_by_policy", reason("gate", "refused_by_policy", text="not today"))
    document = plan(outcome="wait", ahead=2, is_sure=False, last_search=search(denied))
    lines = list(plan_lines(document))
    assert lines[0] == "would wait for a free place, behind 2 tasks of the same description"
    assert "  1. gate (why gate): refused (not today)" in lines


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"outcome": "deny"}, "would be denied, since no machine is known to have room now"),
        (
            {
                "outcome": "deny",
                "tasks": 0,
                "reasons": [reason("home", "dependency_failed", text="left.1 failed")],
            },
            "would be denied, since it would wait in vain",
        ),
        (
            {"outcome": "wait", "tasks": 0, "after": [{"on": "home.1", "when": "ok", "is_met": False}]},
            "would wait for home.1 to end with exit code 0",
        ),
    ],
)
def test_other_outcomes_have_a_sentence_each(more: dict[str, object], line: str) -> None:
    assert next(plan_lines(plan(**more))) == line


@pytest.mark.parametrize(
    ("outcome", "other", "code"),
    [("start", "start", 0), ("wait", "start", 3), ("deny", "wait", 4), ("start", "wait", 3), ("wait", "deny", 4)],
)
def test_the_exit_code_says_what_would_become_of_the_task(
    tmp_path: Path, start_peer: StartPeer, monkeypatch: pytest.MonkeyPatch, *, outcome: str, other: str, code: int
) -> None:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    answer = plan(outcome=outcome, held=[{"system": "far", "tasks": 1}], others=[plan(outcome=other)])
    peer = start_peer((200, answer), state=tmp_path)
    (tmp_path / "data").write_bytes(b"seven")
    words = ["--mem", "1GiB", "--input", str(tmp_path / "data"), "--input", "@left.3/out", "--array", "1-3"]
    assert main(["plan", *words, "--", "cat", "data"]) == code
    # No file is uploaded, and no output of another task is kept for it.
    ((method, path, body),) = peer.asked
    assert (method, path) == ("POST", "/v1/plan")
    assert (body["tdv"], body["members"], body["argv"]) == ({"mem": 1 << 30}, 3, ["cat", "data"])
    assert body["after"] == [{"on": "left.3", "when": "ok"}]
    inputs = body["inputs"]
    assert isinstance(inputs, list)
    assert [file["name"] for file in inputs] == ["data"]
