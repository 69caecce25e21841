"""The task commands, against a peer that speaks the local API."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.exit_codes import exit_code_of, notice_of
from messiahs.cli.main import main
from tests.unit.client.local_api_peer import Peer, StartPeer

DONE = {"id": "left.1", "state": "finished", "substate": None, "exit_code": 0, "signal": None, "cause": "", "text": ""}
NOT_TURNED = {"/v1/lend": {"name": "left", "lend": {"position": "policy", "since": None, "until": None, "by": ""}}}
"""The answer of a machine whose owner has said nothing."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    return tmp_path


def submitted(peer: Peer) -> dict[str, object]:
    return next(body for method, _, body in peer.asked if method == "POST")


def test_a_submit_prints_only_the_id(state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]) -> None:
    start_peer((200, {"id": "left.1"}), state=state)
    assert main(["submit", "--", "echo", "--json"]) == 0
    assert capsys.readouterr().out == "left.1\n"


def test_a_submit_hands_over_its_options_in_base_units(state: Path, start_peer: StartPeer) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=state)
    limits = ["--mem", "1GiB", "--disk", "500MB", "--cpus", "2", "--time", "15min", "--deadline", "2d"]
    others = [
        "--env",
        "A=b=c",
        "--name",
        "n",
        "--require",
        "$speed > 4",
        "--retries",
        "3",
        "--priority",
        "-5",
        "--no-wait",
        "--array",
        "1-7",
    ]
    assert main(["submit", *limits, *others, "--", "ls", "-l"]) == 0
    body = submitted(peer)
    assert body.pop("key")
    assert body == {
        "argv": ["ls", "-l"],
        "env": {"A": "b=c"},
        "tdv": {"mem": 2**30, "disk": 500_000_000, "cpus": 2, "est_time": 900, "priority": -5},
        "requirement": "$speed > 4",
        "members": 7,
        "name": "n",
        "retries": 3,
        "waits": False,
        "deadline_s": 172_800,
    }


def test_options_that_are_not_given_are_not_in_the_tdv(state: Path, start_peer: StartPeer) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=state)
    assert main(["task", "submit", "ls"]) == 0
    assert submitted(peer)["tdv"] == {}


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--mem", "4G"], "write 4GiB"),
        (["--time", "90"], "needs a unit"),
        (["--time", "0"], "'--time': `0` is not more than 0"),
        (["--cpus", "0"], "'--cpus': `0` is not a whole number from 1\n"),
        (["--cpus", "9" * 9_999], "is not a whole number from 1\n"),
        (["--cpus", "two"], "'--cpus': `two` is not a whole number from 1\n"),
        (["--gpus", "257"], "'--gpus': `257` is not a whole number from 1 to 256"),
        (["--retries", "-1"], "'--retries': `-1` is not a whole number from 0 to 1000"),
        (["--priority", "101"], "'--priority': `101` is not a whole number from -100 to 100"),
        (["--array", "9-5"], "a range does not descend"),
        (["--array", "0-9:0"], "a step is at least 1"),
        (["--array", "1-1000001"], "at most 1000000 tasks"),
        (["--array", "1-600000,7-600000"], "at most 1000000 tasks"),
        (["--array", "0-9%"], "after the % stands how many run at once"),
        (["--array", "0-9%0"], "at once, not 0"),
        (["--each-line", "/nowhere"], "cannot be read"),
        (["--array", "1,,2"], "not a range such as 1-100, nor 1,4,9"),
        (["--array", "-5"], "not a range such as 1-100"),
        (["--env", "A"], "not NAME=VALUE"),
        (["--nonsense"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_a_mistake_in_the_options_is_a_usage_error(
    options: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", *options, *(["--", "ls"] if options else [])]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("mem", "0B"), ("disk", "0MiB"), ("time", "0s")])
@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_need_of_zero_is_a_usage_error(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], command: str, option: str, value: str
) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=state)
    assert main([command, f"--{option}", value, "--", "ls"]) == 2
    assert f"'--{option}': `{value}` is not more than 0" in capsys.readouterr().err
    assert not peer.asked


def test_a_predicate_that_the_module_refuses_is_a_usage_error_with_the_modules_text(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((400, {"error": "1:3: expected a number"}), state=state)
    assert main(["submit", "--require", "$x", "--", "ls"]) == 2
    assert main(["run", "--require", "$x", "--", "ls"]) == 2
    assert "1:3: expected a number" in capsys.readouterr().err


def test_status_prints_a_json_document_with_its_schema(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, {"tasks": [DONE], "unknown": []}), state=state)
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "tasks": [DONE], "unknown": []}


def test_status_of_an_unknown_task_is_a_negative_answer(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, {"tasks": [], "unknown": ["left.9"]}), state=state)
    assert main(["status", "left.9", "--quiet"]) == 1
    assert "no task left.9 is known here" in capsys.readouterr().err


def test_status_shows_why_a_task_waits(state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]) -> None:
    reason = {"module": "right", "code": "no_capacity", "rule": "", "text": "full", "hops": []}
    waiting = {**DONE, "state": "executing", "substate": "queued", "exit_code": None, "reasons": [reason]}
    start_peer((200, {"tasks": [waiting], "unknown": []}), state=state).by_path.update(NOT_TURNED)
    assert main(["status"]) == 0
    printed = capsys.readouterr().out
    assert "queued" in printed
    assert "right: no machine that fits is free now: full" in printed


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ({"state": "finished", "exit_code": 0}, 0),
        ({"state": "finished", "exit_code": 7}, 7),
        ({"state": "finished", "exit_code": 125}, 125),
        ({"state": "aborted", "signal": 11}, 139),
        ({"state": "aborted", "cause": "time_limit", "signal": 9}, 125),
        ({"state": "aborted", "cause": "output_missing", "exit_code": 0}, 125),
        ({"state": "aborted", "cause": "output_missing", "exit_code": 3}, 3),
        ({"state": "aborted", "cause": "too_many_outputs", "exit_code": 3}, 3),
        ({"state": "aborted", "cause": "too_much_output", "exit_code": 3}, 3),
        ({"state": "aborted", "cause": "too_much_output", "exit_code": 0}, 125),
        ({"state": "aborted", "cause": "time_limit", "exit_code": 3}, 125),
        ({"state": "aborted", "cause": "not_found"}, 127),
        ({"state": "aborted", "cause": "not_found", "exit_code": 127}, 127),
        ({"state": "aborted", "cause": "not_found", "exit_code": 126}, 126),
        ({"state": "killed", "signal": 15}, 130),
        ({"state": "denied"}, 125),
        ({"members": 2, "counts": {"finished": 2}, "exit_codes": {"0": 2}}, 0),
        ({"members": 2, "counts": {"finished": 2}, "exit_codes": {"0": 1, "3": 1}}, 1),
        ({"members": 2, "counts": {"finished": 1, "aborted": 1}, "exit_codes": {"0": 2}}, 1),
    ],
)
def test_the_end_of_a_task_decides_the_exit_code(ended: dict[str, Any], code: int) -> None:
    assert exit_code_of({"id": "left.1", **ended}) == code


@pytest.mark.parametrize("code", [0, 3, 125])
def test_a_missing_output_is_reported_beside_the_exit_code(
    state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    ended = {"id": "left.1", "state": "aborted", "cause": "output_missing", "text": "not there: out", "exit_code": code}
    assert notice_of(ended) == f"left.1 aborted: exit code {code}; not there: out"
    start_peer((200, {"tasks": [{**DONE, **ended}], "unknown": []}), state=state).by_path.update(NOT_TURNED)
    assert main(["status"]) == 0
    assert f"{code} (output_missing)" in capsys.readouterr().out


OMITTED = "omitted: out/bad (a link to /etc/passwd, out of the working directory), out/p (a pipe)"


def test_run_names_omitted_outputs_after_the_tasks_own_output(
    state: Path, start_peer: StartPeer, capfd: pytest.CaptureFixture[str]
) -> None:
    peer = start_peer((200, {"id": "left.1"}), (200, {**DONE, "text": OMITTED}), state=state)
    peer.logs = {"stdout": b"", "stderr": b"err\n"}
    assert main(["run", "--", "prog"]) == 0
    assert capfd.readouterr().err == f"err\nmessiahs: left.1: {OMITTED}\n"


def ended(*tasks: Mapping[str, object]) -> dict[str, object]:
    return {"/v1/endings": {"ids": [], "after": "0-0", "gap": False}, "/v1/tasks": {"tasks": tasks, "unknown": []}}


def test_wait_names_omitted_outputs(state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]) -> None:
    crashed = {**DONE, "id": "left.2", "state": "aborted", "exit_code": None, "signal": 11, "text": OMITTED}
    start_peer(state=state).by_path = ended({**DONE, "text": OMITTED}, crashed)
    assert main(["wait", "left.1", "left.2"]) == 1
    notices = [f"messiahs: left.{number}: {OMITTED}" for number in (1, 2)]
    sentence = "2 ended, 1 failed: messiahs status left.2 --failed"
    assert capsys.readouterr().err.splitlines() == [*notices, sentence]


def test_a_failure_of_the_federation_is_reported_with_every_hop() -> None:
    hop = {"module": "leaf", "code": "no_class", "rule": "", "text": ""}
    reason = {"module": "middle", "code": "no_capacity", "rule": "", "text": "", "hops": [hop]}
    notice = notice_of({"id": "root.1", "state": "denied", "cause": "", "reasons": [reason]})
    assert notice.splitlines() == [
        "root.1 denied",
        "    middle: no machine that fits is free now",
        "      leaf: no machine is this large",
    ]


@pytest.mark.parametrize("code", [126, 127])
def test_a_program_that_cannot_be_run_is_reported_with_its_reason(code: int) -> None:
    task = {"id": "left.1", "state": "aborted", "cause": "not_found", "exit_code": code, "text": "./x: no permission"}
    what = {126: "the program cannot be executed", 127: "the program was not found"}[code]
    assert notice_of(task) == f"left.1 aborted: {what}: ./x: no permission"


def test_a_task_that_itself_exits_with_125_is_not_a_failure_of_the_federation() -> None:
    assert notice_of({"id": "left.1", "state": "finished", "exit_code": 125}) == ""


@pytest.mark.parametrize(("codes", "code"), [([4], 4), ([0, 0], 0), ([0, 4], 1)])
def test_wait_returns_the_exit_code_of_one_task_and_a_summary_of_several(
    state: Path, start_peer: StartPeer, codes: list[int], code: int
) -> None:
    tasks = [{**DONE, "id": f"left.{number}", "exit_code": each} for number, each in enumerate(codes, start=1)]
    start_peer(state=state).by_path = ended(*tasks)
    assert main(["wait", *(str(task["id"]) for task in tasks)]) == code


def test_run_shows_both_streams_and_returns_the_exit_code(
    state: Path, start_peer: StartPeer, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    peer = start_peer((200, {"id": "left.1"}), (200, {**DONE, "exit_code": 5}), state=state)
    peer.logs = {"stdout": b"out\n", "stderr": b"err\n"}
    assert main(["run", "--", "prog"]) == 5
    printed = capfdbinary.readouterr()
    assert (printed.out, printed.err) == (b"out\n", b"err\n")


def test_run_reports_why_the_federation_failed(
    state: Path, start_peer: StartPeer, capfd: pytest.CaptureFixture[str]
) -> None:
    lost = {**DONE, "state": "aborted", "exit_code": None, "cause": "time_limit", "text": "ran 5 s"}
    peer = start_peer((200, {"id": "left.1"}), (200, lost), state=state)
    peer.logs = {"stdout": b"", "stderr": b""}
    assert main(["run", "--", "prog"]) == 125
    assert capfd.readouterr().err == "messiahs: left.1 aborted: ran longer than it may: ran 5 s\n"


def test_run_says_what_becomes_of_a_task_and_its_standard_input_if_the_module_fails(
    state: Path, start_peer: StartPeer, capfd: pytest.CaptureFixture[str]
) -> None:
    peer = start_peer((200, {"id": "left.1"}), (500, {"error": "its rows cannot be read"}), state=state)
    peer.logs = {"stdout": b"", "stderr": b""}
    peer.by_path = {
        "/stdin?": {"attempt": 0, "taken": 0, "received": None, "closed": False, "problem": "", "refusal": ""}
    }
    kept, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    try:
        assert main(["run", "--", "cat"]) == 125
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, reader, writer):
            os.close(descriptor)
    assert capfd.readouterr().err.endswith(
        "its rows cannot be read\nthe task continues; if it waits for more standard input, it is cancelled"
        " after 10 min; `messiahs wait left.1` waits for it\n"
    )


@pytest.mark.parametrize("command", [["run", "--", "ls"], ["wait", "left.1"]])
def test_without_any_module_run_and_wait_exit_with_125(state: Path, command: list[str]) -> None:
    assert main(command) == 125


def test_logs_are_printed_byte_for_byte(
    state: Path, start_peer: StartPeer, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    peer = start_peer((200, {}), state=state)
    peer.logs = {"stdout": b"\x00\xff", "stderr": b"e"}
    assert main(["logs", "left.1"]) == 0
    assert main(["logs", "left.1", "--stderr", "--follow"]) == 0
    assert capfdbinary.readouterr().out == b"\x00\xffe"


def test_cancel_continues_after_an_unknown_task(state: Path, start_peer: StartPeer) -> None:
    peer = start_peer((404, {"error": "unknown"}), (200, {"id": "left.2"}), state=state)
    assert main(["cancel", "left.1", "left.2"]) == 1
    assert [path for _, path, _ in peer.asked] == ["/v1/tasks/left.1/cancel", "/v1/tasks/left.2/cancel"]


def test_what_is_named_twice_or_with_its_array_is_cancelled_once(state: Path, start_peer: StartPeer) -> None:
    peer = start_peer(*[(200, {"cancelled": 1, "members": 1})] * 3, state=state)
    assert main(["cancel", "left.2.7", "left.1", "left.2", "left.1", "left.3.1"]) == 0
    assert [path for _, path, _ in peer.asked] == [
        f"/v1/tasks/{task}/cancel" for task in ("left.1", "left.2", "left.3.1")
    ]


@pytest.mark.parametrize(("states", "code"), [(["finished"], 1), (["finished", "killed"], 0)])
def test_cancel_says_that_a_task_has_ended_and_can_be_repeated(
    states: list[str], code: int, state: Path, start_peer: StartPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    start_peer((200, {"id": "left.1", "has_ended": True, "states": states}), (200, {"id": "left.2"}), state=state)
    assert main(["cancel", "left.1", "left.2"]) == code
    assert capsys.readouterr().err == f"messiahs: left.1 has ended before: {', '.join(states)}\n"
