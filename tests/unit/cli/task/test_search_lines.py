"""`messiahs explain`: whom a search has asked, what a task waits for, and what would have to change."""

from typing import Any

import pytest

from messiahs.cli.output import local_time
from messiahs.cli.task.search_lines import search_lines

AT = "2026-03-01T12:00:00.000Z"


def reason(module: str, code: str, text: str = "", /, *hops: dict[str, Any]) -> dict[str, Any]:
    return {"module": module, "code": code, "rule": "", "text": text, "why": "", "hops": list(hops)}


def asked(system: str, answer: str, *reasons: dict[str, Any], places: int = 0) -> dict[str, Any]:
    return {"system": system, "why": f"why {system}", "answer": answer, "places": places, "reasons": list(reasons)}


def search(*order: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"search": {"at": AT, "order": list(order), "left_out": [], "unlisted": 0, **more}}


def test_each_system_has_its_place_why_it_has_that_and_what_it_answered() -> None:
    behind = reason("gate", "no_capacity", "", reason("far", "refused_by_policy", "nobody from there"))
    document = search(
        asked("home", "no_class", reason("home", "no_class")),
        asked("gate", "no_capacity", behind),
        asked("open", "granted", places=2),
        asked("next", "not_asked"),
        left_out=[{"system": "small", "code": "no_class"}, {"system": "busy", "code": "no_capacity"}],
        unlisted=3,
    )
    assert list(search_lines(document)) == [
        f"asked since {local_time(AT)}, in this order:",
        "  1. home (why home): no machine is this large",
        "  2. gate (why gate): no machine that fits is free now",
        "       far: refused (nobody from there)",
        "  3. open (why open): granted 2 places",
        "  4. next (why next): not asked any more",
        "  not small: it has reported no machine, or none that is large enough",
        "  not busy: no machine that fits is free now, by what it has reported",
        "  and 3 systems more",
    ]


@pytest.mark.parametrize(
    ("present", "line"),
    [
        ({"is_searching": True, "asking": "gate", "next_at": None}, "waits for the answer of gate"),
        ({"is_searching": True, "asking": None, "next_at": None}, "a search for a place has begun"),
        (
            {"is_searching": False, "asking": None, "next_at": AT},
            f"waits for a free place: searches again by {local_time(AT)}, or as soon as a neighbor shows room",
        ),
    ],
)
def test_a_task_without_a_place_says_what_it_waits_for(present: dict[str, Any], line: str) -> None:
    assert list(search_lines({"round": present})) == [line]


def test_what_would_have_to_change_is_said_for_each_that_denied_and_for_the_task() -> None:
    machines = {
        "known": 3,
        "least": 1,
        "most": 2,
        "lost": [{"text": "$slots >= $cpus", "least": 0, "most": 1}],
        "changes": [{"text": "$cpus were at most 2", "least": 3, "most": 3}],
    }
    document = search(
        asked("gate", "refused_by_policy"),
        asked("far", "hop_limit"),
        left_out=[{"system": "busy", "code": "no_capacity"}],
    )
    assert list(search_lines({**document, "machines": machines}))[-6:] == [
        "1, perhaps 2, of 3 machines known here could take it, if idle and if the owner agrees",
        "  perhaps 1 not: $slots >= $cpus",
        "it would get a place if",
        "  the policy and the owner of gate let it in",
        "  a place became free at busy",
        "  $cpus were at most 2 (3 could)",
    ]


def test_texts_of_others_are_one_line_without_control_characters() -> None:
    document = search(asked("gate", "refused_by_policy", reason("gate", "refused_by_policy", "no\x1b[2J\nfinished")))
    lines = list(search_lines(document))
    assert len(lines) == 2
    assert "\x1b" not in lines[1]
    assert "\n" not in lines[1]


def test_a_module_that_says_nothing_of_it_adds_no_line() -> None:
    assert list(search_lines({"search": None, "round": None, "machines": None})) == []
    assert list(search_lines({})) == []
