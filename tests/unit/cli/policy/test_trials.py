"""`messiahs policy test`: output for tests that pass and for tests that fail."""

import json
from pathlib import Path

import pytest

from messiahs.cli.main import main

POLICY = 'accept from parent {\n    require $mem <= 8GiB else "too large";\n    limit 2 tasks;\n}\n'
TESTS = """policy "rules/a.policy";
peer { name = "cs"; relation = "parent"; }
test "small ones" { task { mem = 1GiB; } expect accept; }
test "large ones" {
    task { mem = 9GiB; }
    expect accept;
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.policy").write_text(POLICY)
    (tmp_path / "a.policytest").write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    return Path("a.policytest")


def test_a_failure_is_shown_with_the_result_and_the_rules_that_were_evaluated(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "test"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a.policytest: small ones: ok",
        "a.policytest: large ones: failed",
        '  a.policytest:6: expect accept: it is refused with "too large"',
        "    rules/a.policy:1: accept from parent: refused",
        "         2 false require $mem <= 8GiB",
        "                 false    $mem <= 8GiB  $mem is 9GiB  <- against",
        "         3 true  limit 2 tasks",
        "                 0 of 2 slots taken, 1 wanted",
        "2 tests, 1 failed",
    ]


def test_uncovered_rules_fail_with_coverage(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TESTS.replace("expect accept;\n", 'expect refuse "too large";\n'))
    assert main(["policy", "test", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 tests, all ok"
    assert main(["policy", "test", str(file), "--coverage"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "rules/a.policy:3: never false: limit 2 tasks"


def test_tests_in_several_files_cover_a_policy_together(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TESTS.replace("expect accept;\n", "expect refuse;\n"))
    Path("b.policytest").write_text(
        'policy "rules/a.policy";\ntest "t" { peer { relation = "parent"; } placed 2; expect refuse; }\n'
    )
    assert main(["policy", "test", "--coverage"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["3 tests, all ok", "every rule was both true and false"]


def test_everything_is_in_the_document(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "test", "--coverage", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (printed,) = document["files"]
    assert (document["schema"], printed["file"], printed["policy"]) == (1, "a.policytest", "rules/a.policy")
    assert [(test["name"], test["line"], test["ok"]) for test in printed["tests"]] == [
        ("small ones", 3, True),
        ("large ones", 4, False),
    ]
    (failure,) = printed["tests"][1]["failures"]
    assert (failure["line"], failure["expected"]) == (6, "expect accept")
    assert failure["came"] == 'it is refused with "too large"'
    assert [rule["result"] for rule in failure["blocks"][0]["rules"]] == [False, True]
    assert document["coverage"] == [
        {"policy": "rules/a.policy", "unseen": [{"line": 3, "rule": "limit 2 tasks", "never": [False]}]}
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('policy "rules/a.policy";\ntest "t" { expect acept; }', "a.policytest:2:19: error[P106]"),
        ('policy "missing";\n', "missing:1:1: error[P001]: the file cannot be read"),
    ],
)
def test_mistakes_are_reported_at_their_position(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    file.write_text(text)
    assert main(["policy", "test", str(file)]) == 1
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "place"),
    [
        (["test", "a.policytest"], "P106", ("a.policytest", 2)),
        (["explain", "rules/bad.policy"], "P106", ("rules/bad.policy", 1)),
        (["explain", "missing"], "P001", ("missing", 1)),
        (["explain", "rules/a.policy", "--task", "mem=4xy"], "P103", ("--task", 1)),
        (["diff", "rules/a.policy", "rules/bad.policy", "--replay", "."], "P106", ("rules/bad.policy", 1)),
        (["load", "missing"], "P001", ("missing", 1)),
    ],
)
def test_mistakes_are_printed_as_json_too(
    file: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str, place: tuple[str, int]
) -> None:
    file.write_text('policy "rules/a.policy";\ntest "t" { expect acept; }')
    (file.parent / "rules" / "bad.policy").write_text("foo;")
    assert main(["policy", *words, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (problem,) = document["problems"]
    assert (document["schema"], problem["code"], problem["severity"]) == (1, code, "error")
    assert (problem["file"], problem["line"]) == place


@pytest.mark.parametrize("words", [["check"], ["explain"], ["diff", "rules/a.policy", "--replay", "."]])
def test_tests_in_place_of_a_policy_are_reported(
    file: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["policy", *words, str(file)]) == 1
    printed = capsys.readouterr().err
    assert "a.policytest:1:1: error[P001]: this file contains tests of a policy, not a policy" in printed
    assert f"`messiahs policy test {file}` runs them" in printed


def test_a_policy_in_place_of_tests_is_reported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert file.exists()
    assert main(["policy", "test", "rules/a.policy"]) == 1
    printed = "rules/a.policy is not a test file; `messiahs policy check rules/a.policy` checks policies"
    assert printed in capsys.readouterr().err


def test_without_a_file_there_must_be_some_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["policy", "test"]) == 1
    assert "no *.policytest in this folder" in capsys.readouterr().err
