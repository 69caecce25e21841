"""Files of variables for tasks, and of the lines of arrays."""

import re
from pathlib import Path

import pytest

from messiahs.config.text_files import lines_of, variables_of
from messiahs.core.interface.limits import REQUEST_LIMIT_BYTES
from messiahs.errors import OptionValueError


def test_variables_are_read_as_shells_write_them(tmp_path: Path) -> None:
    file = tmp_path / "site.env"
    file.write_text("# for the cluster\nA=1\n\nexport B=\"two words\"  # quoted\nC='its'\nD=\nE=$HOME/{}\nA=2\n")
    assert variables_of(str(file)) == {"A": "2", "B": "two words", "C": "its", "D": "", "E": "$HOME/{}"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"A=1\n\nNAME\n", "line 3: `NAME` is not NAME=VALUE"),
        (b"A=1\n=2\n", "line 2: `=2` is not NAME=VALUE"),
        (b"A='1\n", "line 1: `A='1` is not NAME=VALUE"),
        (b"A=\xff\n", "is not UTF-8 text (byte 3)"),
    ],
)
def test_a_line_that_is_no_variable_is_an_error_with_its_number(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "site.env"
    file.write_bytes(content)
    with pytest.raises(OptionValueError, match=re.escape(said)):
        variables_of(str(file))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionValueError, match="cannot be read: No such file"):
        variables_of(str(tmp_path / "absent"))


def test_a_file_with_more_lines_than_one_submit_takes_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x" * 79 + b"\n")
    with file.open("r+b") as opened:
        opened.seek(REQUEST_LIMIT_BYTES)
        opened.write(b"\n")
    said = f"is longer than {REQUEST_LIMIT_BYTES} bytes, the most of one submit: divide it among several, or let"
    with pytest.raises(OptionValueError, match=said):
        lines_of(str(file))
