"""Standard input of `messiahs run`: the task reads it as a local command would, whatever dies on the way."""

import hashlib
import os
import pty
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands import Command
from tests.live.conftest import Federation
from tests.waiting import PATIENCE_SECONDS, eventually, let_pass

RUN = (sys.executable, "-m", "messiahs.cli.main", "run")
ON_RIGHT = ("--require", '$side eq "right"')
MEGABYTE = 1 << 20


def started(pair: Federation, *words: str, stdin: int) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return Command[bytes]([*RUN, *words], stdin=stdin, stdout=pipe, stderr=pipe, env=pair.environment)


def done(pair: Federation, *words: str, stdin: int) -> tuple[int, bytes, bytes]:
    process = started(pair, *words, stdin=stdin)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def fed(pair: Federation, content: bytes, *words: str) -> tuple[int, bytes, bytes]:
    """Run a command with a pipe as its standard input."""
    process = started(pair, *words, stdin=subprocess.PIPE)
    out, err = process.communicate(content, timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def content_of(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def writing(descriptor: int, content: bytes) -> threading.Thread:
    """Write into a pipe from a thread, and close it."""

    def write() -> None:
        with open(descriptor, "wb", buffering=0) as file:
            left = memoryview(content)
            while left:
                left = left[file.write(left) :]

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("place", [(), ON_RIGHT])
def test_a_task_reads_a_file_and_a_pipe_to_the_last_byte(
    pair: Federation, tmp_path: Path, place: tuple[str, ...]
) -> None:
    content = content_of(1, 5 * MEGABYTE + 7)
    expected = (0, hashlib.sha256(content).hexdigest().encode(), b"")
    code, out, err = fed(pair, content, *place, "--", "sha256sum")
    assert (code, out.split()[0], err) == expected
    (tmp_path / "data").write_bytes(b"skipped" + content)
    with (tmp_path / "data").open("rb") as file:
        os.lseek(file.fileno(), 7, os.SEEK_SET)
        code, out, err = done(pair, *place, "--", "sha256sum", stdin=file.fileno())
    assert (code, out.split()[0], err) == expected


def test_a_task_without_input_reads_an_end_at_once(pair: Federation) -> None:
    assert done(pair, "--", "cat", stdin=subprocess.DEVNULL) == (0, b"", b"")
    assert fed(pair, b"", "--", "cat") == (0, b"", b"")


def test_input_that_arrives_late_on_a_socket_reaches_the_task(pair: Federation) -> None:
    ours, other = socket.socketpair()
    with ours, other, started(pair, "--", "sh", "-c", "echo begun; exec cat", stdin=other.fileno()) as run:
        other.close()
        assert run.stdout is not None
        assert run.stdout.readline() == b"begun\n"
        ours.send(b"late")
        assert run.stdout.read(4) == b"late"
        ours.close()
        assert run.wait(PATIENCE_SECONDS) == 0


def test_a_task_that_ends_early_ends_the_run_with_its_own_code_and_the_producer_with_sigpipe(pair: Federation) -> None:
    with Command[bytes](["yes"], stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        run = started(pair, *ON_RIGHT, "--", "sh", "-c", "head -n 1; exit 3", stdin=producer.stdout.fileno())
        producer.stdout.close()
        assert run.communicate(timeout=PATIENCE_SECONDS) == (b"y\n", b"")
        assert run.returncode == 3
        assert producer.wait(PATIENCE_SECONDS) == -signal.SIGPIPE


def test_a_producer_learns_that_the_task_has_closed_its_input_while_the_task_continues(
    pair: Federation, shared: Path
) -> None:
    with Command[bytes](["yes"], stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        script = f"exec <&-; while [ ! -e {shared}/closed ]; do sleep 0.05; done; echo last"
        run = started(pair, *ON_RIGHT, "--", "sh", "-c", script, stdin=producer.stdout.fileno())
        producer.stdout.close()
        assert producer.wait(PATIENCE_SECONDS) == -signal.SIGPIPE
        (shared / "closed").touch()
        assert run.communicate(timeout=PATIENCE_SECONDS) == (b"last\n", b"")


def test_a_task_that_does_not_read_blocks_the_producer(pair: Federation, shared: Path) -> None:
    content = content_of(2, 16 * MEGABYTE)
    reader, writer = os.pipe()
    script = f"echo begun; while [ ! -e {shared}/go ]; do sleep 0.05; done; exec sha256sum"
    run = started(pair, *ON_RIGHT, "--", "sh", "-c", script, stdin=reader)
    os.close(reader)
    assert run.stdout is not None
    assert run.stdout.readline() == b"begun\n"
    os.set_blocking(writer, False)
    written = 0

    def is_past(size: int) -> bool:
        nonlocal written
        with suppress(BlockingIOError):
            written += os.write(writer, content[written : written + 65_536])
        return written >= size

    eventually(lambda: is_past(MEGABYTE))
    for _ in range(20):
        let_pass(0.05)
        while is_past(written + 1):
            pass
    # A window in the client and one in the module, and the pipes.
    assert written < 4 * MEGABYTE
    (shared / "go").touch()
    os.set_blocking(writer, True)
    writing(writer, content[written:])
    out, err = run.communicate(timeout=PATIENCE_SECONDS)
    assert (run.returncode, out.split()[0], err) == (0, hashlib.sha256(content).hexdigest().encode(), b"")


def copied(words: Sequence[str], environment: Mapping[str, str], *, interrupt: Callable[[], None]) -> None:
    """Run `cat` with a pipe as its standard input, interrupt something in the middle, and compare every byte."""
    content = content_of(3, 8 * MEGABYTE)
    reader, writer = os.pipe()
    go_on = threading.Event()

    def write() -> None:
        for start in range(0, len(content), 1 << 15):
            if start == len(content) // 2:
                go_on.wait()
            os.write(writer, content[start : start + (1 << 15)])
        os.close(writer)

    pipe = subprocess.PIPE
    with Command[bytes]([*RUN, *words, "--", "cat"], stdin=reader, stdout=pipe, env=environment) as run:
        os.close(reader)
        producer = threading.Thread(target=write)
        producer.start()
        assert run.stdout is not None
        try:
            received = run.stdout.read(MEGABYTE)
            interrupt()
        finally:
            go_on.set()
        received += run.stdout.read()
        producer.join()
        assert run.wait(PATIENCE_SECONDS) == 0
    assert hashlib.sha256(received).digest() == hashlib.sha256(content).digest()


@pytest.mark.parametrize("module", ["left", "right"])
def test_a_daemon_killed_in_the_middle_loses_and_repeats_nothing(own_pair: Federation, module: str) -> None:
    before = own_pair.pid(module, "daemon")
    copied(ON_RIGHT, own_pair.environment, interrupt=lambda: own_pair.kill(module, "daemon"))
    eventually(lambda: own_pair.pid(module, "daemon") != before)
    (task,) = own_pair.document("status")["tasks"]
    assert (task["state"], task["attempt"]) == ("finished", 1)


def _loses_its_first_attempt(pair: Federation, stdin: int) -> tuple[int, bytes, bytes]:
    """Run a task whose first attempt is lost after it has read standard input to its end."""
    script = "wc -c; [ $MESSIAHS_ATTEMPT -gt 1 ] || exec sleep 600"
    run = started(pair, *ON_RIGHT, "--", "sh", "-c", script, stdin=stdin)
    assert run.stdout is not None
    assert run.stdout.readline() == b"7\n"
    pair.kill("right", "starter")
    out, err = run.communicate(timeout=PATIENCE_SECONDS)
    return run.returncode, out, err


def test_an_attempt_that_is_repeated_reads_a_file_again(own_pair: Federation, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"content")
    with (tmp_path / "data").open("rb") as file:
        assert _loses_its_first_attempt(own_pair, file.fileno()) == (0, b"7\n", b"")


def test_an_attempt_that_is_repeated_reads_a_pipe_again(own_pair: Federation) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"content")
    os.close(writer)
    assert _loses_its_first_attempt(own_pair, reader) == (0, b"7\n", b"")
    os.close(reader)


def test_an_attempt_that_is_repeated_cannot_get_a_pipe_that_could_not_be_kept(own_pair: Federation) -> None:
    script = (
        "import tempfile; tempfile.tempdir = '/nowhere'; from messiahs.cli.main import main; raise SystemExit(main())"
    )
    words = ["run", *ON_RIGHT, "--", "sh", "-c", "wc -c; exec sleep 600"]
    pipe, environment = subprocess.PIPE, own_pair.environment
    command = [sys.executable, "-c", script, *words]
    with Command[bytes](command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(b"content")
        run.stdin.close()
        assert run.stdout.readline() == b"7\n"
        own_pair.kill("right", "starter")
        assert run.wait(PATIENCE_SECONDS) == 125
        err = run.stderr.read()
    assert b"cannot get this standard input again: it cannot be kept in /nowhere: No such file or directory" in err
    assert b"starts again as attempt 2, and what attempt 1 has read of standard input cannot be read again" in err
    (task,) = own_pair.document("status")["tasks"]
    assert task["state"] == "killed"
    refused = own_pair.run("retry", task["id"], "--failed")
    assert (refused.returncode, "is gone: run it again" in refused.stderr) == (1, True)


class Terminal:
    """A terminal in which a command runs."""

    def __init__(self, pair: Federation, *words: str) -> None:
        self.shown = b""
        child, self.ours = pty.fork()
        if child == 0:
            os.execve(sys.executable, [*RUN, *words], dict(pair.environment))
        self.child = child

    def type(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self.ours, keys)

    def shows(self, text: bytes) -> Callable[[], bool]:
        """Return a condition: the terminal has shown a text."""

        def has_shown() -> bool:
            os.set_blocking(self.ours, False)
            # Nothing is new, or the terminal is closed.
            with suppress(OSError):
                self.shown += os.read(self.ours, 65_536)
            return text in self.shown

        return has_shown

    def code(self) -> int:
        """Wait for the end of the command."""
        _, status = os.waitpid(self.child, 0)
        os.close(self.ours)
        return os.waitstatus_to_exitcode(status)


def test_a_terminal_is_read_line_by_line_until_ctrl_d(pair: Federation) -> None:
    terminal = Terminal(pair, *ON_RIGHT, "--", "sh", "-c", 'while read line; do echo "[$line]"; done; echo end; exit 5')
    terminal.type(b"one\n")
    eventually(terminal.shows(b"[one]"))
    terminal.type(b"two\n")
    eventually(terminal.shows(b"[two]"))
    terminal.type(b"\x04")
    eventually(terminal.shows(b"end"))
    assert terminal.code() == 5


def test_ctrl_c_in_a_terminal_ends_a_task_that_reads(pair: Federation) -> None:
    terminal = Terminal(pair, *ON_RIGHT, "--", "cat")
    terminal.type(b"one\n")
    eventually(terminal.shows(b"one\r\none"))
    terminal.type(b"\x03")
    assert terminal.code() == 130


def test_a_loop_keeps_its_lines_and_a_script_says_what_the_task_does_not_read(pair: Federation) -> None:
    loop = f'while read name; do {" ".join(RUN)} -- cat; echo "$name"; done'
    shell = subprocess.run(
        ["sh", "-c", f"printf 'one\\ntwo\\n' | {{ {loop}; }}"], capture_output=True, check=False, env=pair.environment
    )
    assert shell.stdout == b"one\ntwo\n"
    assert shell.stderr.count(b"the task does not read standard input, which is that of") == 1
