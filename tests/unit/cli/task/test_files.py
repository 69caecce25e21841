"""Files and many tasks from the command line, against a peer that speaks the local API."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.cli.output import local_time
from messiahs.client.names import TakenNames
from messiahs.core.model.attributes import Value
from tests.unit.client.local_api_peer import Peer, StartPeer

DONE = {"id": "left.1", "state": "finished", "substate": None, "exit_code": 0, "signal": None, "cause": "", "text": ""}
OPEN = {**DONE, "state": "executing", "substate": "running", "exit_code": None}


@pytest.fixture
def peer(tmp_path: Path, start_peer: StartPeer, monkeypatch: pytest.MonkeyPatch) -> Peer:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    (tmp_path / "state").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return start_peer((200, {"id": "left.1"}), state=tmp_path / "state")


def submitted(peer: Peer) -> dict[str, Any]:
    (body,) = [body for method, path, body in peer.asked if (method, path) == ("POST", "/v1/tasks")]
    return body


def submits(peer: Peer) -> int:
    return sum((method, path) == ("POST", "/v1/tasks") for method, path, _ in peer.asked)


def test_inputs_are_uploaded_before_the_task_is_submitted(peer: Peer) -> None:
    Path("a").write_text("alpha")
    assert main(["submit", "--input", "a", "--input", "a:b/c", "--output", "./out/", "--", "cat", "a"]) == 0
    assert list(peer.files.values()) == [b"alpha"]
    assert peer.asked[-1][1] == "/v1/tasks"
    body = submitted(peer)
    assert [each["name"] for each in body["inputs"]] == ["a", "b/c"]
    assert body["outputs"] == ["out"]
    assert "items" not in body


@pytest.mark.parametrize("words", [["submit"], ["run"]])
def test_a_missing_input_is_a_usage_error_before_anything_is_submitted(
    peer: Peer, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--input", "gone", "--", "cat"]) == 2
    assert "the input `gone` cannot be read" in capsys.readouterr().err
    assert peer.asked == []


def test_two_inputs_with_one_name_are_a_usage_error(peer: Peer) -> None:
    Path("a").touch()
    assert main(["submit", "--input", "a", "--input", "a", "--", "cat"]) == 2
    assert peer.asked == []


@pytest.mark.parametrize("name", ["/etc/x", "../x", ""])
def test_an_output_outside_of_the_working_directory_is_a_usage_error(peer: Peer, name: str) -> None:
    assert main(["submit", "--output", name, "--", "cat"]) == 2
    assert peer.asked == []


def test_each_line_is_a_member_with_its_own_input(peer: Peer) -> None:
    Path("a b").write_text("alpha")
    Path("c").write_text("gamma")
    Path("list").write_text("a b\n\nc\r\n  \n")
    words = ["--input", "{}:in", "--input", "list", "--output", "{}.gz", "--name", "z {}", "--env", "X={}"]
    assert main(["submit", *words, "--each-line", "list", "--", "gzip", "{}"]) == 0
    body = submitted(peer)
    assert (body["items"], body["members"], body["argv"]) == (["a b", "c"], 2, ["gzip", "{}"])
    assert [[each["name"] for each in member] for member in body["member_inputs"]] == [["in"], ["in"]]
    assert [each["name"] for each in body["inputs"]] == ["list"]
    assert (body["outputs"], body["name"], body["env"]) == (["{}.gz"], "z {}", {"X": "{}"})


def test_lines_may_come_from_the_standard_input(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    assert main(["submit", "--json", "--each-line", "-", "--", "echo", "{}"]) == 0
    assert submitted(peer)["items"] == ["one", "two"]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff"])
def test_a_list_without_a_line_of_text_is_a_usage_error(peer: Peer, content: bytes) -> None:
    Path("list").write_bytes(content)
    assert main(["submit", "--each-line", "list", "--", "echo"]) == 2
    assert peer.asked == []


def test_a_line_that_would_make_an_output_outside_is_refused(peer: Peer) -> None:
    Path("list").write_text("../x\n")
    assert main(["submit", "--each-line", "list", "--output", "{}.gz", "--", "echo"]) == 2
    assert peer.asked == []


def test_an_array_has_an_input_for_each_number(peer: Peer) -> None:
    Path("part1").write_text("1")
    Path("part2").write_text("2")
    assert main(["submit", "--array", "1-2", "--input", "part{}:part", "--", "cat", "part"]) == 0
    body = submitted(peer)
    assert (body["members"], len(body["member_inputs"])) == (2, 2)
    assert "items" not in body


def test_an_array_that_begins_later_has_its_numbers_as_items(peer: Peer) -> None:
    assert main(["submit", "--array", "8-10", "--", "echo", "{}"]) == 0
    assert (submitted(peer)["members"], submitted(peer)["items"]) == (3, ["8", "9", "10"])


def test_an_array_and_lines_cannot_be_combined(peer: Peer) -> None:
    Path("list").write_text("x")
    assert main(["submit", "--array", "1-2", "--each-line", "list", "--", "echo"]) == 2


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("k=5", 5),
        ("k=-5", -5),
        ("k=5x", "5x"),
        ("k=", ""),
        ("k=a=b", "a=b"),
        ("k={}", "{}"),
        ("k:=5", 5),
        ('k:="5"', "5"),
        (r'k:="a\"b"', 'a"b'),
        ("k=007", 7),
        (f"k={'0' * 5000}7", 7),
        (f"k={2**63 - 1}", 2**63 - 1),
        (f"k={-(2**63)}", -(2**63)),
        ("k=\N{ARABIC-INDIC DIGIT SEVEN}", "\N{ARABIC-INDIC DIGIT SEVEN}"),
    ],
)
def test_a_further_attribute_is_an_integer_or_a_string(peer: Peer, word: str, value: Value) -> None:
    assert main(["submit", "--set", word, "--mem", "1KiB", "--", "ls"]) == 0
    assert submitted(peer)["tdv"] == {"k": value, "mem": 1024}


@pytest.mark.parametrize(
    "word", [f"k={2**63}", f"k={-(2**63) - 1}", "k=" + "9" * 20, "k=-" + "9" * 20, "k:=" + "9" * 20]
)
def test_an_integer_beyond_64_bits_is_a_usage_error_and_not_a_string(peer: Peer, word: str) -> None:
    assert main(["submit", "--set", word, "--", "ls"]) == 2
    assert peer.asked == []


@pytest.mark.parametrize("word", ["k", "=5", "k k=5", "5k=1", "k:=five", 'k:="a', 'k:="a" or "b" eq "b"', "k:=$x"])
def test_an_invalid_attribute_is_a_usage_error(peer: Peer, word: str) -> None:
    assert main(["submit", "--set", word, "--", "ls"]) == 2
    assert peer.asked == []


def test_a_key_of_the_users_own_makes_repeated_submits_one(peer: Peer) -> None:
    assert main(["submit", "--key", "nightly-7", "--", "ls"]) == 0
    assert submitted(peer)["key"] == "nightly-7"


def test_ten_thousand_members_are_one_submit(peer: Peer) -> None:
    Path("same").write_text("x")
    Path("list").write_text("".join(f"{number}\n" for number in range(10_000)))
    Path("many").mkdir()
    for number in range(10_000):
        Path(f"many/{number}").write_text(str(number % 7))
    words = ["--each-line", "list", "--input", "many/{}:in", "--input", "same"]
    assert main(["submit", *words, "--", "cat", "in"]) == 0
    assert (submits(peer), len(submitted(peer)["member_inputs"]), len(peer.files)) == (1, 10_000, 8)


def test_names_of_many_members_are_checked_against_a_large_common_folder_quickly() -> None:
    common = TakenNames()
    for number in range(10_000):
        common.take(f"data/{number}", "common")
    for number in range(10_000):
        TakenNames(common).take(f"own/{number}", "own")
    assert common.owner_of("own") is None


def test_run_writes_the_outputs_where_it_was_called(peer: Peer) -> None:
    peer.by_path = {"/wait": {**DONE, "exit_code": 3}}
    peer.outputs = {"left.1": {"out/run.sh": b"x"}}
    peer.logs = {"stdout": b"", "stderr": b""}
    assert main(["run", "--output", "out", "--", "make"]) == 3
    assert Path("out/run.sh").read_bytes() == b"x"


def test_run_without_outputs_fetches_none(peer: Peer) -> None:
    peer.by_path = {"/wait": DONE}
    peer.logs = {"stdout": b"", "stderr": b""}
    assert main(["run", "--", "true"]) == 0
    assert not [path for _, path, _ in peer.asked if "outputs" in path]


def test_fetch_writes_outputs_and_prints_where(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    peer.answers = [(200, {"tasks": [DONE], "unknown": []})]
    peer.outputs = {"left.1": {"out": b"xy"}}
    assert main(["fetch", "left.1"]) == 0
    assert capsys.readouterr().out == "out\n"
    assert main(["fetch", "left.1", "--into", "there", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "outputs": [{"task": "left.1", "name": "out", "path": "there/out", "size": 2, "executable": False}],
    }
    assert Path("there/out").read_bytes() == Path("out").read_bytes() == b"xy"


def test_fetch_says_where_a_cancelled_task_may_still_run(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    until = "2026-03-01T12:05:00.000Z"
    cancelled = {**DONE, "state": "killed", "may_run_on": "south", "may_run_until": until}
    peer.answers = [(200, {"tasks": [cancelled], "unknown": []})]
    assert main(["fetch", "left.1"]) == 1
    text = f"may run at south until {local_time(until)}: its module has not reported its end, and leaves outputs then"
    assert capsys.readouterr().err == f"messiahs: left.1 {text}\n"


def test_fetch_of_many_outputs_shows_people_how_many_and_where(
    peer: Peer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"left.1.{number}" for number in range(1, 22)]
    peer.answers = [(200, {"tasks": [{**DONE, "id": name} for name in ids], "unknown": []})]
    peer.outputs = {name: {"out": b"xy"} for name in ids}
    assert main(["fetch", "left.1", "--into", "there"]) == 0
    paths = [f"there/{number}/out" for number in range(1, 22)]
    assert capsys.readouterr().out.splitlines() == paths, "a program needs all of them"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["fetch", "left.1", "--into", "there"]) == 0
    assert capsys.readouterr().out == "21 files of 21 tasks are in there\n"
    peer.answers = [(200, {"tasks": [{**DONE, "id": name} for name in ids[:20]], "unknown": []})]
    assert main(["fetch", "left.1", "--into", "there"]) == 0
    assert capsys.readouterr().out.splitlines() == paths[:20]


def test_fetch_puts_the_members_of_an_array_into_folders(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    members = [{**DONE, "id": f"left.1.{number}"} for number in (1, 2)] + [{**OPEN, "id": "left.1.3"}]
    peer.answers = [(200, {"tasks": members, "unknown": []})]
    peer.outputs = {"left.1.1": {"out": b"1"}, "left.1.2": {}}
    assert main(["fetch", "left.1"]) == 1
    assert Path("1/out").read_bytes() == b"1"
    printed = capsys.readouterr().err
    assert "1 of 3 members of left.1 have not ended yet" in printed
    assert "left.1.2 produced no outputs" in printed


def test_fetch_of_an_array_has_what_its_members_wrote_in_files(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    members = [{**DONE, "id": f"left.1.{number}"} for number in (1, 2, 3)] + [{**OPEN, "id": "left.1.4"}]
    peer.answers = [(200, {"tasks": members, "unknown": []})]
    peer.outputs = {"left.1.1": {"out": b"1", "stderr": b"mine"}, "left.1.2": {"stderr/deep": b"mine"}, "left.1.3": {}}
    peer.member_logs = {"stdout": {1: b"a\n", 2: b"b", 4: b"not yet"}, "stderr": {1: b"theirs", 2: b"theirs"}}
    assert main(["fetch", "left.1"]) == 1
    read = {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    of_first = {"1/out": b"1", "1/stderr": b"mine", "1/stdout": b"a\n"}
    assert read == {**of_first, "2/stderr/deep": b"mine", "2/stdout": b"b"}
    printed = capsys.readouterr()
    assert printed.out.split() == ["1/out", "1/stderr", "2/stderr/deep", "1/stdout", "2/stdout"]
    assert "left.1.3 produced no outputs" in printed.err


def test_fetch_of_a_member_has_what_it_wrote_in_files(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    peer.answers = [(200, {"tasks": [{**DONE, "id": "left.1.2"}], "unknown": []})]
    peer.outputs = {"left.1.2": {"out": b"2"}}
    peer.logs = {"stdout": b"said\n", "stderr": b""}
    assert main(["fetch", "left.1.2"]) == 0
    assert capsys.readouterr().out.split() == ["2/out", "2/stdout"]
    assert Path("2/stdout").read_bytes() == b"said\n"
    assert not Path("2/stderr").exists()


def test_fetch_names_omitted_outputs_once_for_tasks_that_share_them(
    peer: Peer, capsys: pytest.CaptureFixture[str]
) -> None:
    omitted = {**DONE, "text": "omitted: out/p (a pipe)"}
    peer.answers = [(200, {"tasks": [{**omitted, "id": f"left.1.{number}"} for number in (1, 2)], "unknown": []})]
    peer.outputs = {"left.1.1": {"out/a": b"1"}, "left.1.2": {"out/a": b"2"}}
    assert main(["fetch", "left.1"]) == 0
    assert capsys.readouterr().err == "messiahs: left.1.1, left.1.2: omitted: out/p (a pipe)\n"


def test_fetch_names_outputs_that_were_missing_and_not_also_as_undeclared(
    peer: Peer, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {**DONE, "state": "aborted", "cause": "output_missing", "text": "missing at the end: out"}
    peer.answers = [(200, {"tasks": [missing], "unknown": []})]
    peer.outputs = {"left.1": {}}
    assert main(["fetch", "left.1"]) == 1
    assert capsys.readouterr().err == "messiahs: left.1: missing at the end: out\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"tasks": [OPEN], "unknown": []}, "left.1 has not ended yet; `messiahs wait left.1`"),
        ({"tasks": [DONE], "unknown": []}, "left.1 produced no outputs"),
        ({"tasks": [], "unknown": ["left.1"]}, "no task left.1 is known here"),
    ],
)
def test_fetch_of_nothing_is_a_negative_answer(
    peer: Peer, capsys: pytest.CaptureFixture[str], answer: dict[str, object], expected: str
) -> None:
    peer.answers = [(200, answer)]
    peer.outputs = {"left.1": {}}
    assert main(["fetch", "left.1", "--json"]) == 1
    printed = capsys.readouterr()
    assert expected in printed.err
    assert json.loads(printed.out)["outputs"] == []


def test_retry_prints_how_many_run_again(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    peer.answers = [(200, {"id": "left.1", "retried": 4})]
    assert main(["retry", "left.1", "--failed"]) == 0
    assert main(["retry", "left.1", "--failed", "--json"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    retried = {"schema": 1, "tasks": [{"id": "left.1", "retried": 4}]}
    assert (first, json.loads(second)) == ("left.1: 4 run again", retried)


def test_retry_of_several_tasks_continues_after_one_that_is_refused(
    peer: Peer, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"tasks": [{"id": "left.1"}, {"id": "left.2"}], "unknown": []}
    peer.answers = [(200, known), (409, {"error": "its inputs are gone"}), (200, {"id": "left.2", "retried": 1})]
    assert main(["retry", "left.1", "left.2", "--killed"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("left.2: 1 runs again\n", "messiahs: left.1: its inputs are gone\n")
    asked = [(f"/v1/tasks/{name}/retry", {"killed": True}) for name in ("left.1", "left.2")]
    assert [(path, body) for method, path, body in peer.asked if method == "POST"] == asked


def test_nothing_runs_again_if_one_of_several_tasks_is_unknown(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    peer.answers = [(200, {"tasks": [{"id": "left.1"}], "unknown": ["left.9"]})]
    assert main(["retry", "left.1", "left.9"]) == 1
    assert "no task left.9 is known here" in capsys.readouterr().err
    assert [method for method, _, _ in peer.asked] == ["GET"]


@pytest.mark.parametrize(("words", "why"), [((), "has failed"), (("--killed",), "was killed")])
def test_retry_says_why_nothing_runs_again(
    words: tuple[str, ...], why: str, peer: Peer, capsys: pytest.CaptureFixture[str]
) -> None:
    peer.answers = [(200, {"id": "left.1", "retried": 0})]
    assert main(["retry", "left.1", *words]) == 0
    assert capsys.readouterr().out == f"left.1: nothing to run again, since nothing {why}\n"


def test_retry_needs_no_option(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    peer.answers = [(200, {"id": "left.1", "retried": 1})]
    assert main(["retry", "left.1"]) == 0
    assert capsys.readouterr().out == "left.1: 1 runs again\n"
    assert peer.asked == [("POST", "/v1/tasks/left.1/retry", {})]
