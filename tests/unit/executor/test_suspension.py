"""The cost of keeping attempts suspended, and of measuring their memory, in files of /proc that are read."""

import json
import subprocess
import sys

import pytest

from messiahs.executor.starter.process_trees import PER_STEP

pytestmark = pytest.mark.processes

EACH = 8
"""More than is opened for an attempt of one process."""


@pytest.fixture(scope="module")
def counts() -> tuple[list[int], list[int]]:
    """Count the files that each step opens to check many attempts, and to measure them."""
    command = [sys.executable, "-m", "tests.unit.executor.lone_runner", str(3 * PER_STEP)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    looked, weighed = json.loads(done.stdout)
    return looked, weighed


def test_what_is_read_grows_with_the_attempts_and_not_with_their_square(counts: tuple[list[int], list[int]]) -> None:
    for turns in counts:
        assert 3 * PER_STEP <= sum(turns) <= 3 * PER_STEP * EACH


def test_no_turn_looks_at_all_attempts_if_they_are_many(counts: tuple[list[int], list[int]]) -> None:
    for turns in counts:
        assert max(turns) <= PER_STEP * EACH
        assert len(turns) >= 3
