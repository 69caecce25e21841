"""`messiahs run -it`: a task with the terminal of its user, on the own machine and at a neighbor, whatever ends."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import pytest

from tests.commands import Command
from tests.live.conftest import Federation
from tests.waiting import eventually, let_pass

ON_RIGHT = ("--require", '$side eq "right"')
PLACES = pytest.mark.parametrize("place", [(), ON_RIGHT], ids=["here", "neighbor"])
CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"
ALL_BYTES = bytes(range(256))


class Terminal:
    """A terminal in which `messiahs run -it` runs, as the first process of its session (mutable)."""

    def __init__(self, environment: Mapping[str, str], *words: str, rows: int = 33, columns: int = 101) -> None:
        self.shown, self._code = b"", None
        self.master, self._slave = pty.openpty()
        self.resize(rows, columns)
        self.usual = termios.tcgetattr(self._slave)
        # Also below `nohup`, which the command would respect, a hangup ends it.
        leader = (
            "import fcntl, os, signal, sys, termios; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        run = [sys.executable, "-m", "messiahs.cli.main", "run", "-it", *words]
        self.command = Command[bytes](
            [sys.executable, "-c", leader, *run],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**environment, "TERM": "vt100"},
            start_new_session=True,
        )
        os.set_blocking(self.master, False)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size, as a window does."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """Type keys."""
        while keys:
            with suppress(BlockingIOError):
                keys = keys[os.write(self.master, keys) :]
            self.look()

    def look(self) -> bytes:
        """Return everything that was shown."""
        with suppress(OSError):
            while piece := os.read(self.master, 65_536):
                self.shown += piece
        return self.shown

    def shows(self, text: bytes) -> None:
        """Wait until a text was shown."""
        eventually(lambda: text in self.look(), self.shown)

    def press(self, keys: bytes, *, until: Callable[[], bool]) -> None:
        """Press keys again and again until they have had their effect: what runs may not have been there at first."""

        def has_effect() -> bool:
            if until():
                return True
            self.type(keys)
            let_pass(0.2)
            return until()

        eventually(has_effect, self.shown)

    def code(self) -> int:
        """Wait for the end; the terminal is as it was before, then."""
        eventually(lambda: self.look() is not None and self.command.poll() is not None, self.shown)
        self.look()
        assert termios.tcgetattr(self._slave) == self.usual
        return self.command.returncode

    def close(self) -> None:
        """Close the window."""
        for descriptor in (self.master, self._slave):
            with suppress(OSError):
                os.close(descriptor)


@contextmanager
def terminal(environment: Mapping[str, str], *words: str) -> Iterator[Terminal]:
    opened = Terminal(environment, *words)
    try:
        yield opened
    finally:
        opened.close()
        with opened.command:
            opened.command.kill()


@PLACES
def test_the_size_follows_and_the_code_is_that_of_the_task(pair: Federation, place: tuple[str, ...]) -> None:
    loop = 'while [ "$line" != end ]; do read line; done; exit 7'
    script = f"stty size; echo kind $TERM; trap 'stty size' WINCH; echo go; {loop}"
    with terminal(pair.environment, *place, "--", "sh", "-c", script) as run:
        run.shows(b"go")
        assert b"33 101\r\nkind vt100\r\n" in run.shown
        run.resize(50, 60)
        run.shows(b"50 60")
        run.type(b"end\n")
        assert run.code() == 7


@PLACES
def test_every_byte_passes_in_both_directions(pair: Federation, place: tuple[str, ...]) -> None:
    script = "stty raw -echo; echo ready; head -c 25600; echo over"
    with terminal(pair.environment, *place, "--", "sh", "-c", script) as run:
        run.shows(b"ready\n")
        begin = run.shown.index(b"ready\n") + len(b"ready\n")
        run.type(ALL_BYTES * 100)
        run.shows(b"over")
        assert run.shown[begin:] == ALL_BYTES * 100 + b"over\n"
        assert run.code() == 0


@PLACES
def test_ctrl_c_and_ctrl_z_are_keys_of_the_task(pair: Federation, place: tuple[str, ...]) -> None:
    script = "set -m; trap : INT; echo go; sleep 61; echo stopped; fg; echo over; exit 4"
    with terminal(pair.environment, *place, "--", "sh", "-c", script) as run:
        run.shows(b"go")
        run.press(CTRL_Z, until=lambda: b"stopped" in run.look())
        run.press(CTRL_C, until=lambda: b"over" in run.look())
        assert run.code() == 4
    with terminal(pair.environment, *place, "--", "sh", "-c", "echo go; exec sleep 62") as run:
        run.shows(b"go")
        run.type(CTRL_C)
        assert run.code() == 130


def test_a_terminal_works_over_two_hops(trio: Federation) -> None:
    eventually(lambda: trio.vectors()["up"]["machines"] == 2)
    script = "stty size; trap 'stty size' WINCH; echo go; while [ \"$line\" != end ]; do read line; done; cat; exit 7"
    with terminal(trio.environment, "--require", "$speed >= 900", "--", "sh", "-c", script) as run:
        run.shows(b"go")
        assert b"33 101\r\n" in run.shown
        run.resize(50, 60)
        run.shows(b"50 60")
        run.type(b"end\n")
        run.type(b"copied\n")
        run.shows(b"copied\r\ncopied\r\n")
        run.type(CTRL_D)
        assert run.code() == 7
    assert trio.document("status")["tasks"][-1]["executed_on"] == "leaf"


def test_a_program_for_the_whole_screen_works(pair: Federation) -> None:
    script = "seq 500 > numbers; exec less numbers"
    with terminal(pair.environment, *ON_RIGHT, "--", "sh", "-c", script) as run:
        run.shows(b"numbers")
        assert b"\r\n32\r\n" in run.shown.replace(b"\x1b[K", b"")
        run.type(b"G")
        run.shows(b"500")
        run.type(b"g/123\n")
        run.shows(b"154")
        before = len(run.shown)
        run.resize(10, 40)
        eventually(lambda: len(run.look()) > before)
        # `less` forgets a key during a change.
        run.press(b"q", until=lambda: run.command.poll() is not None)
        assert run.code() == 0


def test_what_is_typed_early_is_for_the_task_and_much_output_comes_whole(pair: Federation) -> None:
    with terminal(pair.environment, *ON_RIGHT, "--", "sh", "-c", "read line; echo [$line]; seq 300000") as run:
        run.type(b"early\n")
        run.shows(b"[early]")
        assert run.code() == 0
        begin = run.shown.index(b"[early]\r\n") + len(b"[early]\r\n")
        assert run.shown[begin:] == b"".join(b"%d\r\n" % number for number in range(1, 300_001))


@pytest.mark.parametrize("module", ["left", "right"])
def test_a_terminal_outlives_the_daemons_on_its_way(own_pair: Federation, module: str) -> None:
    script = "while read line; do echo [$line]; done; exit 5"
    before = own_pair.pid(module, "daemon")
    with terminal(own_pair.environment, *ON_RIGHT, "--", "sh", "-c", script) as run:
        run.type(b"one\n")
        run.shows(b"[one]")
        own_pair.kill(module, "daemon")
        run.type(b"two\n")
        eventually(lambda: own_pair.pid(module, "daemon") != before)
        run.type(b"three\n")
        run.shows(b"[two]")
        run.shows(b"[three]")
        run.type(CTRL_D)
        assert run.code() == 5
    (task,) = own_pair.document("status")["tasks"]
    assert (task["state"], task["attempt"]) == ("finished", 1)


def test_a_task_whose_starter_was_killed_never_runs_again(own_pair: Federation) -> None:
    with terminal(own_pair.environment, *ON_RIGHT, "--", "sh", "-c", "echo go; cat") as run:
        run.shows(b"go")
        own_pair.kill("right", "starter")
        assert run.code() == 125
        said = re.sub(rb"\s+", b" ", run.shown)
        assert b"what was typed in its terminal is gone with that attempt, so it does not run again" in said
        assert run.shown.count(b"go\r\n") == 1
    (task,) = own_pair.document("status")["tasks"]
    assert (task["state"], task["attempt"]) == ("aborted", 1)
    assert "its terminal" in task["text"]


def test_a_revoked_task_never_runs_again(own_pair: Federation) -> None:
    with terminal(own_pair.environment, *ON_RIGHT, "--", "sh", "-c", "echo go; cat") as run:
        run.shows(b"go")
        (task,) = own_pair.document("status")["tasks"]
        assert own_pair.run("task", "revoke", task["id"]).returncode == 0
        assert run.code() == 125
    (task,) = own_pair.document("status")["tasks"]
    assert (task["state"], task["attempt"]) == ("aborted", 1)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_for_run_hangs_the_task_up(pair: Federation, number: signal.Signals) -> None:
    script = "trap '' TERM; trap 'echo hung up; exit 1' HUP; echo go; while :; do sleep 0.1; done"
    with terminal(pair.environment, *ON_RIGHT, "--", "sh", "-c", script) as run:
        run.shows(b"go")
        run.command.send_signal(number)
        assert run.code() == 130


def test_a_closed_window_hangs_the_task_up(own_pair: Federation) -> None:
    with terminal(own_pair.environment, *ON_RIGHT, "--", "sh", "-c", "trap '' TERM; echo go; sleep 600") as run:
        run.shows(b"go")
        run.close()
        eventually(lambda: run.command.poll() is not None)
        (task,) = own_pair.document("status")["tasks"]
        eventually(lambda: own_pair.status(task["id"])["state"] == "killed")


def test_a_killed_run_hangs_the_task_up_after_a_while(own_pair: Federation) -> None:
    with terminal(own_pair.environment, *ON_RIGHT, "--", "sh", "-c", "trap '' TERM; echo go; sleep 600") as run:
        run.shows(b"go")
        run.command.kill()
        (task,) = own_pair.document("status")["tasks"]
        eventually(lambda: own_pair.status(task["id"])["state"] == "killed")


def test_ctrl_c_before_the_task_runs_ends_it(pair: Federation) -> None:
    with terminal(pair.environment, "--require", '$side eq "nowhere"', "--", "cat") as run:
        run.shows(b"Ctrl-C cancels it")
        run.type(CTRL_C)
        assert run.code() == 130


def test_without_a_terminal_it_says_so(pair: Federation) -> None:
    for words in (["-it"], ["-t"]):
        done = subprocess.run(
            [sys.executable, "-m", "messiahs.cli.main", "run", *words, "--", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=pair.environment,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "-t needs a terminal as standard input" in done.stderr


def test_options_that_contradict_a_terminal_are_refused(pair: Federation) -> None:
    for words, text in ((["--json"], "-t and --json cannot be combined"), (["--retries", "1"], "the task runs once")):
        with terminal(pair.environment, *words, "--", "true") as run:
            assert run.code() == 2
            assert text.encode() in run.shown


def test_a_pipe_that_a_script_has_as_well_is_read_if_that_is_wanted(pair: Federation) -> None:
    run = f"{sys.executable} -m messiahs.cli.main run -i -- cat"
    shell = subprocess.run(
        ["sh", "-c", f"printf 'one\\ntwo\\n' | {{ {run}; }}"], capture_output=True, check=False, env=pair.environment
    )
    assert (shell.stdout, shell.stderr) == (b"one\ntwo\n", b"")
