"""`messiahs policy fmt`: which files are written, what is printed, and the exit codes."""

import io
import sys
from pathlib import Path

import pytest

from messiahs.cli.main import main

ILL = "accept   from any{limit 9 tasks;}  # all\n"
WELL = "accept from any { limit 9 tasks; }  # all\n"
BAD = "accept   from any { limit nine tasks; }\n"


def _file(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.policy"
    file.write_text(text)
    return file


def test_a_file_is_written_in_canonical_form_and_keeps_its_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _file(tmp_path, "a", ILL)
    file.chmod(0o640)
    assert main(["policy", "fmt", str(file)]) == 0
    assert (file.read_text(), file.stat().st_mode & 0o777) == (WELL, 0o640)
    assert capsys.readouterr().out == f"{file}: formatted\n"
    assert [each.name for each in tmp_path.iterdir()] == ["a.policy"]


def test_a_file_in_canonical_form_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "a", WELL)
    before = file.stat()
    assert main(["policy", "fmt", str(file)]) == 0
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert capsys.readouterr().out == ""


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file = _file(tmp_path, "a", ILL)
    link = tmp_path / "link.policy"
    link.symlink_to(file.name)
    assert main(["policy", "fmt", str(link)]) == 0
    assert link.is_symlink()
    assert file.read_text() == WELL


def test_a_check_shows_the_difference_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ill, well = _file(tmp_path, "ill", ILL), _file(tmp_path, "well", WELL)
    assert main(["policy", "fmt", "--check", str(well)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["policy", "fmt", "--check", str(well), str(ill)]) == 1
    assert capsys.readouterr().out == (f"--- {ill}\n+++ {ill} (formatted)\n@@ -1 +1 @@\n-{ILL}+{WELL}")
    assert ill.read_text() == ILL


def test_an_invalid_file_is_not_written_and_the_others_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, ill = _file(tmp_path, "bad", BAD), _file(tmp_path, "ill", ILL)
    assert main(["policy", "fmt", str(bad), str(tmp_path / "missing"), str(ill)]) == 1
    assert (bad.read_text(), ill.read_text()) == (BAD, WELL)
    printed = capsys.readouterr().err
    assert f"{bad}:1:27: error[P106]" in printed
    assert "missing:1:1: error[P001]: the file cannot be read" in printed


def test_a_file_with_mistakes_of_meaning_is_formatted(tmp_path: Path) -> None:
    file = _file(tmp_path, "a", "accept  from any { require $nothing <= 8min; }")
    assert main(["policy", "fmt", str(file)]) == 0
    assert file.read_text() == "accept from any { require $nothing <= 8min; }\n"


class _Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    ("content", "code", "out", "err"),
    [
        (ILL.encode(), 0, WELL, ""),
        (b"", 0, "", ""),
        (BAD.encode(), 1, "", "<stdin>:1:27: error[P106]"),
        (b"\xff", 1, "", "not valid UTF-8"),
    ],
)
def test_stdin_is_written_to_stdout(
    content: bytes,
    code: int,
    out: str,
    err: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", _Stdin(content))
        assert main(["policy", "fmt", *words]) == code
        printed = capsys.readouterr()
        assert printed.out == out
        assert err in printed.err


def test_stdin_can_be_checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(ILL.rstrip("\n").encode()))
    assert main(["policy", "fmt", "--check"]) == 1
    assert "+++ <stdin> (formatted)" in capsys.readouterr().out


TEST_ILL = 'policy "a.policy"; test "x"{at 2026-01-02 06:05;expect   accept;}  # all\n'
TEST_WELL = """policy "a.policy";
test "x" {
    at 2026-01-02 6:05;
    expect accept;
}  # all
"""


def test_tests_are_written_in_canonical_form_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.policytest"
    file.write_text(TEST_ILL)
    assert main(["policy", "fmt", "--check", str(file)]) == 1
    assert "+    expect accept;\n" in capsys.readouterr().out
    assert main(["policy", "fmt", str(file)]) == 0
    assert file.read_text() == TEST_WELL
    assert main(["policy", "fmt", "--check", str(file)]) == 0


def test_tests_may_come_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(TEST_ILL.encode()))
    assert main(["policy", "fmt"]) == 0
    assert capsys.readouterr().out == TEST_WELL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'policy "a.policy" test "x" { expect accept; }',
            "a.policytest:1:19: error[P106]: a `;` is missing before `test`",
        ),
        ('policy "a.policy"; test "x" { expect acept; }', "a.policytest:1:38: error[P106]"),
        ('test "x" { here { mem = 4GiB 5GiB; } }', "a.policytest:1:19: error[P106]: this states nothing"),
        ('test "x" { expekt accept; }', "a.policytest:1:12: error[P106]: `expekt` cannot begin a statement here"),
        ('test "x" { expect accept;', "a.policytest:1:26: error[P106]: a `}` is missing before the end"),
        ('test "x" { } }', "a.policytest:1:14: error[P106]: `}` has nothing to end"),
    ],
)
def test_invalid_tests_are_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    file = tmp_path / "a.policytest"
    file.write_text(text)
    assert main(["policy", "fmt", str(file)]) == 1
    assert expected in capsys.readouterr().err
    assert file.read_text() == text


@pytest.mark.parametrize("words", [["fmt"], ["fmt", "--check", "-"], ["explain", "FILE", "--task", "-"]])
def test_a_closed_standard_input_is_reported(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _file(tmp_path, "a", WELL)
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["policy", *(str(file) if word == "FILE" else word for word in words)]) == 1
    assert capsys.readouterr().err == "messiahs: <stdin>: standard input is closed\n"


def test_a_byte_order_mark_is_reported_once_with_its_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "a", f"\ufeff{WELL}")
    assert main(["policy", "fmt", str(file)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error[") == 1
    assert "save the text as UTF-8 without one" in printed
