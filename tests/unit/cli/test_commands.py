"""The commands that need no running module, and how all of them fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.cli.main import COMMANDS, FOR_ADMINISTRATORS, FOR_USERS, main

EXAMPLES = Path(__file__).parents[3] / "topologies"


@pytest.mark.processes
def test_version_imports_neither_click_nor_http() -> None:
    program = (
        "import sys; from messiahs.cli.main import main; main(['version']); "
        "sys.exit(bool({'click', 'http.client', 'msgspec'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == 0


@pytest.mark.processes
def test_a_submit_imports_no_large_module() -> None:
    program = (
        "import sys; from messiahs.cli.main import main; main(['submit', '--state', '/nowhere', '--', 'ls']); "
        "heavy = {'grpc', 'google.protobuf', 'networkx', 'aiohttp', 'msgspec', 'ruamel.yaml', 'rich', 'lark', "
        "'messiahs.core.interface.messages'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr.count(b"\n")) == (0, 1)


@pytest.mark.parametrize("word", sorted(COMMANDS))
def test_every_command_has_a_help(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "--help"]) == 0
    assert "Usage: messiahs" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["run", "submit"])
def test_the_help_says_how_each_limit_of_a_task_ends_it(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([word, "--help"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    # Each option is on a line of its own, with its text beside it and below.
    options = dict(part.split(" ", 1) for part in text.split("\n  --")[1:])
    said = {
        "mem": "memory_limit",
        "disk": "disk_limit",
        "time": "time_limit",
        "cpus": "slowed",
        "gpus": "in sandboxes only",
    }
    assert [name for name, end in said.items() if end not in " ".join(options[name].split())] == []


@pytest.mark.parametrize("option", ["--env", "--env-file"])
def test_a_variable_has_the_same_names_in_a_file_and_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    (tmp_path / "its.env").write_text("'A B'=3\n")
    value = {"--env": "A B=3", "--env-file": str(tmp_path / "its.env")}[option]
    (tmp_path / "f" / "left").mkdir(parents=True)
    (tmp_path / "f" / "left" / "settings.json").touch()
    assert main(["submit", option, value, "--state", str(tmp_path), "--", "true"]) == 2
    assert "`A B` names no variable: a name has no blanks, `=` or `#`" in capsys.readouterr().err


def test_a_file_that_a_wrong_use_quotes_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "their.env").write_text("\033]0;owned\007bad\n")
    assert main(["submit", "--env-file", str(tmp_path / "their.env"), "--", "true"]) == 2
    said = capsys.readouterr().err
    assert "owned" in said
    assert not {"\033", "\007"} & set(said)


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sbumit"]) == 2
    assert "No such command" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize(
    "words", [("policy", "schema"), ("policy", "check", "nowhere.policy"), ("status", "--state", "/nowhere"), ("x",)]
)
def test_a_command_whose_output_nobody_reads_ends_as_by_sigpipe(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "messiahs.cli.main", *words]
    assert subprocess.run(command, check=False, stdout=writer, stderr=writer).returncode == 141
    os.close(writer)


@pytest.mark.processes
def test_a_reader_that_closes_early_causes_no_message() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "messiahs.cli.main", "policy", "schema"]
    ended = subprocess.run(command, check=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.processes
def test_output_to_a_full_disk_is_a_message() -> None:
    command = [sys.executable, "-m", "messiahs.cli.main", "policy", "schema"]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (
        1,
        b"messiahs: No space left on device; free space on that disk, and repeat it\n",
    )


def test_a_valid_topology_is_reported_as_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "check", str(EXAMPLES / "trio.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "problems": [], "warnings": []}


def test_an_invalid_topology_is_reported_with_file_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("version: 1\nfederation: f\nsystems: {a: {parent: x}, b: {reach: far}}\n")
    assert main(["topology", "check", str(file)]) == 1
    assert main(["up", str(file), "--state", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert printed.count(f"{file}:3:23: there is no system `x`") == 2
    assert f"{file}:3:38: unknown reach `far`" in printed


def test_a_topology_is_drawn_under_the_primary_parents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "version: 1\nfederation: f\nsystems:\n  a: {}\n  b: {parent: a}\n"
        "  c: {parents: [a, b], primary: a, machine: {}}\n"
    )
    assert main(["topology", "show", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "f",
        "└─ a",
        "   ├─ b",
        "   └─ c (machine; also under b)",
        "",
        "who dials whom:",
        "  b -> a (parent)",
        "  c -> a (parent), b (parent)",
        "",
        "bytes, from the origin of a task to its machine: straight between all systems",
    ]


def test_topology_show_names_the_roots_of_other_sites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "version: 1\nfederation: f\nintroductions: [{file: b.pem, names: [b, 'b.*']}]\nsystems:\n  top: {}\n"
        "  gate: {external: true, parent: top, trust: [old.pem, {file: new.pem, names: [gate, gate.x]}]}\n"
    )
    assert main(["topology", "show", str(file)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2 : shown.index("")] == [
        "   └─ gate (external; old.pem vouches for gate; new.pem vouches for gate,",
        "        gate.x)",
        "introduction: b.pem vouches for b, b.*",
    ]
    assert main(["topology", "show", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["introductions"] == [{"file": str(tmp_path / "b.pem"), "names": ["b", "b.*"]}]
    assert [each["names"] for each in document["systems"]["gate"]["trust"]] == [["gate"], ["gate", "gate.x"]]
    assert main(["topology", "check", str(file)]) == 1
    assert f"{file}:3:24: the trust file {tmp_path / 'b.pem'} cannot be read" in capsys.readouterr().err


def test_an_external_system_without_trust_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("version: 1\nfederation: f\nsystems:\n  a: {}\n  far: {external: true, parent: a}\n")
    assert main(["topology", "check", str(file)]) == 0
    warning = (
        "`far` is external and has no `trust:`: only a root of this site may vouch for it. If its site has a root of "
        "its own, copy that root.pem, and name the copy as `trust: FILE`"
    )
    assert capsys.readouterr().err == f"{warning}\n"


def test_a_topology_is_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "show", str(EXAMPLES / "pair.yaml"), "--json"]) == 0
    right = json.loads(capsys.readouterr().out)["systems"]["right"]
    assert (right["machine"], right["parents"], right["primary_parent"]) == (True, ["left"], "left")


def test_a_module_run_needs_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["module", "run", "left", "--topology", str(EXAMPLES / "pair.yaml"), "--state", str(tmp_path)]
    assert main(command) == 1
    assert "no `host` and `port` for left" in capsys.readouterr().err


def test_no_modules_are_listed_where_none_ever_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "list", "--state", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "modules": []}


def test_down_of_a_federation_that_is_not_up_is_not_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["down", str(EXAMPLES / "pair.yaml"), "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "pair: nothing was running\n"


@pytest.mark.parametrize("words", [["-h"], ["module", "-h"], ["task", "-h"], ["policy", "--help"]])
def test_lists_of_commands_are_whole_at_80_columns(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == 0
    printed = capsys.readouterr().out
    listed = printed[printed.index("Commands") :]
    assert "..." not in listed
    assert max(map(len, printed.splitlines())) <= 80


def test_commands_are_listed_for_users_and_for_administrators(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    users, administrators = (
        capsys.readouterr().out.partition("Commands for users:")[2].split("Commands for administrators:")
    )
    for text, names in ((users, FOR_USERS), (administrators, FOR_ADMINISTRATORS)):
        assert [line.split()[0] for line in text.splitlines() if line[:2] == "  " and line[2:3].strip()] == list(names)


@pytest.mark.parametrize("word", sorted(COMMANDS))
def test_every_command_has_a_short_option_for_its_help(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "-h"]) == 0
    assert "-h, --help" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["statsu"], "Did you mean one of: 'status', 'task'?"),
        (["module", "lst"], "Did you mean 'list'?"),
        (["cleen"], "No such command 'cleen'.\n"),
        (["cancle"], "No such command 'cancle'.\n"),
        (["dwon"], "No such command 'dwon'.\n"),
        (["module", "revok"], "No such command 'revok'.\n"),
        (["run", "--tine", "5s"], "No such option '--tine'. Did you mean '--time'?\n"),
        (["run", "--tim", "5s"], "No such option '--tim'.\n"),
        (["run", "--memory", "5s"], "No such option '--memory'.\n"),
    ],
)
def test_unknown_words_suggest_near_ones(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert hint in capsys.readouterr().err


def test_a_command_of_a_group_is_suggested_by_its_last_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hold", "left.1"]) == 2
    assert "No such command 'hold'. Did you mean 'task hold'?" in capsys.readouterr().err
    assert main(["revoke", "left.1"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_choices_of_an_argument_are_shown_without_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    shown = capsys.readouterr().err
    assert "bash" in shown
    assert "\\t" not in shown
