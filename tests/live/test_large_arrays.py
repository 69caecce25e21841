"""A hundred thousand waiting tasks cost next to nothing, and neither does their end."""

from collections import Counter
from pathlib import Path

import pytest

from messiahs.client import ModuleClient, Submission
from messiahs.client.connection import Document
from messiahs.client.status import is_final
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


def test_the_counts_of_an_array_that_is_cancelled_add_up_at_every_moment(pair: Federation) -> None:
    with ModuleClient(pair.state / "pair" / "left.sock", patience=60) as user:
        array = user.submit(Submission(argv=("sh", "-c", "exit $(({} % 2))"), members=400, tdv={"cpus": 1}))
        seen: list[Document] = []
        while not seen or not is_final(seen[-1]):
            seen.append(user.tasks(array)["tasks"][0])
            if len(seen) > 1 and seen[-1]["counts"].get("finished"):
                user.cancel(array)
        stored = user.tasks(array)["tasks"][0]
        members = [task["state"] for task in user.tasks(array, members=True)["tasks"]]
    for document in (*seen, stored):
        assert sum(document["counts"].values()) == 400
        assert sum(document["exit_codes"].values()) == document["counts"].get("finished", 0)
    assert Counter(members) == stored["counts"]
