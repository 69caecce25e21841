"""What `messiahs run` says about a program that the task did not find."""

from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main
from messiahs.cli.task.missing_program import program_hint
from tests.unit.client.local_api_peer import StartPeer

MISSING: dict[str, Any] = {"id": "left.1", "state": "aborted", "cause": "not_found", "exit_code": None, "text": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with programs, and a text that is none."""
    (tmp_path / "bin").mkdir()
    for name in ("prog", "bin/prog", "my prog"):
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "text").touch(mode=0o644)
    return tmp_path


@pytest.mark.parametrize(
    ("program", "inputs", "hint"),
    [
        ("./prog", (), "./prog is here: add `--input ./prog`"),
        ("././prog", (), "./prog is here: add `--input ./prog`"),
        ("bin/prog", (), "./bin/prog is here: add `--input bin/prog:bin/prog`"),
        ("./bin/prog", ("prog",), "./bin/prog is here: add `--input bin/prog:bin/prog`"),
        ("./my prog", (), "./my prog is here: add `--input './my prog'`"),
        ("./text", (), "./text is here: add `--input ./text`"),
        ("prog", (), "./prog is here: add `--input ./prog`, and run `./prog`"),
        ("prog", ("prog",), "prog is an input: run `./prog`"),
        ("other", ("other",), "other is an input: run `./other`"),
        ("./prog", ("prog",), ""),
        ("./bin/prog", ("bin/prog",), ""),
        ("text", (), ""),
        ("other", (), ""),
        ("./bin", (), ""),
        ("bin", (), ""),
        ("../prog", (), ""),
        ("/bin/prog", (), ""),
        ("", (), ""),
    ],
)
def test_a_program_that_is_here_is_named_with_how_to_bring_it(
    folder: Path, program: str, inputs: tuple[str, ...], hint: str
) -> None:
    assert program_hint(MISSING, [program, "3"], inputs=inputs, folder=folder) == hint


@pytest.mark.parametrize("ended", [{"exit_code": 126}, {"cause": "", "exit_code": 127}, {"cause": "time_limit"}])
def test_a_task_that_found_its_program_gets_no_hint(folder: Path, ended: dict[str, Any]) -> None:
    assert program_hint({**MISSING, **ended}, ["./prog"], inputs=(), folder=folder) == ""


def test_a_name_of_many_letters_is_no_error(folder: Path) -> None:
    assert program_hint(MISSING, ["./" + 300 * "x"], inputs=(), folder=folder) == ""
    assert program_hint(MISSING, ["a\0b"], inputs=(), folder=folder) == ""


def test_run_adds_the_hint_to_the_reason(
    folder: Path, start_peer: StartPeer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MESSIAHS_STATE", str(folder))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    peer = start_peer((200, {"id": "left.1"}), (200, MISSING), state=folder)
    peer.logs = {"stdout": b"", "stderr": b""}
    assert main(["run", "--", "./prog", "3"]) == 127
    why = "left.1 aborted: the program was not found"
    assert capfd.readouterr().err == f"messiahs: {why}\n    ./prog is here: add `--input ./prog`\n"
