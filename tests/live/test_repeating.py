"""Running failed tasks again, and submitting again under a key: the named tasks only."""

from messiahs.daemon.api.task_search import ROWS_OF_AN_ACT
from tests.live.conftest import Federation

MANY = 2 * ROWS_OF_AN_ACT + 100
FAILS_AT_FIRST = ("--", "sh", "-c", "test $MESSIAHS_ATTEMPT -gt 1")


def _ends(pair: Federation, array: str) -> list[tuple[int, int]]:
    tasks = pair.members(array)
    return [(task["attempt"], task["exit_code"]) for task in tasks]


def test_a_retry_of_a_member_runs_that_one_and_a_retry_of_the_array_the_others(pair: Federation) -> None:
    array = pair.submit("--array", "1-3", *FAILS_AT_FIRST)
    assert pair.run("wait", array).returncode == 1
    assert pair.run("retry", f"{array}.2", "--failed").stdout == f"{array}.2: 1 runs again\n"
    assert pair.run("wait", f"{array}.2").returncode == 0
    assert _ends(pair, array) == [(1, 1), (2, 0), (1, 1)]
    assert pair.run("retry", array, "--failed").stdout == f"{array}: 2 run again\n"
    assert pair.run("wait", array).returncode == 0
    assert _ends(pair, array) == [(2, 0), (2, 0), (2, 0)]
    assert pair.run("retry", f"{array}.2", "--failed").stdout == f"{array}.2: 0 run again\n"


def test_a_retry_of_more_members_than_are_changed_at_once_runs_each_of_them_once_more(pair: Federation) -> None:
    array = pair.submit("--array", f"1-{MANY}", *FAILS_AT_FIRST)
    assert pair.run("wait", array).returncode == 1
    assert pair.run("retry", array).stdout == f"{array}: {MANY} run again\n"
    assert pair.run("wait", array).returncode == 0
    assert _ends(pair, array) == [(2, 0)] * MANY


def test_a_cancelled_task_counts_as_failed_and_runs_again(pair: Federation) -> None:
    array = pair.submit("--array", "1-2", "--require", '$side eq "nowhere"', "--", "true")
    assert pair.run("cancel", array).returncode == 0
    assert pair.run("wait", array).returncode == 1
    assert len(pair.document("status", "--failed", array)["tasks"]) == 2
    assert pair.run("retry", array, "--failed").stdout == f"{array}: 2 run again\n"
    assert pair.status(array)["counts"] == {"queued": 2}
    assert pair.run("cancel", array).returncode == 0


def test_a_key_returns_the_same_id_only_for_the_same_command(pair: Federation) -> None:
    words = ("--key", "nightly", "--array", "1-2", "--", "echo", "a b")
    first = pair.submit(*words)
    assert pair.submit(*words) == first
    # Ended tasks are no longer in memory.
    assert pair.run("wait", first).returncode == 0
    assert pair.submit(*words) == first
    other = pair.run("submit", "--key", "nightly", "--", "echo", "c")
    assert other.returncode == 1
    problem = f"the key `nightly` is that of {first}, whose command is `echo 'a b'`, and this one's is `echo c`"
    assert problem in other.stderr
    assert "with other members" in pair.run("submit", "--key", "nightly", "--", "echo", "a b").stderr
    assert pair.run("run", "--key", "nightly", "--", "echo", "c").returncode == 125
