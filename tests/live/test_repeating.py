"""Running failed tasks again, and submitting again under a key: the named tasks only."""

from dataclasses import replace
from pathlib import Path

from messiahs.core.interface.actions import Store
from messiahs.daemon.api.task_search import ROWS_OF_AN_ACT
from messiahs.daemon.storage.store import RowStore
from tests.live.conftest import Federation, brought_up
from tests.live.test_retention import one_module

MANY = 2 * ROWS_OF_AN_ACT + 100
FAILS_AT_FIRST = ("--", "sh", "-c", "test $MESSIAHS_ATTEMPT -gt 1")


def _ends(pair: Federation, array: str) -> list[tuple[int, int]]:
    tasks = pair.members(array)
    return [(task["attempt"], task["exit_code"]) for task in tasks]


def test_a_retry_of_a_member_runs_that_one_and_a_retry_of_the_array_the_others(pair: Federation) -> None:
    array = pair.submit("--array", "1-3", *FAILS_AT_FIRST)
    assert pair.run("wait", array).returncode == 1
    assert pair.run("retry", f"{array}.2", "--failed").stdout == f"{array}.2, that for 2, runs again\n"
    assert pair.run("wait", f"{array}.2").returncode == 0
    assert _ends(pair, array) == [(1, 1), (2, 0), (1, 1)]
    assert pair.run("retry", array, "--failed").stdout == f"{array}: 2 run again\n"
    assert pair.run("wait", array).returncode == 0
    assert _ends(pair, array) == [(2, 0), (2, 0), (2, 0)]
    assert (
        pair.run("retry", f"{array}.2", "--failed").stdout
        == f"{array}.2: nothing to run again, since nothing has failed\n"
    )


def test_a_retry_of_several_tasks_runs_them_all_or_none_if_one_is_unknown(pair: Federation) -> None:
    array, single = pair.submit("--array", "1-2", *FAILS_AT_FIRST), pair.submit(*FAILS_AT_FIRST)
    assert pair.run("wait", array, single).returncode == 1
    refused = pair.run("retry", array, single, "left.99999")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "left.99999" in refused.stderr
    assert _ends(pair, array) == [(1, 1), (1, 1)]
    done = pair.document("retry", array, single)["tasks"]
    assert done == [{"id": array, "retried": 2}, {"id": single, "retried": 1}]
    assert pair.run("wait", array, single).returncode == 0


def test_a_retry_of_a_member_names_the_number_that_it_has(pair: Federation) -> None:
    array = pair.submit("--array", "0-2", "false")
    assert pair.run("wait", array).returncode == 1
    assert pair.run("retry", f"{array}.2").stdout == f"{array}.2, that for 1, runs again\n"


def test_a_number_that_is_no_member_is_told_with_the_members_and_the_one_that_has_it(pair: Federation) -> None:
    array, single = pair.submit("--array", "0-9:3", "true"), pair.submit("true")
    are = f"{array} has 4 members, {array}.1 to {array}.4"
    for word in ("retry", "status", "wait", "logs", "cancel", "clean", "explain", "fetch"):
        assert f"there is no {array}.6: {are}; {array}.3 is that for 6\n" in pair.run(word, f"{array}.6").stderr, word
    assert f"there is no {array}.0: {are}; {array}.1 is that for 0\n" in pair.run("retry", f"{array}.0").stderr
    assert (
        f"{array}.7: {are}, so nothing can wait for it\n" in pair.run("submit", "--after", f"{array}.7", "true").stderr
    )
    assert f"there is no {single}.1: {single} is a single task, without" in pair.run("logs", f"{single}.1").stderr


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


def test_a_retry_takes_the_files_of_then_unless_told_otherwise(pair: Federation, tmp_path: Path) -> None:
    given, other = tmp_path / "in.txt", tmp_path / "in2.txt"
    given.write_text("bad")
    other.write_text("other")
    check = "cat in.txt; grep -q good in.txt"
    array = pair.submit("--array", "1-2", "--input", f"{given}", "--input", f"{other}", "--", "sh", "-c", check)
    assert pair.run("wait", array).returncode == 1
    given.write_text("good")
    assert pair.run("retry", array).returncode == 0
    assert pair.run("wait", array).returncode == 1
    assert pair.run("logs", f"{array}.2").stdout == "bad"
    assert pair.run("retry", array, "--input", f"{given}").stdout == f"{array}: 2 run again\n"
    assert pair.run("wait", array).returncode == 0
    assert pair.run("logs", f"{array}.2").stdout == "good"


def test_a_retry_replaces_the_content_of_files_that_the_task_had_and_nothing_else(
    pair: Federation, tmp_path: Path
) -> None:
    given = tmp_path / "in.txt"
    given.write_text("bad")
    array = pair.submit("--array", "1-2", "--input", f"{given}", "--", "false")
    assert pair.run("wait", array).returncode == 1
    for words, why in (
        (("--input", f"{given}:new.txt"), f"new.txt is no input of {array}: a retry replaces the content of files"),
        (("--input", f"{tmp_path / 'none'}"), "none"),
        (("--input", f"@{array}.1/in.txt"), "fetch it, and give the file"),
    ):
        refused = pair.run("retry", array, *words)
        assert refused.returncode in (1, 2)
        assert why in refused.stderr
    own = pair.submit("--array", "1-2", "--input", f"{tmp_path}/in.txt:in{{}}", "--", "false")
    refused = pair.run("retry", f"{own}.2", "--input", f"{given}:in1")
    assert f"in1 is no input of {own}.2: a retry replaces" in refused.stderr
    alone = pair.run("retry", f"{array}.1", "--input", f"{given}")
    assert f"the members of {array} share in.txt: give a new one for all of it, {array}" in alone.stderr
    assert {member["attempt"] for member in pair.members(array)} == {1}


def test_a_member_is_retried_alone_with_a_new_file_of_its_own(pair: Federation, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"in-{number}").write_text("bad")
    check = "cat in.txt; grep -q good in.txt"
    sources = ("--input", f"{tmp_path}/in-{{}}:in.txt", "--input", f"{tmp_path}/in-{{}}")
    array = pair.submit("--array", "1-3", *sources, "--", "sh", "-c", check)
    assert pair.run("wait", array).returncode == 1
    (tmp_path / "in-2").write_text("good")
    all_of_it = pair.run("retry", array, "--input", f"{tmp_path}/in-2:in.txt")
    assert (
        f"each member of {array} has its own in.txt: give a new one for one of them, such as {array}.1"
        in all_of_it.stderr
    )
    retried = pair.run("retry", f"{array}.2", "--input", f"{tmp_path}/in-2:in.txt")
    assert retried.stdout == f"{array}.2, that for 2, runs again\n"
    assert pair.run("wait", f"{array}.2").returncode == 0
    assert [member["attempt"] for member in pair.members(array)] == [1, 2, 1]
    # A name that only one member has tells whose file it is.
    (tmp_path / "in-3").write_text("good")
    assert pair.run("retry", array, "--input", f"{tmp_path}/in-3").stdout == f"{array}: 2 run again\n"
    assert pair.run("wait", array).returncode == 1
    assert [pair.run("logs", f"{array}.{member}").stdout for member in (1, 2, 3)] == ["bad", "good", "bad"]
    assert pair.run("retry", f"{array}.3", "--input", f"{tmp_path}/in-3:in.txt").returncode == 0
    assert pair.run("wait", f"{array}.3").returncode == 0


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


def test_a_member_of_an_array_of_an_earlier_release_is_retried_and_the_array_ends_again(tmp_path: Path) -> None:
    solo = one_module(tmp_path, retention="forever")
    with brought_up(solo):
        array = solo.submit("--array", "1-3", "--", "false")
        assert solo.run("wait", array).returncode == 1
    store = RowStore(solo.folder("solo") / "module.db")
    ((row, _),) = store.submissions(after=None)
    store.commit([Store(row=replace(row, endings=()))], store.newest())
    store.close()
    with brought_up(solo):
        assert solo.run("retry", f"{array}.2").returncode == 0
        assert solo.run("wait", array).returncode == 1
        assert _ends(solo, array) == [(1, 1), (2, 1), (1, 1)]
        assert sum(solo.status(array)["counts"].values()) == 3
