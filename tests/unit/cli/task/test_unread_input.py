"""Data on standard input is refused only where it would be lost."""

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

MESSIAHS = (sys.executable, "-m", "messiahs.cli.main")
REFUSED = "there is data on standard input, and a submitted task has no standard input"
WENT_ON = "no module has ever run"
"""Message of a command that is not refused, where no module has ever run."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    monkeypatch.setenv("SUBMIT", " ".join((*MESSIAHS, "submit", "--", "cat")))
    monkeypatch.setenv("RUN", " ".join((*MESSIAHS, "run", "--", "cat")))
    return tmp_path


def _done(stdin: int, command: Sequence[str] = (*MESSIAHS, "submit", "--", "cat")) -> tuple[int, str]:
    done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def test_a_file_and_a_pipe_with_data_are_refused(place: Path) -> None:
    (place / "data").write_text("hello")
    with (place / "data").open() as file:
        code, printed = _done(file.fileno())
    assert (code, REFUSED in printed, "`--input FILE`" in printed) == (2, True, True)
    reader, writer = os.pipe()
    os.write(writer, b"hello")
    code, printed = _done(reader)
    assert (code, REFUSED in printed) == (2, True)
    os.close(reader)
    os.close(writer)


def test_a_pipe_whose_writer_is_late_is_refused(place: Path) -> None:
    reader, writer = os.pipe()
    code, printed = _done(reader)
    assert (place.is_dir(), code, "standard input is a pipe that is still open" in printed) == (True, 2, True)
    os.close(reader)
    os.close(writer)


def test_a_socket_with_data_is_refused(place: Path) -> None:
    ours, other = socket.socketpair()
    with ours, other:
        other.send(b"hello")
        code, printed = _done(ours.fileno())
    assert (place.is_dir(), code, REFUSED in printed) == (True, 2, True)


def test_an_input_without_data_is_accepted(place: Path) -> None:
    (place / "empty").write_text("")
    (place / "read").write_text("hello")
    reader, writer = os.pipe()
    os.close(writer)
    ours, other = socket.socketpair()
    terminal, typed_at = pty.openpty()
    os.write(terminal, b"typed\n")
    with (place / "empty").open() as empty, (place / "read").open() as read, ours, other:
        os.lseek(read.fileno(), 0, os.SEEK_END)
        for stdin in (subprocess.DEVNULL, reader, ours.fileno(), typed_at, empty.fileno(), read.fileno()):
            code, printed = _done(stdin)
            assert (code, WENT_ON in printed) == (1, True)
    for descriptor in (reader, terminal, typed_at):
        os.close(descriptor)


def test_a_closed_standard_input_is_accepted(place: Path) -> None:
    code, printed = _done(subprocess.DEVNULL, ("sh", "-c", "exec $SUBMIT <&-"))
    assert (place.is_dir(), code, WENT_ON in printed) == (True, 1, True)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("source", ["done < names", "done"])
def test_a_loop_that_reads_lines_gets_all_of_them(place: Path, shell: str, source: str) -> None:
    (place / "names").write_text("one\ntwo\nthree\n")
    loop = f'while read name; do $RUN; echo "$? $name"; {source}'
    script = loop if "<" in source else f"cat names | {{ {loop}; }}"
    done = subprocess.run([shell, "-c", script], cwd=place, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "125 one\n125 two\n125 three\n"


def test_a_script_that_is_read_from_a_pipe_continues(place: Path) -> None:
    script = "$RUN\necho first $?\n$RUN\necho second $?\n"
    done = subprocess.run(["bash"], input=script, cwd=place, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "first 125\nsecond 125\n"


def test_each_line_from_standard_input_is_not_refused(place: Path) -> None:
    command = [*MESSIAHS, "submit", "--each-line", "-", "--", "echo", "{}"]
    done = subprocess.run(command, input="a\nb\n", capture_output=True, text=True, check=False, timeout=60)
    assert (place.is_dir(), WENT_ON in done.stderr) == (True, True)
