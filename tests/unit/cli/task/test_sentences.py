"""What `cancel` and `wait` say at their end, the groups of `explain`, and instants in reasons."""

import time
from typing import Any

import pytest

from messiahs.cli.output import reason_lines, with_local_times
from messiahs.cli.task.groups import group_lines
from messiahs.cli.task.sentences import cancelled_text, waited_text

FINISHED: dict[str, Any] = {"id": "left.1", "state": "finished", "exit_code": 0}
ARRAY: dict[str, Any] = {
    "id": "left.9",
    "members": 500,
    "counts": {"finished": 497, "aborted": 3},
    "exit_codes": {"0": 495, "1": 2},
}


@pytest.mark.parametrize(
    ("cancelled", "text"),
    [
        ([(16, 40)], "16 of 40 cancelled; 24 had ended before"),
        ([(40, 40)], "40 of 40 cancelled"),
        ([(1, 1)], "left.1 cancelled"),
        ([(0, 1)], ""),
        ([(16, 40), (1, 1)], "17 of 41 cancelled; 24 had ended before"),
    ],
)
def test_cancel_says_how_many_it_ends(cancelled: list[tuple[int, int]], text: str) -> None:
    assert cancelled_text([{"id": "left.1", "cancelled": count, "members": of} for count, of in cancelled]) == text


def test_cancel_says_nothing_where_a_module_of_an_earlier_release_does_not_count() -> None:
    assert cancelled_text([{"id": "left.1"}]) == ""


def test_wait_says_how_many_of_several_tasks_failed_and_how_to_see_them() -> None:
    assert waited_text([ARRAY]) == "500 ended, 5 failed: messiahs status left.9 --failed"
    assert waited_text([FINISHED, ARRAY]) == "501 ended, 5 failed: messiahs status left.9 --failed"
    assert waited_text([FINISHED, {**FINISHED, "id": "left.2"}]) == "2 ended, none failed"
    assert waited_text([{**FINISHED, "exit_code": 1}]) == ""
    seven = [{**FINISHED, "id": f"left.{number}", "exit_code": 2} for number in range(1, 8)]
    assert waited_text(seven).endswith("messiahs status left.1 left.2 left.3 left.4 left.5 … --failed")


def test_the_members_of_an_array_are_grouped_by_what_has_become_of_them_and_why() -> None:
    reason = {"module": "left", "code": "no_class"}
    members: list[dict[str, Any]] = [
        *({**FINISHED, "id": f"left.9.{number}"} for number in (1, 2, 3, 5)),
        {**FINISHED, "id": "left.9.4", "exit_code": 3},
        {"id": "left.9.6", "state": "aborted", "cause": "time_limit", "text": "", "exit_code": None},
        {"id": "left.9.7", "state": "executing", "substate": "queued", "reasons": [reason]},
        {"id": "left.9.8", "state": "executing", "substate": "queued", "reasons": [reason]},
        {"id": "left.9.9", "state": "executing", "substate": "running"},
        {"id": "left.9.10", "state": "killed", "cause": "killed", "exit_code": None},
    ]
    assert list(group_lines(members)) == [
        "  4 finished (exit code 0): 1-3, 5",
        "  2 queued: 7-8",
        "    left: no machine is this large",
        "  1 finished (exit code 3): 4",
        "  1 aborted (time_limit): 6",
        "    ran longer than it may",
        "  1 running: 9",
        "  1 killed: 10",
        "  `messiahs explain left.9.4` shows what happened to that member",
    ]


def test_many_runs_of_members_are_cut() -> None:
    members = [{**FINISHED, "id": f"left.9.{number}"} for number in range(1, 40, 2)]
    assert list(group_lines(members)) == ["  20 finished (exit code 0): 1, 3, 5, 7, 9, 11, 13, 15 and 12 more"]


def test_instants_of_other_modules_are_shown_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        reason = {"module": "cs", "code": "refused_by_policy", "text": "none until 2026-11-27T15:00:01Z"}
        assert list(reason_lines([reason])) == ["cs: refused (none until 2026-11-28 00:00:01)"]
        assert with_local_times("until 2026-99-27T15:00:01Z, x2026-11-27T15:00:01Z") == (
            "until 2026-99-27T15:00:01Z, x2026-11-27T15:00:01Z"
        )
    finally:
        monkeypatch.undo()
        time.tzset()
