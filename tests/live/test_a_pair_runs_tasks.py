"""The user's view of two modules on one machine."""

import hashlib
import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.client.status import Ended, Listed
from messiahs.config.settings import DEFAULT_TASK_UIDS
from tests.live.conftest import Federation
from tests.waiting import eventually

pytestmark = pytest.mark.quick  # the one live federation that every change is tested with

ON_RIGHT = ("--require", '$side eq "right"')
NOWHERE = ("--require", '$side eq "nowhere"')


def test_a_command_submitted_at_left_runs_on_right_and_returns_its_output(pair: Federation) -> None:
    done = pair.run("run", *ON_RIGHT, "--", "uname", "-s", "-n")
    assert (done.returncode, done.stdout) == (0, " ".join(os.uname()[:2]) + "\n")
    last = pair.document("status")["tasks"][-1]
    assert (last["argv"], last["executed_on"], last["state"]) == (["uname", "-s", "-n"], "right", "finished")


def test_the_requirement_of_the_readme_is_met(pair: Federation) -> None:
    done = pair.run("run", "--require", "$free_slots >= 1", "--", "uname", "-a")
    assert done.returncode == 0
    assert done.stdout.startswith(os.uname().sysname)


def test_run_returns_both_streams_and_the_exit_code_of_the_task(pair: Federation) -> None:
    done = pair.run("run", *ON_RIGHT, "--", "sh", "-c", "echo to out; echo to err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "to out\n", "to err\n")


def test_a_signal_ends_run_with_128_and_its_number(pair: Federation) -> None:
    assert pair.run("run", *ON_RIGHT, "--", "sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL


def test_an_unknown_program_exits_with_127_and_is_named(pair: Federation) -> None:
    done = pair.run("run", *ON_RIGHT, "--", "no-such-program")
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


def test_a_task_that_runs_too_long_is_ended(pair: Federation) -> None:
    done = pair.run("run", *ON_RIGHT, "--time", "1s", "--", "sleep", "600")
    assert done.returncode == 125
    assert "ran longer than --time " in done.stderr


def test_a_large_output_arrives_completely(pair: Federation) -> None:
    size = 3_000_000
    done = pair.run("run", *ON_RIGHT, "--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")
    assert hashlib.sha256(done.stdout.encode()).digest() == hashlib.sha256(b"x" * size).digest()


def test_output_is_shown_while_the_task_runs(pair: Federation, shared: Path) -> None:
    script = f"echo first; while [ ! -e {shared}/go ]; do sleep 0.05; done; echo second"
    running = pair.start("run", *ON_RIGHT, "--", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "first\n"
    (shared / "go").touch()
    out, _ = running.communicate()
    assert (running.returncode, out) == (0, "second\n")


def test_interrupting_run_ends_the_task(pair: Federation) -> None:
    script = "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    running = pair.start("run", *ON_RIGHT, "--", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate()
    assert (running.returncode, out) == (130, "told\n")
    assert pair.document("status")["tasks"][-1]["state"] == "killed"


def test_a_task_sees_its_identity_and_little_else(pair: Federation) -> None:
    done = pair.run("run", *ON_RIGHT, "--env", "COLOUR=blue", "--", "sh", "-c", "env")
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    last = pair.document("status")["tasks"][-1]
    assert (seen["MESSIAHS_TASK_ID"], seen["MESSIAHS_ATTEMPT"], seen["COLOUR"]) == (last["id"], "1", "blue")
    assert seen["HOME"] == seen["TMPDIR"] == seen["PWD"]
    assert not any(name.startswith("PYTHON") or name == "MESSIAHS_STATE" for name in seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="only a daemon that runs as root changes the account")
def test_a_task_never_runs_as_root(pair: Federation) -> None:
    first, last = DEFAULT_TASK_UIDS
    assert first <= int(pair.run("run", *ON_RIGHT, "--", "id", "-u").stdout) <= last


def test_the_kernel_identifies_the_user(pair: Federation) -> None:
    task = pair.submit("--", "true")
    assert pair.status(task)["user"] == pwd.getpwuid(os.geteuid()).pw_name


def test_every_member_of_an_array_runs_once(pair: Federation) -> None:
    array = pair.submit("--array", "1-60", "--", "sh", "-c", "sleep 0.2; echo $MESSIAHS_ARRAY_INDEX")
    assert pair.run("wait", array).returncode == 0
    status = pair.status(array)
    assert (status["members"], status["counts"], status["exit_codes"]) == (60, {"finished": 60}, {"0": 60})
    members = pair.document("status", array, "--members")["tasks"]
    assert {member["executed_on"] for member in members} == {"left", "right"}
    assert {member["attempt"] for member in members} == {1}
    assert pair.run("logs", f"{array}.17").stdout == "17\n"


def test_a_wait_ends_in_time_and_several_tasks_have_their_output_behind_their_ids(pair: Federation) -> None:
    endless = pair.submit("--", "sleep", "600")
    waited = pair.run("wait", "--timeout", "1s", endless)
    assert (waited.returncode, waited.stderr) == (124, "messiahs: not all have ended within 1 s; they run on\n")
    assert pair.run("cancel", endless).returncode == 0
    first, array = pair.submit("--", "printf", "a\\nb"), pair.submit("--array", "7-8", "--", "echo", "{}")
    assert pair.run("wait", "--timeout", "10min", first, array).returncode == 0
    shown = f"{first}: a\n{first}: b\n{array}.1: 7\n{array}.2: 8\n"
    assert pair.run("logs", first, array).stdout == shown
    both = pair.run("logs", "--follow", first, array)
    assert (both.returncode, "--follow takes one task or array" in both.stderr) == (2, True)


def test_commands_say_how_many_tasks_of_an_array_they_are_about(pair: Federation) -> None:
    array = pair.submit("--array", "0-5", "--", "sh", "-c", "test {} = 0 && exit 3; test {} = 1 && kill -9 $$; exit 0")
    assert pair.run("wait", array).stderr == f"6 ended, 2 failed: messiahs status {array} --failed\n"
    groups = pair.run("explain", array).stdout.splitlines()
    assert (groups[0], groups[1]) == (f"{array}: 6 tasks", "  4 finished (exit code 0): 3-6")
    (document,) = pair.document("explain", array)["tasks"]
    assert [(group["count"], group["members"]) for group in document["groups"]] == [
        (4, [[3, 6]]),
        (1, [[1, 1]]),
        (1, [[2, 2]]),
    ]
    assert document["groups"][1]["what"] == "finished (exit code 3)"
    assert pair.run("retry", "--killed", array).stdout == f"{array}: 1 runs again\n"
    assert pair.run("wait", array).returncode == 1
    assert [member["attempt"] for member in pair.members(array)][:2] == [1, 2]
    waiting = pair.submit("--array", "1-3", "--require", '$side eq "nowhere"', "--", "true")
    assert pair.run("cancel", f"{waiting}.2").stdout == f"{waiting}.2 cancelled\n"
    assert pair.run("cancel", waiting).stdout == "2 of 3 cancelled; 1 had ended before\n"


def test_members_that_wait_for_others_of_their_array_say_so(pair: Federation) -> None:
    array = pair.submit("--array", "1-3%1", "--", "sleep", "600")
    eventually(lambda: pair.status(f"{array}.1")["substate"] == "running")
    why = "for others of the same array (at most 1 at once)"
    assert pair.run("explain", array).stdout.splitlines()[1:3] == ["  2 waiting: 2-3", f"    waits {why}"]
    assert pair.run("explain", f"{array}.3").stdout == f"{array}.3: waiting\n  {array}.3 waits {why}\n"
    assert f"\n{array}.2 and 1 more wait {why}\n" in pair.run("status", "--members", array).stdout
    assert [member["behind"] for member in pair.members(array)] == [None, 1, 1]
    pair.run("cancel", array)
    assert [member["behind"] for member in pair.members(array)] == [None, None, None]


def test_the_history_has_what_ran_where_and_what_it_used(pair: Federation) -> None:
    array = pair.submit("--array", "1-2", "--", "sh", "-c", "exit $(({} - 1))")
    waiting = pair.submit("--require", '$side eq "nowhere"', "--", "true")
    assert pair.run("wait", array).returncode == 1
    failed = {task["id"]: task for task in pair.document("history", "--since", "1h", "--failed")["tasks"]}
    assert f"{array}.2" in failed
    assert not {f"{array}.1", waiting} & failed.keys()
    assert failed[f"{array}.2"]["executed_on"] in {"left", "right"}
    assert failed[f"{array}.2"]["usage"]["cpu_s"] is not None
    (together,) = (one for one in pair.document("history", "--arrays")["arrays"] if one["id"] == array)
    assert (together["tasks"], together["failed"], together["cpu_s"] is not None) == (2, 1, True)
    shown = pair.run("history").stdout
    assert f"{array}.1 " in shown
    assert waiting not in shown
    with pair.client("left") as client:
        assert f"{array}.1" in [task["id"] for task in client.tasks(members=True, among=Ended(1))["tasks"]]
        assert client.tasks(members=True, among=Ended(10**11))["tasks"] == []
        assert client.tasks(members=True, among=Ended(1, "somebody else"))["tasks"] == []
    pair.run("cancel", waiting)


def test_a_program_in_the_current_folder_is_brought_as_run_says(
    pair: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "prog").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "bin" / "prog").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    absent = pair.run("run", "--", "bin/prog")
    assert (absent.returncode, absent.stdout) == (127, "")
    assert absent.stderr.endswith("\n    ./bin/prog is here: add `--input bin/prog:bin/prog`\n")
    for words in (("--input", "bin/prog:bin/prog"), ("--input", ".:.")):
        assert pair.run("run", *words, "--", "bin/prog").stdout == "hello\n"
    monkeypatch.chdir(tmp_path / "bin")
    unnamed = pair.run("run", "--input", "prog", "--", "prog")
    assert unnamed.stderr.endswith("\n    prog is an input: run `./prog`\n")
    assert pair.run("run", "--input", "prog", "--", "./prog").stdout == "hello\n"


def test_a_module_lists_the_tasks_of_a_user_and_those_that_have_not_ended(pair: Federation) -> None:
    array = pair.submit("--array", "1-2", "--", "sh", "-c", "test {} = 1 || sleep 600")
    eventually(lambda: pair.members(array)[0]["state"] == "finished")
    done = pair.submit("--", "true")
    assert pair.run("wait", done).returncode == 0
    with pair.client("left") as client:

        def listed(*, members: bool = False, user: str | None = None, only_active: bool = False) -> set[str]:
            found = client.tasks(members=members, among=Listed(user, only_active))["tasks"]
            return {task["id"] for task in found} & {array, done, f"{array}.1", f"{array}.2"}

        (me,) = {task["user"] for task in client.tasks(array)["tasks"]}
        assert listed() == listed(user=me) == {array, done}
        assert listed(only_active=True) == listed(user=me, only_active=True) == {array}
        assert listed(members=True, only_active=True) == {f"{array}.2"}
        assert listed(user="somebody else") == set()
    assert pair.run("cancel", "--mine").returncode == 0
    assert pair.run("wait", array).returncode == 1
    assert pair.run("status", "--mine", "--active").stdout == ""


def test_the_logs_of_an_array_are_those_of_all_members_with_their_ids(pair: Federation) -> None:
    script = "echo {} a; printf '{} b'; echo {} e >&2; test {} != 3"
    array = pair.submit("--array", "2-4", "--", "sh", "-c", script)
    following = pair.start("logs", array, "--follow")
    assert pair.run("wait", array).returncode == 1
    expected = "".join(f"{array}.{place}: {place + 1} a\n{array}.{place}: {place + 1} b\n" for place in (1, 2, 3))
    assert pair.run("logs", array).stdout == expected
    assert pair.run("logs", array, "--failed", "--stderr").stdout == f"{array}.2: 3 e\n"
    assert sorted(following.communicate()[0].splitlines()) == expected.splitlines()
    assert pair.run("logs", f"{array}.1").stdout == "2 a\n2 b"
    assert pair.run("logs", f"{array}.1", "--failed").returncode == 2


def test_logs_follow_an_array_until_members_that_never_run_have_ended(pair: Federation) -> None:
    array = pair.submit("--array", "1-9", "--require", '$side eq "nowhere"', "--", "true")
    following = pair.start("logs", array, "--follow")
    pair.run("cancel", f"{array}.3")
    pair.run("cancel", array)
    assert following.communicate() == ("", "")
    assert following.returncode == 0


def test_what_members_of_an_array_wrote_is_fetched_with_their_outputs(pair: Federation, tmp_path: Path) -> None:
    script = "echo {} to stdout; echo {} to stderr >&2; echo {} > out.{}"
    array = pair.submit("--array", "7-8", "--output", "out.{}", "--", "sh", "-c", script)
    assert pair.run("wait", array).returncode == 0
    assert pair.run("fetch", array, "--into", str(tmp_path / "there")).returncode == 0
    read = {str(path.relative_to(tmp_path / "there")): path.read_text() for path in (tmp_path / "there").glob("*/*")}
    assert read == {
        f"{place}/{name}": f"{number}{text}\n"
        for place, number in ((1, 7), (2, 8))
        for name, text in (("stdout", " to stdout"), ("stderr", " to stderr"), (f"out.{number}", ""))
    }


def test_wait_for_several_is_one_if_any_failed(pair: Federation) -> None:
    good = pair.submit("--", "true")
    bad = pair.submit("--", "false")
    assert [pair.run("wait", good, bad).returncode, pair.run("wait", bad).returncode] == [1, 1]
    assert pair.run("wait", good).returncode == 0


def test_a_failed_task_is_retried_as_often_as_requested(pair: Federation) -> None:
    done = pair.run("run", *ON_RIGHT, "--retries", "2", "--", "sh", "-c", "echo try $MESSIAHS_ATTEMPT; exit 4")
    assert done.returncode == 4
    last = pair.document("status")["tasks"][-1]
    assert (last["attempt"], last["exit_code"]) == (3, 4)


def test_a_task_that_no_machine_accepts_waits_and_its_reasons_are_shown(pair: Federation) -> None:
    task = pair.submit(*NOWHERE, "--", "true")
    eventually(lambda: bool(pair.status(task)["reasons"]))
    status = pair.status(task)
    assert (status["state"], status["substate"]) == ("executing", "queued")
    assert [(reason["module"], reason["code"]) for reason in status["reasons"]] == [("left", "requirement_unmet")]
    assert pair.run("cancel", task).returncode == 0
    assert pair.run("wait", task).returncode == 130


def test_a_task_that_must_not_wait_is_denied(pair: Federation) -> None:
    done = pair.run("run", *NOWHERE, "--no-wait", "--", "true")
    assert done.returncode == 125
    assert 'left: own machine does not meet $side eq "nowhere"' in done.stderr


def test_a_task_that_is_too_large_is_told_what_the_largest_machine_has(pair: Federation) -> None:
    done = pair.run("run", "--mem", "900TiB", "--no-wait", "--", "true")
    assert done.returncode == 125
    assert "left: no machine is this large: the largest has " in done.stderr


def test_an_invalid_requirement_is_refused_with_its_position(pair: Federation) -> None:
    done = pair.run("run", "--require", "$mem == 4", "--", "true")
    assert done.returncode == 2
    assert "1:6" in done.stderr


def test_a_requirement_with_arithmetic_is_refused_at_the_submit(pair: Federation) -> None:
    done = pair.run("submit", "--require", "$avail_mem - 1 > 4", "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert "1:12: `-` has no meaning here" in done.stderr
    assert "arithmetic exists in policy files only" in done.stderr


def test_cancelling_ends_a_running_task(pair: Federation) -> None:
    task = pair.submit(*ON_RIGHT, "--", "sleep", "600")
    eventually(lambda: pair.status(task)["substate"] == "running")
    assert pair.run("cancel", task).returncode == 0
    assert pair.run("wait", task).returncode == 130
    assert pair.status(task)["state"] == "killed"


def test_to_cancel_what_has_ended_says_so_and_changes_nothing(pair: Federation) -> None:
    done = pair.submit(*ON_RIGHT, "--", "true")
    array = pair.submit(*ON_RIGHT, "--array", "1-2", "--", "true")
    assert pair.run("wait", done, array).returncode == 0
    for ended in (done, array, f"{array}.2"):
        cancelled = pair.run("cancel", ended)
        assert (cancelled.returncode, cancelled.stderr) == (1, f"messiahs: {ended} has ended before: finished\n")
    assert "cancelled" not in pair.run("audit", "decisions", "--task", done).stdout
    assert pair.status(done)["state"] == "finished"
    mixed = pair.submit(*ON_RIGHT, "--array", "1-2", "--", "sh", "-c", "[ {} = 1 ] || exec sleep 600")
    eventually(lambda: pair.status(mixed)["counts"] == {"finished": 1, "running": 1})
    assert (pair.run("cancel", mixed).returncode, pair.run("wait", mixed).returncode) == (0, 1)
    assert pair.status(mixed)["counts"] == {"finished": 1, "killed": 1}
    # It is shown as killed at once, and has ended when its executor says so.
    told = f"messiahs: {mixed} has ended before: finished, killed\n"
    eventually(lambda: (again := pair.run("cancel", mixed)).returncode == 0 and again.stderr == told, mixed)


def test_modules_report_their_identity(pair: Federation) -> None:
    listed = {module["name"]: module for module in pair.document("module", "list")["modules"]}
    assert listed["left"]["children"] == ["right"]
    assert (listed["right"]["parents"], listed["right"]["primary_parent"]) == (["left"], "left")
    assert listed["right"]["pid"] == pair.pid("right", "daemon")
    assert all(module["machine"] for module in listed.values())


def test_each_module_counts_the_machines_around_it_once(pair: Federation) -> None:
    left = pair.document("module", "vectors", "--module", "left")
    right = pair.document("module", "vectors", "--module", "right")
    assert (left["up"]["machines"], left["down"]["machines"], left["views"]["right"]["machines"]) == (2, 1, 1)
    assert (right["up"]["machines"], right["down"]["machines"], right["views"]["left"]["machines"]) == (1, 2, 1)
    described = left["views"]["right"]["classes"][0]["attributes"]
    assert (described["slots"], described["side"]) == ([2, 2], "right")
    assert left["views"]["right"]["relation"] == "child"


def test_every_decision_is_a_line_of_the_log_with_the_task(pair: Federation) -> None:
    task = pair.submit(*ON_RIGHT, "--", "true")
    assert pair.run("wait", task).returncode == 0
    log = (pair.folder("left") / "module.log").read_text()
    assert [line.split()[4:6] for line in log.splitlines() if f" {task} " in line] == [
        [task, "submitted"],
        [task, "finished"],
    ]


def test_up_in_front_says_when_it_is_ready_and_what_ends_it(pair: Federation, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "messiahs.cli.main", "up", str(pair.topology), "--state", str(tmp_path / "state")]
    with subprocess.Popen(command, env=pair.environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready; Ctrl-C ends it\n"
        assert pair.run("status", "--module", "left", "--state", str(tmp_path / "state")).returncode == 0
        running.send_signal(signal.SIGINT)
        assert running.communicate()[0] == ""
    assert running.returncode == 0


def test_the_version_is_printed_without_a_module(pair: Federation) -> None:
    assert pair.run("version").stdout.startswith("messiahs ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        *((f"{command} left.99999", 1) for command in ("status", "explain", "logs", "fetch", "cancel", "retry")),
        *((f"task {command} left.99999", 1) for command in ("hold", "release", "move", "revoke")),
        ("submit --after left.99999 -- true", 1),
        ("run --after left.99999 -- true", 125),
        ("wait left.99999", 125),
        *((f"{command} --module left.99999", 1) for command in ("status", "module vectors", "neighbor list")),
        ("submit --module left.99999 -- true", 1),
        ("run --module left.99999 -- true", 125),
        ("wait --module left.99999 x.1", 125),
    ],
)
def test_what_is_not_known_ends_every_command_alike(pair: Federation, words: str, code: int) -> None:
    done = pair.run(*words.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert "left.99999" in done.stderr


def test_a_submit_prints_one_document(pair: Federation) -> None:
    done = pair.run("submit", "--json", "--", "true")
    assert set(json.loads(done.stdout)) == {"schema", "id", "members"}
