"""Marks of attempts under a hard limit on file locks that an unprivileged starter cannot raise."""

import json
import subprocess
import sys

import pytest

from messiahs.executor.starter.attempt_marks import next_free

_PUT_ON = """
import resource
from messiahs.executor.starter.attempt_marks import Marks
marks, shown = Marks(), []
for folder in "abc":
    marks.put_on(folder)
    shown.append(marks.folder_of(b"self"))
marks.forget("a")
print(shown, marks.folder_of(b"self"))
"""


def _limited(hard: int | str, *arguments: str) -> str:
    command = ["prlimit", f"--locks={hard}:{hard}", sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.mark.processes
@pytest.mark.parametrize("hard", [0, 1, 2, 1000])
def test_no_attempt_is_marked_below_a_hard_limit_that_is_too_small(hard: int) -> None:
    assert _limited(hard, "-c", _PUT_ON) == "[None, None, None] None"


@pytest.mark.processes
def test_each_attempt_has_a_mark_of_its_own_below_a_large_hard_limit() -> None:
    assert _limited(1 << 30, "-c", _PUT_ON) == "['a', 'b', 'c'] c"


def test_a_mark_that_is_still_in_use_is_passed_over_also_after_the_largest_one() -> None:
    in_use = {1: "a", 2: "b", 4: "d", 8: "h"}
    assert next_free(2, largest=8, in_use=in_use) == 3
    assert next_free(3, largest=8, in_use=in_use) == 5
    assert next_free(7, largest=8, in_use=in_use) == 3
    assert next_free(8, largest=8, in_use=in_use) == 3


@pytest.mark.processes
def test_a_starter_says_once_that_it_can_mark_nothing() -> None:
    say = "from messiahs.executor.starter.attempt_marks import Marks; print(Marks().degraded)"
    assert _limited(1 << 30, "-c", say) == ""
    assert _limited(1000, "-c", say) == (
        "the hard limit on file locks is 1000, below 8388608: a process that hides its task ends only with the next one"
    )


@pytest.mark.processes
@pytest.mark.parametrize("hard", [0, 1])
def test_tasks_run_and_are_weighed_though_no_mark_is_possible(hard: int) -> None:
    _, weighed = json.loads(_limited(hard, "-m", "tests.unit.executor.lone_runner", "2"))
    assert sum(weighed) > 0
