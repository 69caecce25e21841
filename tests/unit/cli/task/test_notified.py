"""What people are told about notifications of the ends of their tasks."""

from typing import Any

import pytest

from messiahs.cli.output import local_time
from messiahs.cli.task.notified import notified_text

NEXT = "2026-03-08T10:00:00.000Z"


def told(**notified: object) -> str:
    document: dict[str, Any] = {"notified": {"at": None, "problem": "", "output": "", "retry": None, **notified}}
    return notified_text(document)


@pytest.mark.parametrize(("next_at", "again"), [(NEXT, f"next at {local_time(NEXT)}"), (None, "it is tried again now")])
def test_a_try_that_failed_is_told_with_when_the_next_one_is(next_at: str | None, again: str) -> None:
    text = told(problem="connection refused", retry={"tries": 3, "next_at": next_at})
    assert text == f"--notify: try 3 failed: connection refused; {again}"


def test_before_the_first_try_has_failed_and_after_the_end_of_all_no_try_is_told() -> None:
    assert told() == "its user is being notified of the end"
    assert told(at=NEXT) == f"its user was notified of the end at {local_time(NEXT)}"
    assert told(at=NEXT, problem="answered 404") == f"--notify failed at {local_time(NEXT)}: answered 404"
