"""`messiahs policy ...`: checking files, trying predicates, listing attributes."""

import json
import re
from pathlib import Path

import pytest

from messiahs.cli.main import main

GOOD = "accept from any { limit 9 tasks; }\n"
WARNED = "accept from any { }\n"
BAD = "accept from any { require $mem <= 8min; limit 9 tasks; }\nrunnign { }\n"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (GOOD, 0, "no problems"),
        (WARNED, 0, "1 warning"),
        (BAD, 1, "2 errors"),
        (BAD + WARNED.replace("any", "parent"), 1, "2 errors, 1 warning"),
    ],
)
def test_a_check_fails_for_errors_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, expected: str
) -> None:
    file = tmp_path / "a.policy"
    file.write_text(text)
    assert main(["policy", "check", str(file)]) == code
    assert capsys.readouterr().out == f"{file}: {expected}\n"


def test_all_problems_of_all_files_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = []
    for name, text in (("good", GOOD), ("bad", BAD), ("warned", WARNED)):
        (tmp_path / name).write_text(text)
        names.append(str(tmp_path / name))
    assert main(["policy", "check", *names, str(tmp_path / "missing")]) == 1
    printed = capsys.readouterr().err
    assert f"{names[1]}:1:35: error[P204]: size compared with a duration" in printed
    assert f"{names[1]}:2:1: error[P106]: `runnign` does not begin a block" in printed
    assert f"{names[2]}:1:1: warning[P403]" in printed
    assert "missing:1:1: error[P001]: the file cannot be read" in printed


def test_a_declaration_of_what_machines_of_the_topology_have_is_no_problem_if_it_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, topology = tmp_path / "a.policy", tmp_path / "campus.yaml"
    file.write_text("attribute $site string;\nattribute $licences int;\n  attribute $sote string;\n" + GOOD)
    machine = "{attributes: {site: xinu}, counted: {licences: 2}}"
    topology.write_text(f"version: 1\nfederation: campus\nsystems: {{xinu: {{machine: {machine}}}}}\n")
    assert main(["policy", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 3 warnings\n"
    assert main(["policy", "check", "--topology", str(topology), str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{file}: 1 warning\n"
    assert "3:13: warning[P412]: $sote is declared and never used" in printed.err


def test_problems_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.policy"
    file.write_text(BAD)
    assert main(["policy", "check", "--json", str(file)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert [(each["code"], each["severity"], each["line"], each["column"]) for each in document["problems"]] == [
        ("P204", "error", 1, 35),
        ("P106", "error", 2, 1),
    ]
    assert document["problems"][0] == {
        "code": "P204",
        "severity": "error",
        "file": str(file),
        "line": 1,
        "column": 35,
        "end_column": 39,
        "message": "size compared with a duration",
        "hint": "sizes are written 8MB or 8MiB",
        "label": "duration; $mem is a size in bytes",
        "source": BAD.splitlines()[0],
    }


def test_a_problem_of_several_lines_ends_with_its_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.policy"
    file.write_text("accept from any { require $cpus > 5 and\n$cpus < 3; limit 9 tasks; }\n")
    assert main(["policy", "check", "--json", str(file)]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["line"], problem["column"], problem["end_column"]) == (1, 27, 40)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([""], 0),
        (["  "], 0),
        (["1 = 1"], 0),
        (["1 = 2"], 1),
        (["-1 < $x", "--set", "x=0"], 0),
        (["-1 = $x", "--set", "x=-1"], 0),
        (["--set", "x=0", "-1 < $x"], 0),
        (["--", "-1 < 0"], 0),
        (["$x = 7", "--set", "x=007"], 0),
        (["$x = 7", "--set", f"x={'0' * 5000}7"], 0),
        (["$x = -7", "--set", f"x=-{'0' * 5000}7"], 0),
        (["$x = 7", "--set", "x=\N{ARABIC-INDIC DIGIT SEVEN}"], 1),
        (['$x eq "seven"', "--set", "x=seven"], 0),
        (['$x eq ""', "--set", "x="], 0),
        (['$x eq "a=b"', "--set", "x=a=b"], 0),
        (['$x eq "5"', "--set", "x=5"], 1),
        (['$x eq "5"', "--set", 'x:="5"'], 0),
        (["$x = 5", "--set", "x:=5"], 0),
        (['$x eq "\n"', "--set", r'x:="\n"'], 2),
        ([r'$x eq "\n"', "--set", r'x:="\n"'], 0),
        (["$x = 1", "--set", f"x={2**63}"], 1),
        (["$x = 1", "--set", f"x={'9' * 5000}"], 1),
        ([f"$x = {-(2**63)}", "--set", f"x=-{'9' * 5000}"], 1),
        (["$x = 2", "--set", "x=1", "--set", "x=2"], 0),
        (["$mem <= 4GiB", "--set", "mem=1"], 2),
        (["$x default 1 = 1"], 2),
        (["$x == 1"], 2),
        (["-1"], 2),
        (["1 = 1", "--set", "x"], 2),
        (["1 = 1", "--set", "1x=1"], 2),
        (["1 = 1", "--set", "x:=y"], 2),
        (["1 = 1", "--set", f"x:={2**63}"], 2),
        ([], 2),
    ],
)
def test_a_predicate_is_true_false_or_invalid(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "eval", *words]) == code
    assert capsys.readouterr().out == {0: "true\n", 1: "false\n", 2: ""}[code]


def test_an_invalid_predicate_is_shown_with_its_position(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "eval", "$x == 1"]) == 2
    assert "1:4: `==` has no meaning here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "document"),
    [
        (["$b = 1 or $a = 1", "--set", "b=1"], {"result": False, "unset": ["a"]}),
        (["$b = 1", "--set", "b=1"], {"result": True, "unset": []}),
        (["$b = 1", "--set", "b=x"], {"result": False, "unset": []}),
        (["$b = 1", "--set", f"b={2**63}"], {"result": False, "unset": ["b"]}),
        (["-1 < $mem and $mem > 0", "--set", "nothing=1"], {"result": False, "unset": ["mem"]}),
    ],
)
def test_a_result_as_json_names_what_is_unset(
    words: list[str], document: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "eval", "--json", *words]) == (0 if document["result"] else 1)
    assert json.loads(capsys.readouterr().out) == {"schema": 1, **document}


def test_the_schema_lists_every_attribute_with_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "schema", "--json"]) == 0
    listed = {(each["scope"], each["name"]): each for each in json.loads(capsys.readouterr().out)["attributes"]}
    assert listed["task", "mem"]["unit"] == "bytes"
    assert listed["now", "clock"]["unit"] == "minutes of the day"
    assert listed["machine", "load"] == {
        "name": "load",
        "scope": "machine",
        "written": ["$load", "$here.load"],
        "type": "integer",
        "unit": "1/100 %",
        "low": 0,
        "high": 10_000,
        "choices": [],
        "supplier": "probe",
        "optional": False,
        "meaning": "busy share of all processors",
    }
    assert (listed["here", "keyboard_idle"]["optional"], listed["here", "keyboard_idle"]["high"]) == (True, None)
    assert listed["peer", "relation"]["choices"] == ["self", "child", "sibling", "parent"]
    assert main(["policy", "schema"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "keyboard_idle" in line)
    assert re.split("  +", line) == [
        "$here.keyboard_idle",
        "integer",
        "seconds",
        "0s and more",
        "probe",
        "may be unset",
        "time since the console was last used",
    ]
