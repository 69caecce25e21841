"""Output about tasks for people."""

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from messiahs.cli.exit_codes import notice_of
from messiahs.cli.output import SCHEMA, local_time, print_document
from messiahs.cli.task.lines import ran_of, show_reasons, show_tasks
from messiahs.cli.task.wait import progress_line
from messiahs.core.model.texts import has_control

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
TASK: dict[str, Any] = {
    "id": "left.1",
    "state": "finished",
    "substate": None,
    "exit_code": 0,
    "attempt": 1,
    "executed_on": "right",
    "submitted_at": "2026-03-01T12:00:00.000Z",
    "started_at": "2026-03-01T12:00:01.000Z",
    "ended_at": "2026-03-01T12:00:03.500Z",
    "name": "n",
}
ARRAY: dict[str, Any] = {
    "id": "left.2",
    "members": 5,
    "counts": {"finished": 3, "killed": 1, "running": 1},
    "exit_codes": {"0": 2, "3": 1},
    "submitted_at": "2026-03-01T12:00:00.000Z",
    "ended_at": None,
    "name": "",
}


def test_waiting_members_of_an_array_are_held_or_queued(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = {**ARRAY, "counts": {"queued": 4, "running": 1}, "exit_codes": {}}
    show_tasks([{**waiting, "held": 4}, {**waiting, "held": 3}, {**waiting, "held": 0}], now=NOW)
    shown = capsys.readouterr().out
    for counts in ("left.2  1 running, 4 held", "left.2  1 queued, 1 running, 3 held", "left.2  4 queued, 1 running"):
        assert f"{counts} " in shown


def test_the_priority_of_a_task_is_shown_until_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    text = "left.2 has the priority -5 among the tasks of its user"
    for shown, is_said in (
        ({**ARRAY, "priority": -5}, True),
        ({**ARRAY, "priority": 0}, False),
        ({**TASK, "id": "left.2", "priority": -5}, False),
    ):
        show_tasks([shown], now=NOW)
        assert (text in capsys.readouterr().out) is is_said


def test_tasks_and_arrays_are_one_table_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    show_tasks([TASK, ARRAY, {**TASK, "id": "left.3"}], now=NOW)
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "ID",
        "STATE",
        "RESULT",
        "ATTEMPT",
        "MODULE",
        "SUBMITTED",
        "RAN",
        "USER",
        "NAME",
        "COMMAND",
    ]
    assert [line.split()[0] for line in lines] == ["left.1", "left.2", "left.3"]
    assert "3 finished, 1 killed, 1 running" in lines[1]
    assert "0 (2), 3 (1)" in lines[1]
    assert lines[1].split()[-4:] == ["30.0", "s", "-", "-"]
    assert lines[0].split()[-5:] == ["2.5", "s", "-", "n", "-"]


def test_the_user_and_the_beginning_of_the_command_of_a_task_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    short = {**TASK, "user": "anna", "argv": ["sh", "-c", "a  b\x1b"]}
    show_tasks([short, {**ARRAY, "user": "bert", "argv": ["x" * 99]}], now=NOW)
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(r"anna  n     sh -c 'a  b\x1b'")
    assert second.endswith(f"bert        {'x' * 39}…")


def test_times_are_those_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-3")
    time.tzset()
    try:
        assert local_time("2026-03-01T22:30:00.250Z") == "2026-03-02 01:30:00"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert local_time(None) == "-"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "finished at right: exit code 0"),
        (
            {"state": "aborted", "exit_code": 1, "cause": "output_missing", "text": "missing at the end: g.o"},
            "aborted at right: exit code 1; missing at the end: g.o",
        ),
        (
            {"state": "aborted", "exit_code": None, "cause": "time_limit", "tdv": {"est_time": 2}},
            "aborted at right: ran longer than --time 2s",
        ),
        ({"state": "executing", "substate": "running", "exit_code": None}, "running at right"),
    ],
)
def test_explain_says_how_a_task_ended(more: dict[str, Any], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_reasons([{**TASK, **more}])
    assert capsys.readouterr().out == f"left.1: {text}\n"


@pytest.mark.parametrize("state", ["killed", "executing"])
def test_explain_says_where_a_task_may_still_run(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    until = "2026-03-01T12:05:00.000Z"
    show_reasons([{**TASK, "state": state, "may_run_on": "south", "may_run_until": until}])
    said = f"  may run at south until {local_time(until)}: its module has not reported its end"
    assert capsys.readouterr().out.splitlines()[1:] == [said]


@pytest.mark.parametrize(
    ("begun", "ended", "expected"),
    [
        (None, None, "-"),
        ("2026-03-01T12:00:00Z", None, "30.0 s"),
        ("2026-03-01T11:57:30Z", None, "3 min 00 s"),
        ("2026-03-01T08:55:30Z", "2026-03-01T12:00:00Z", "3 h 04 min"),
    ],
)
def test_the_run_time_of_a_task_is_shown_briefly(begun: str | None, ended: str | None, expected: str) -> None:
    state = "finished" if ended else "executing"
    assert ran_of({**TASK, "state": state, "started_at": begun, "ended_at": ended}, NOW) == expected


def test_a_program_that_is_there_and_may_not_be_run_is_not_called_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    for code, expected in ((126, "not_executable"), (None, "not_found")):
        show_tasks([{**TASK, "state": "aborted", "cause": "not_found", "exit_code": code}], now=NOW)
        assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["left.1", "aborted", expected]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [({"queued": 5}, "-"), ({"denied": 2, "queued": 3}, "-"), ({"queued": 4, "running": 1}, "30.0 s")],
)
def test_an_array_of_which_no_member_has_begun_has_no_run_time(counts: dict[str, int], expected: str) -> None:
    assert ran_of({**ARRAY, "counts": counts}, NOW) == expected


def test_what_a_task_used_is_shown_as_far_as_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    usage = {"cpu_s": 1.54, "peak_memory_bytes": 3 << 20, "written_bytes": None, "read_bytes": 0, "suspended_s": 0.0}
    show_tasks([{**TASK, "usage": usage}], are_named=True, now=NOW)
    assert capsys.readouterr().out.endswith("left.1 used 1.5 s of processor time, 3.0 MiB of memory at its peak\n")
    show_tasks([{**TASK, "usage": None}], are_named=True, now=NOW)
    assert "used" not in capsys.readouterr().out


def test_what_the_machine_of_a_task_lacked_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    contained = {"isolation": "process", "lacks": "no sandboxes: only root can set them up"}
    show_tasks([{**TASK, "containment": contained}], are_named=True, now=NOW)
    reports = "its machine reports: no sandboxes: only root can set them up\n"
    assert capsys.readouterr().out.endswith(f"\nleft.1 ran without a sandbox; {reports}")
    lacks = "no control groups: there is none that this account may divide; open files of tasks are not seen"
    show_tasks([{**TASK, "containment": {"isolation": "sandbox", "lacks": lacks}}], are_named=True, now=NOW)
    assert capsys.readouterr().out.endswith(f"\nleft.1 ran in a sandbox; its machine reports: {lacks}\n")
    show_tasks([{**TASK, "containment": {**contained, "lacks": ""}}], are_named=True, now=NOW)
    assert "sandbox" not in capsys.readouterr().out


def test_the_suspended_time_of_a_task_is_shown_separately() -> None:
    begun = "2026-03-01T11:57:30Z"
    running = {**TASK, "state": "executing", "started_at": begun, "ended_at": None, "suspended_s": 60.0}
    assert ran_of(running, NOW) == "2 min 00 s + 60.0 s suspended"
    suspended = {**running, "suspended_since": "2026-03-01T11:59:00Z"}
    assert ran_of(suspended, NOW) == "30.0 s + 2 min 30 s suspended"
    over = {**running, "state": "finished", "ended_at": "2026-03-01T11:59:30Z", "suspended_since": None}
    assert ran_of(over, NOW) == "60.0 s + 60.0 s suspended"


def test_the_time_in_which_files_move_is_no_run_time() -> None:
    coming_home = {**TASK, "state": "executing", "substate": "staging", "ended_at": None}
    assert ran_of(coming_home, NOW) == "-"
    assert ran_of({**coming_home, "substate": "running"}, NOW) == "29.0 s"


def test_reasons_that_many_tasks_share_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    hop = {"module": "leaf", "code": "requirement_unmet", "rule": "", "text": "add --mem", "hops": []}
    reason = {"module": "right", "code": "refused_by_policy", "rule": "accept", "text": "guests", "hops": [hop]}
    waiting = {**TASK, "state": "executing", "substate": "queued", "ended_at": None, "reasons": [reason]}
    denied = {**TASK, "id": "left.9", "state": "denied", "reasons": [reason]}
    show_tasks([{**waiting, "id": f"left.1.{number}"} for number in (1, 2, 3)] + [denied], now=NOW)
    printed = [line for line in capsys.readouterr().out.splitlines()[5:] if line]
    assert printed == [
        "left.1.1 and 2 more wait; asked and refused by",
        "  right: refused (accept: guests)",
        "    leaf: add --mem",
        "left.9 was denied by",
        "  right: refused (accept: guests)",
        "    leaf: add --mem",
    ]


def test_a_list_of_all_tasks_says_for_an_hour_why_one_was_denied(capsys: pytest.CaptureFixture[str]) -> None:
    reason = {"module": "right", "code": "requirement_unmet", "rule": "", "text": "add --mem", "hops": []}
    denied = {**TASK, "state": "denied", "reasons": [reason]}
    array = {**ARRAY, "counts": {"denied": 5}, "exit_codes": {}, "ended_at": TASK["ended_at"], "reasons": [reason]}
    ended = datetime.fromisoformat(TASK["ended_at"])
    show_tasks([denied, array], now=ended + timedelta(hours=1))
    assert "left.1 and 1 more were denied by\n  right: add --mem\n" in capsys.readouterr().out
    show_tasks([denied, array], now=ended + timedelta(hours=1, seconds=1))
    assert len(capsys.readouterr().out.splitlines()) == 3
    show_tasks([denied], are_named=True, now=ended + timedelta(days=6))
    assert "left.1 was denied by\n  right: add --mem\n" in capsys.readouterr().out


def test_what_kept_a_task_waiting_that_was_ended_since_did_not_deny_it(capsys: pytest.CaptureFixture[str]) -> None:
    reason = {"module": "north", "code": "unreachable", "rule": "", "text": "it is not linked", "hops": []}
    show_tasks([{**TASK, "state": "killed", "reasons": [reason]}], now=NOW)
    assert "denied" not in capsys.readouterr().out


def test_status_names_omitted_and_missing_outputs_once_for_tasks_that_share_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    omitted = {**TASK, "text": "omitted: out/p (a pipe)"}
    missing = {**TASK, "id": "left.4", "state": "aborted", "cause": "output_missing", "text": "missing at the end: out"}
    tasks = [{**omitted, "id": f"left.1.{number}"} for number in (1, 2)] + [missing, TASK]
    show_tasks(tasks, are_named=True, now=NOW)
    printed = [line for line in capsys.readouterr().out.splitlines()[5:] if line]
    assert printed == ["left.1.1 and 1 more: omitted: out/p (a pipe)", "left.4: missing at the end: out"]
    # A list of all tasks would repeat them for ever.
    show_tasks(tasks, now=NOW)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(tasks)


def test_progress_counts_single_tasks_and_members() -> None:
    running = {**TASK, "state": "executing", "substate": "running", "exit_code": None}
    failed = {**TASK, "exit_code": 4}
    killed = {**TASK, "state": "killed", "exit_code": None}
    printed = progress_line([TASK, ARRAY, running, failed, killed])
    assert printed == "7 of 9 ended, 2 running, 4 failed"


def test_a_task_held_by_its_machines_owner_is_shown_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    held = {**TASK, "state": "executing", "ended_at": None, "exit_code": None}
    suspended = {**held, "substate": "suspended", "text": "the owner is back"}
    show_tasks([suspended, {**held, "id": "left.3", "substate": "vacating", "text": ""}, TASK], now=NOW)
    printed = capsys.readouterr().out
    assert "left.1 is suspended by the owner of right: the owner is back\n" in printed
    assert "left.3 is being vacated by the owner of right\n" in printed
    assert printed.count("owner of") == 2


ENTRY = {"at": "2026-03-01T12:00:00.000Z", "attempt": 1, "module": "right", "text": ""}
WAY = "through gate-a; right is not reached straight: no common root, and the sites are not introduced to each other"


@pytest.mark.parametrize("state", ["executing", "finished"])
def test_explain_shows_the_whole_history_of_a_task(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    history = [
        {**ENTRY, "event": "hold by hand", "attempt": 0, "module": ""},
        {**ENTRY, "event": "release by hand", "attempt": 0, "module": "", "text": "go on"},
        {**ENTRY, "event": "bound"},
        {**ENTRY, "event": "route", "module": "gate-a", "text": WAY},
        {**ENTRY, "event": "suspended", "text": "the owner is back"},
        {**ENTRY, "event": "lost"},
        {**ENTRY, "event": "bound", "attempt": 2},
    ]
    show_reasons([{**TASK, "state": state, "attempt": 2, "history": history}])
    at = local_time("2026-03-01T12:00:00.000Z")
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"  {at} hold by hand",
        f"  {at} release by hand go on",
        f"  {at} attempt 1 bound at right",
        f"  {at} attempt 1 route {WAY}",
        f"  {at} attempt 1 suspended at right: the owner is back",
        f"  {at} attempt 1 lost at right",
        f"  {at} attempt 2 bound at right",
    ]


def test_status_of_one_task_shows_the_present_way_of_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    earlier = {**ENTRY, "event": "route", "module": "gate-b", "text": "through gate-b; right does not answer"}
    one = {**TASK, "history": [earlier, {**ENTRY, "event": "route", "module": "gate-a", "text": WAY}]}
    show_tasks([one], now=NOW)
    assert capsys.readouterr().out.splitlines()[2:] == ["", f"left.1: files go {WAY}"]
    # A later attempt goes straight, and a list of tasks stays short.
    show_tasks([{**one, "attempt": 2}], now=NOW)
    show_tasks([one, TASK], now=NOW)
    assert "through" not in capsys.readouterr().out


STEERING = "\x1b[2J\x9b31m\u202e\nleft.9: finished"


def test_no_text_of_others_controls_the_terminal_or_adds_lines(capsys: pytest.CaptureFixture[str]) -> None:
    reason = {"module": "right", "code": "no_class", "rule": STEERING, "text": STEERING, "why": STEERING, "hops": []}
    entry = {"at": "2026-03-01T12:00:00.000Z", "attempt": 1, "module": "right", "event": "vacated", "text": STEERING}
    denied = {**TASK, "state": "denied", "reasons": [reason], "history": [entry], "executed_on": STEERING}
    held = {**TASK, "state": "executing", "substate": "suspended", "text": STEERING, "ended_at": None}
    lost = {**TASK, "state": "aborted", "cause": STEERING, "exit_code": None, "name": STEERING}
    way = {**entry, "event": "route"}
    show_tasks([denied, held, lost], now=NOW)
    show_tasks([{**denied, "history": [way]}], now=NOW)
    show_reasons([{**denied, "history": [entry, way, {**way, "event": STEERING, "module": STEERING}]}])
    sys.stdout.write(notice_of({**lost, "text": STEERING}))
    printed = capsys.readouterr().out
    assert STEERING.splitlines()[0] not in printed
    assert [line for line in printed.splitlines() if line.startswith("left.9")] == []
    assert has_control(printed.replace("\n", "")) is False


def test_json_is_safe_to_show_and_has_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    print_document({"text": STEERING})
    printed = capsys.readouterr().out
    assert has_control(printed.removesuffix("\n")) is False
    assert json.loads(printed) == {"schema": SCHEMA, "text": STEERING}
