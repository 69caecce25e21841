"""The terminal of `run -t`: frames for the task, and how it is left."""

import fcntl
import gc
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.cli.task.terminal import TerminalInput
from messiahs.core.model.terminals import TerminalSize, frame_of_keys, frame_of_size


class Window:
    """Both ends of a terminal."""

    def __init__(self) -> None:
        self.user, self.command = pty.openpty()
        self.usual = termios.tcgetattr(self.command)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size."""
        fcntl.ioctl(self.command, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


@pytest.fixture
def window() -> Iterator[Window]:
    opened = Window()
    yield opened
    os.close(opened.user)
    os.close(opened.command)


def open_pipes() -> set[str]:
    """Return the pipes of which this process has an end."""
    links = set[str]()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.add(str(link.readlink()))
    return {each for each in links if each.startswith("pipe:")}


def test_keys_and_sizes_are_brought_in_frames_and_nothing_is_lost_of_what_was_typed_early(window: Window) -> None:
    window.resize(33, 101)
    terminal = TerminalInput(window.command)
    assert terminal.size == TerminalSize(rows=33, columns=101)
    assert termios.tcgetattr(window.command) == window.usual
    os.write(window.user, b"early\n")
    assert terminal.read() == frame_of_keys(b"early\n")
    keys = bytes(range(256))
    os.write(window.user, keys)
    window.resize(5, 6)
    assert terminal.read() == frame_of_size(TerminalSize(rows=5, columns=6)) + frame_of_keys(keys)
    terminal.restore()
    assert termios.tcgetattr(window.command) == window.usual


def test_after_the_end_it_stays_as_it_was(window: Window) -> None:
    terminal = TerminalInput(window.command)
    with terminal.in_use():
        terminal.make_raw()
        assert termios.tcgetattr(window.command) != window.usual
    assert termios.tcgetattr(window.command) == window.usual
    terminal.make_raw()
    assert termios.tcgetattr(window.command) == window.usual
    assert terminal.read() is None


def test_a_terminal_without_a_size_has_a_usual_one(window: Window) -> None:
    window.resize(0, 0)
    assert TerminalInput(window.command).size == TerminalSize(rows=24, columns=80)


def test_nothing_stays_open_of_a_terminal_that_nobody_uses(window: Window) -> None:
    before = open_pipes()
    terminal = TerminalInput(window.command)
    opened = open_pipes() - before
    assert len(opened) == 1
    del terminal
    gc.collect()
    assert not opened & open_pipes()


def test_a_terminal_that_is_gone_is_an_error(window: Window) -> None:
    terminal = TerminalInput(window.command)
    terminal.make_raw()
    os.close(window.user)
    with pytest.raises(OSError, match=r"terminal is gone|Input/output error"):
        terminal.read()
    terminal.restore()
    window.user, other = pty.openpty()
    os.close(other)
