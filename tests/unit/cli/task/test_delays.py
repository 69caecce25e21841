"""Why tasks that have not ended make no progress, as people read it."""

from typing import Any

import pytest

from messiahs.cli.output import local_time
from messiahs.cli.task.delays import delay_lines

SINCE = "2026-03-01T12:00:00.000Z"
SHOWN = local_time(SINCE)
UNTIL, GONE = "2026-03-01T12:16:40.000Z", "gate-b, or a system behind it, does not know the task any more"
SHOWN_UNTIL = local_time(UNTIL)
BOUND = "south: north may move 100MiB in a day, and has moved 76.3MiB; it can continue in 24.0 h"
LINK = {"module": "gate-b", "code": "unreachable", "text": "gate-a is not linked: expired"}
STAGING: dict[str, Any] = {"id": "p1.1", "state": "executing", "substate": "staging", "executed_on": "b2"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"substate": "queued", "executed_on": "", "delay": {"of": "inputs", "since": SINCE, "text": BOUND}},
            [f"p1.1 waits for its files since {SHOWN}", f"  {BOUND}"],
        ),
        (
            {"delay": {"of": "outputs", "since": SINCE, "text": BOUND}, "reasons": [LINK]},
            [
                f"p1.1 has ended, and its output is not here yet since {SHOWN}",
                f"  {BOUND}",
                "  gate-b: gate-a is not linked: expired",
            ],
        ),
        (
            {"substate": "running", "delay": None, "reasons": [LINK]},
            ["p1.1 cannot be reached", "  gate-b: gate-a is not linked: expired"],
        ),
        (
            {"substate": "running", "delay": {"of": "attempt", "since": SINCE, "text": GONE, "until": UNTIL}},
            [
                f"p1.1 may be lost since {SHOWN}",
                f"  {GONE}",
                f"  it may still run there, and runs again when its lease has expired, by {SHOWN_UNTIL}",
            ],
        ),
        (
            {"substate": "running", "delay": {"of": "attempt", "since": None, "text": GONE, "until": None}},
            ["p1.1 may be lost", f"  {GONE}"],
        ),
        ({"delay": None, "reasons": []}, []),
        (
            {"substate": "queued", "hold": {"since": SINCE, "reason": "wrong data"}},
            [
                f"p1.1 is on hold since {SHOWN}",
                "  wrong data",
                "  nothing searches for a place until its release",
            ],
        ),
        ({"substate": "running", "hold": {"since": SINCE, "reason": "wrong data"}}, []),
        ({"state": "finished", "reasons": [LINK]}, []),
    ],
)
def test_a_task_whose_bytes_do_not_move_says_what_it_waits_for(more: dict[str, Any], expected: list[str]) -> None:
    assert list(delay_lines([{**STAGING, **more}])) == expected


def test_tasks_that_wait_for_the_same_share_the_lines() -> None:
    delayed = {**STAGING, "delay": {"of": "inputs", "since": SINCE, "text": BOUND}}
    tasks = [{**delayed, "id": f"p1.1.{number}"} for number in range(1, 4)]
    assert list(delay_lines(tasks)) == [
        f"p1.1.1 and 2 more wait for their files since {SHOWN}",
        f"  {BOUND}",
    ]


def test_the_members_of_an_array_that_are_on_hold_are_named() -> None:
    holds = [
        {"first": 3, "last": 9, "since": SINCE, "reason": "wrong\x1b data"},
        {"first": 12, "last": 12, "since": SINCE, "reason": ""},
    ]
    array = {"id": "p1.1", "members": 20, "counts": {"queued": 8, "finished": 12}, "holds": holds}
    assert list(delay_lines([array])) == [
        "p1.1 has members on hold",
        f"  3 to 9 are on hold since {SHOWN}: wrong\\x1b data",
        f"  12 is on hold since {SHOWN}",
    ]
    assert not list(delay_lines([{**array, "holds": []}]))
