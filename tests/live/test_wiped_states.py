"""A module that has lost its state: the fate of the tasks that it owned or ran."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from messiahs.core.interface.rows import RememberedRow, RowKind
from messiahs.trace.format.rows import decode_row
from tests.live.lab import Lab, short_lease_lab
from tests.live.test_leases import LEASE_SECONDS, Beating, beating_task
from tests.waiting import eventually

_SYSTEMS = """
  home: {}
  middle: {parent: home}
  one: {parent: middle, machine: {isolation: process, slots: 1}}
  two: {parent: home, machine: {isolation: process, slots: 1}}
"""


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Share a module with users, a machine below it and one behind a hop, all with a short lease."""
    with short_lease_lab(tmp_path_factory.mktemp("wiped"), _SYSTEMS, seconds=LEASE_SECONDS) as made:
        yield made


@pytest.fixture
def beating(short: Lab) -> Iterator[Beating]:
    """Return a task that runs behind the hop."""
    short.kill("two")
    with beating_task(short.federation) as made:
        short.start("two")
        assert made.executor() == "one"
        yield made


def test_an_attempt_at_a_wiped_executor_ends_and_a_new_one_starts(short: Lab, beating: Beating) -> None:
    short.kill("one", starter=True)
    short.wipe("one")
    short.start("one")
    eventually(lambda: beating.is_gone(1))
    beating.await_beats(2)
    beating.check_second()


def test_a_task_of_a_wiped_origin_is_ended_and_its_id_is_unknown(short: Lab, beating: Beating) -> None:
    federation = short.federation
    eventually(lambda: remembered(short, "two") >= 1)
    short.kill("home")
    short.wipe("home")
    short.start("home")
    eventually(lambda: beating.is_gone(1))
    asked = federation.run("status", beating.task)
    assert asked.returncode == 1
    assert beating.task in asked.stderr
    # Its neighbor remembers the highest number that was given out, so no id is used again.
    log = federation.folder("home") / "module.log"
    eventually(lambda: "numbers_skipped" in log.read_text())
    again = [federation.submit("--", "sh", "-c", f"echo {number}") for number in range(5)]
    assert all(int(task.rpartition(".")[2]) > 1_000 for task in again)
    assert federation.run("status", beating.task).returncode == 1
    assert [federation.run("wait", task).returncode for task in again] == [0] * len(again)
    assert [federation.run("logs", task).stdout for task in again] == [f"{number}\n" for number in range(5)]


def test_an_older_copy_is_detected_by_its_mark_and_numbers_continue_above_the_lost_ones(short: Lab) -> None:
    _old_and_new(short, keeps_mark=True)


def test_an_older_copy_of_the_whole_folder_is_detected_by_a_neighbors_record(short: Lab) -> None:
    _old_and_new(short, keeps_mark=False)


def _old_and_new(short: Lab, *, keeps_mark: bool) -> None:
    federation = short.federation
    folder = federation.folder("home")
    kept = federation.submit("--", "echo", "kept")
    assert federation.run("wait", kept).returncode == 0
    short.kill("home")
    names = [path.name for path in folder.glob("module.db*")] + ([] if keeps_mark else ["module.mark"])
    copies = {name: (folder / name).read_bytes() for name in names}
    short.start("home")
    lost = [federation.submit("--", "true") for _ in range(3)]
    assert [federation.run("wait", task).returncode for task in lost] == [0] * len(lost)
    # A neighbor receives it with the next hello.
    short.kill("middle")
    short.start("middle")
    eventually(lambda: remembered(short, "middle") >= int(lost[-1].rpartition(".")[2]))
    short.kill("home")
    for path in folder.glob("module.db*"):
        path.unlink()
    for name, content in copies.items():
        (folder / name).write_bytes(content)
    short.start("home")
    eventually(lambda: "older_copy" in (folder / "module.log").read_text())
    assert federation.run("logs", kept).stdout == "kept\n"
    assert all(federation.run("status", task).returncode == 1 for task in lost)
    again = federation.submit("--", "echo", "again")
    assert int(again.rpartition(".")[2]) > int(lost[-1].rpartition(".")[2]) + 500
    assert federation.run("wait", again).returncode == 0
    assert federation.run("logs", again).stdout == "again\n"
    notes = next(one["notes"] for one in federation.document("module", "list")["modules"] if one["name"] == "home")
    assert any("older copy" in note for note in notes)
    assert kept in federation.run("status").stdout


def remembered(short: Lab, module: str) -> int:
    """Return the highest number given out by `home` that a neighbor has stored."""
    query = "SELECT kind, key, body FROM rows WHERE kind = ?"
    with closing(sqlite3.connect(short.federation.folder(module) / "module.db")) as connection:
        rows = [decode_row(*each) for each in connection.execute(query, (RowKind.REMEMBERED,))]
    return max(
        (row.given.submissions for row in rows if isinstance(row, RememberedRow) and row.system == "home"), default=0
    )
