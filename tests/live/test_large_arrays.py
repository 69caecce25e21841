"""A hundred thousand tasks that wait cost next to nothing, and neither does their end."""

from pathlib import Path

import pytest

from messiahs.client import ModuleClient, Submission
from tests.live.conftest import Federation

TASKS = 100_000
BYTES_PER_TASK = 2_048


def _memory_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(found) * 1_024


@pytest.mark.parametrize("items", [(), tuple(f"item-{number:06d}" for number in range(TASKS))], ids=["array", "items"])
def test_a_hundred_thousand_waiting_tasks_are_small_and_end_at_once(pair: Federation, items: tuple[str, ...]) -> None:
    with ModuleClient(pair.state / "pair" / "left.sock", patience=60) as user:
        before = _memory_bytes(pair.pid("left", "daemon"))
        submission = Submission(
            argv=("echo", "{}"), members=TASKS, items=items, requirement='$side eq "nowhere"', tdv={"cpus": 1}
        )
        array = user.submit(submission)
        assert user.tasks(array)["tasks"][0]["counts"] == {"queued": TASKS}
        assert _memory_bytes(pair.pid("left", "daemon")) - before < TASKS * BYTES_PER_TASK
        user.cancel(array)
        assert user.wait(array, timeout=60)["counts"] == {"killed": TASKS}
        assert user.tasks(f"{array}.77777")["tasks"][0]["state"] == "killed"
