"""Tasks wait for other tasks, whatever is killed meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import Federation
from tests.live.test_by_hand import ask_as, restart
from tests.live.test_files_travel import Local
from tests.live.two_machines import begin, finish, folder, office
from tests.waiting import eventually

__all__ = ["folder", "office"]

STRANGER = 65533


def open_log(folder: Path) -> Path:
    """Make a file that tasks of any account can write to: machines may have accounts of their own."""
    log = folder / "log"
    log.touch()
    log.chmod(0o666)
    return log


def ended(office: Federation, task: str) -> dict[str, Any]:
    office.run("wait", task)
    return office.status(task)


def test_tasks_run_in_their_order_although_the_daemon_is_killed_while_they_wait(
    office: Federation, folder: Path
) -> None:
    first, _ = begin(office, folder / "go", name="first")
    log = open_log(folder)
    second = office.submit("--after-ok", first, "--", "sh", "-c", f"sleep 0.2; echo second >> {log}")
    array = office.submit("--after-any", second, "--array", "1-3", "--", "sh", "-c", f"echo array >> {log}")
    last = office.submit("--after-ok", array, "--after", first, "--", "sh", "-c", f"echo last >> {log}")
    assert f"{second} waits for {first} to end with exit code 0\n" in office.run("status", second).stdout
    assert f"{array} waits for {second} to end\n" in office.run("status", array).stdout
    explained = office.run("explain", last).stdout
    assert f"{last}: waiting\n  {last} waits for {array} to end with exit code 0\n" in explained
    restart(office, "top")
    assert office.status(second)["substate"] == "queued"
    (folder / "go").touch()
    assert finish(office, last)["attempt"] == 1
    assert log.read_text(encoding="utf-8").split() == ["second", "array", "array", "array", "last"]


def test_a_task_starts_beside_one_that_it_only_waits_for_to_start(office: Federation, folder: Path) -> None:
    first, _ = begin(office, folder / "go", name="beside")
    beside = office.submit("--after", first, "--", "true")
    finish(office, beside)
    assert office.status(first)["state"] == "executing"
    (folder / "go").touch()
    finish(office, first)


def test_tasks_that_can_never_run_are_denied_with_the_reason_and_run_again_after_a_retry(
    office: Federation, folder: Path
) -> None:
    flag = folder / "repaired"
    first = office.submit("--", "sh", "-c", f"[ -e {flag} ]")
    second = office.submit("--after-ok", first, "--", "true")
    array = office.submit("--after-ok", second, "--array", "1-2", "--", "true")
    assert ended(office, array)["counts"] == {"denied": 2}
    shown = office.run("status", second).stdout
    assert (
        f"{second} was denied by\n  top: it waited in vain: {first} did not end with exit code 0 (exit code 1)\n"
        in shown
    )
    assert office.run("wait", second).returncode == 125
    late = office.submit("--after-ok", first, "--", "true")
    assert ended(office, late)["state"] == "denied"
    some = office.submit("--array", "1-3", "--", "sh", "-c", "exit $(( {} == 2 ? 5 : 0 ))")
    assert ended(office, some)["counts"]["finished"] == 3
    behind = office.submit("--after-ok", some, "--", "true")
    assert [each["text"] for each in ended(office, behind)["reasons"]] == [
        f"{some} did not end with exit code 0 (1 of 3: exit code 5)"
    ]
    refused = office.run("retry", second).stderr
    assert f"{first} did not end with exit code 0 (exit code 1): retry that first, then this" in refused
    flag.touch()
    for task in (first, second, array):
        assert office.run("retry", task).returncode == 0
    office.run("wait", array)
    assert office.status(array)["counts"] == {"finished": 2}


def test_each_member_of_an_array_waits_for_that_with_its_number_although_the_daemon_is_killed(
    office: Federation, folder: Path
) -> None:
    wait_for_file = f"while [ ! -e {folder}/{{}} ]; do sleep 0.05; done; [ {{}} -ne 2 ]"
    first = office.submit("--array", "1-3", "--", "sh", "-c", wait_for_file)
    log = open_log(folder)
    second = office.submit("--array", "1-3", "--after-each", first, "--", "sh", "-c", f"echo {{}} >> {log}")
    said = office.run("status", second).stdout
    assert f"{second} waits for {first}, member by member, to end with exit code 0\n" in said
    (folder / "3").touch()
    office.run("wait", f"{second}.3")
    assert log.read_text(encoding="utf-8") == "3\n"
    restart(office, "top")
    said = office.run("status", f"{second}.2").stdout
    assert f"{second}.2 waits for {first}.2 to end with exit code 0\n" in said
    assert office.status(f"{second}.1")["substate"] == "queued"
    for member in ("1", "2"):
        (folder / member).touch()
    assert ended(office, second)["counts"] == {"denied": 1, "finished": 2}
    assert f"{first}.2 did not end with exit code 0 (exit code 1)" in office.run("status", f"{second}.2").stdout
    assert [office.status(f"{second}.{member}")["after"][0]["is_met"] for member in (1, 2, 3)] == [True, False, True]
    assert log.read_text(encoding="utf-8") == "3\n1\n"
    refused = office.run("retry", second).stderr
    assert f"{first}.2 did not end with exit code 0 (exit code 1): retry that first, then this" in refused
    late = office.submit("--array", "1-3", "--after-each", first, "--", "true")
    assert ended(office, late)["counts"] == {"denied": 1, "finished": 2}
    assert f"{first}.2 did not end with exit code 0 (exit code 1)" in office.run("status", f"{late}.2").stdout


def test_a_retry_is_of_the_tasks_that_have_ended_when_its_whole_body_has_arrived(office: Federation) -> None:
    array = office.submit("--array", "1-3", "--require", "$slots > 999", "--", "true")
    office.run("cancel", f"{array}.1")
    connection = Local(office.folder("top").with_suffix(".sock"))
    connection.putrequest("POST", f"/v1/tasks/{array}/retry")
    connection.putheader("Content-Length", "2")
    connection.endheaders()
    office.run("cancel", array)
    assert ended(office, array)["counts"] == {"killed": 3}
    connection.send(b"{}")
    assert connection.getresponse().status == 200
    connection.close()
    office.run("cancel", array)
    assert ended(office, array)["counts"] == {"killed": 3}


def test_an_array_waits_member_by_member_only_for_an_array_of_its_size(office: Federation) -> None:
    array, single = office.submit("--array", "1-3", "--", "true"), office.submit("--", "true")
    for sizes, on, why in (
        (
            ("--array", "1-2"),
            array,
            f"{array} has 3 members, and this array has 2: with --after-each, both have as many",
        ),
        ((), array, f"with --after-each, an array waits for {array}, and this is a single task"),
        (("--array", "1-3"), single, f"{single} is a single task: with --after-each, an array waits for another array"),
    ):
        said = office.run("submit", *sizes, "--after-each", on, "--", "true")
        assert (said.returncode, said.stdout) == (2, "")
        assert why in said.stderr
    ended(office, array)


def test_a_task_takes_outputs_of_one_that_has_ended(office: Federation) -> None:
    made = "mkdir -p d/e; echo one > d/one; chmod +x d/one; ln -s one d/link; head -c 99999 /dev/zero > d/e/big"
    first = office.submit("--output", "d", "--output", "x", "--", "sh", "-c", f"{made}; echo x > x")
    finish(office, first)
    shown = "[ -x in/one ] && [ -L in/link ] && cat in/one in/link; wc -c < in/e/big; cat x > y"
    second = office.submit(
        "--input", f"@{first}/d:in", "--input", f"@{first}/x", "--output", "y", "--", "sh", "-c", shown
    )
    finish(office, second)
    assert office.run("logs", second).stdout == "one\none\n99999\n"
    third = office.submit("--input", f"@{second}/y:{{}}/", "--", "cat", "{}/y")
    finish(office, third)
    assert office.run("logs", third).stdout == "x\n"


def test_each_of_many_members_waits_for_that_with_its_number_that_ran_before(office: Federation) -> None:
    first = office.submit("--array", "1-1100", "--", "sh", "-c", "exit $(({} % 2))")
    assert office.run("wait", first).returncode == 1
    assert office.run("retry", f"{first}.7").returncode == 0
    late = office.submit("--array", "1-1100", "--after-each", first, "--", "true")
    assert office.run("wait", late).returncode == 1
    assert office.status(late)["counts"] == {"finished": 550, "denied": 550}
    again = office.run("retry", late)
    assert again.returncode == 1
    assert "did not end with exit code 0 (exit code 1): retry that first, then this" in again.stderr


def test_each_member_takes_the_output_of_that_with_its_number(office: Federation) -> None:
    first = office.submit("--array", "0-2", "--output", "{}.txt", "--", "sh", "-c", "echo {} > {}.txt")
    assert ended(office, first)["counts"] == {"finished": 3}
    second = office.submit("--array", "0-2", "--input", f"@{first}/{{}}.txt:in", "--", "cat", "in")
    assert ended(office, second)["counts"] == {"finished": 3}
    assert [office.run("logs", f"{second}.{member}").stdout for member in (1, 2, 3)] == ["0\n", "1\n", "2\n"]
    said = office.run("submit", "--array", "1-2", "--input", f"@{first}/a", "--", "true")
    assert f"{first} has 3 members, and this array has 2: outputs are taken member by member" in said.stderr
    said = office.run("submit", "--input", f"@{first}/a", "--", "true")
    assert (said.returncode, f"{first} has 3 tasks: name one, such as @{first}.1/a" in said.stderr) == (2, True)


def test_what_is_no_output_of_a_task_that_ended_well_is_refused(office: Federation, folder: Path) -> None:
    good = office.submit("--output", "a", "--output", "b", "--", "sh", "-c", "echo a > a; echo b > b")
    bad = office.submit("--output", "a", "--", "sh", "-c", "echo a > a; exit 3")
    finish(office, good)
    ended(office, bad)
    running, _ = begin(office, folder / "go", name="running")
    for named, why in (
        (f"@{good}/c", f"`@{good}/c` is no output of {good}: it left a, b"),
        (f"@{good}", f"`@{good}/` is no output of {good}: it left a, b"),
        (f"@{bad}/a", f"{bad} did not end with exit code 0 (exit code 3), so its outputs are no inputs of others"),
        (f"@{bad}/c", f"{bad} did not end with exit code 0 (exit code 3), so its outputs are no inputs of others"),
        (f"@{running}/a", f"`a` is no output of {running}: it declares none"),
        ("@top.9999/a", "top.9999"),
    ):
        said = office.run("submit", "--input", named, "--", "true")
        assert (said.returncode > 0, said.stdout) == (True, "")
        assert why in said.stderr
    (folder / "go").touch()
    finish(office, running)


def test_a_task_that_waits_is_cancelled_or_denied_at_its_deadline(office: Federation, folder: Path) -> None:
    first, _ = begin(office, folder / "go", name="long")
    waiting = office.submit("--after-any", first, "--", "true")
    assert office.run("cancel", waiting).returncode == 0
    assert office.status(waiting)["state"] == "killed"
    late = office.submit("--after-any", first, "--deadline", "1s", "--", "true")
    assert [each["code"] for each in ended(office, late)["reasons"]] == ["timed_out"]
    (folder / "go").touch()
    finish(office, first)


@pytest.mark.parametrize(
    ("on", "code", "why"),
    [
        ("top.999", 1, "no task top.999 is known here, so nothing can wait for it"),
        ("left.1", 2, "`left.1` is a task of left: a task of top can wait only for tasks submitted to top"),
        ("nonsense", 1, "no task nonsense is known here"),
    ],
)
def test_a_task_waits_for_no_unknown_task(office: Federation, on: str, code: int, why: str) -> None:
    said = office.run("submit", "--module", "top", "--after-ok", on, "--", "true")
    assert (said.returncode, said.stdout) == (code, "")
    assert why in said.stderr


def test_a_task_waits_for_no_task_of_another_user(office: Federation) -> None:
    office.folder("top").parent.chmod(0o711)
    theirs = str(ask_as(office, STRANGER, "submit", "true")["id"])
    said = office.run("submit", "--after-any", theirs, "--", "true")
    assert f"{theirs} belongs to another user" in said.stderr
    eventually(lambda: office.status(theirs)["state"] == "finished")


def test_a_repeated_submit_with_other_dependencies_is_refused(office: Federation) -> None:
    first = office.submit("--", "true")
    second = office.submit("--key", "ordered", "--after-any", first, "--", "true")
    finish(office, second)
    assert office.submit("--key", "ordered", "--after-any", first, "--", "true") == second
    said = office.run("submit", "--key", "ordered", "--", "true")
    assert "with other dependencies" in said.stderr


def test_with_no_wait_a_deadline_bounds_the_wait_for_another_task(pair: Federation) -> None:
    first = pair.submit("--", "sleep", "600")
    second = pair.submit("--no-wait", "--deadline", "1s", "--after-ok", first, "--", "true")
    pair.run("wait", second)
    ended = pair.status(second)
    assert ended["state"] == "denied"
    assert "until its deadline" in str(ended["reasons"])
    pair.run("cancel", first)
