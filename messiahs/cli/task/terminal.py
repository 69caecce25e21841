"""The terminal of `messiahs run -t`: its keys and its size, for the terminal of the task."""

import errno
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Final
from weakref import finalize

import click

from messiahs.cli.options import SubmitOptions
from messiahs.cli.task.unread_input import STDIN
from messiahs.client.submission import Submission
from messiahs.core.model.terminals import TerminalSize, frame_of_keys, frame_of_size

_READ_BYTES: Final = 4096
_QUIET_MS: Final = 1000
"""After so long without a key, `read` returns nothing, so that the module learns that this command lives."""
_USUAL: Final = TerminalSize(rows=24, columns=80)
"""The size of a terminal that does not know its own."""
_INPUT: Final = (
    termios.IGNBRK
    | termios.BRKINT
    | termios.PARMRK
    | termios.ISTRIP
    | termios.INLCR
    | termios.IGNCR
    | termios.ICRNL
    | termios.IXON
)
_LOCAL: Final = termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN


def terminal_of_task(options: SubmitOptions) -> "TerminalInput":
    """Return the terminal of this command for its task. Raises `UsageError` if there is none, or options forbid it."""
    if sys.stdin is None or not os.isatty(STDIN):
        raise click.UsageError("-t needs a terminal as standard input: without it, the task reads a pipe or a file")
    if options["as_json"]:
        raise click.UsageError("-t and --json cannot be combined: a terminal shows everything, JSON no output")
    if options["retries"]:
        raise click.UsageError("-t and --retries cannot be combined: what was typed is gone, so the task runs once")
    return TerminalInput()


def with_terminal(submission: Submission, stdin: object) -> Submission:
    """Return a submission with a terminal of that size and kind, if its standard input is one."""
    if not isinstance(stdin, TerminalInput):
        return submission
    kind = {"TERM": os.environ["TERM"]} if os.environ.get("TERM") else {}
    size = (stdin.size.rows, stdin.size.columns)
    return replace(submission, terminal=size, env={**kind, **submission.env})


class TerminalInput:
    """This command's terminal (mutable). From the first `read` on it passes every key to the task, until `restore`.

    Before that, Ctrl-C is for this command, since there is no task that could get it.
    """

    is_closed = False
    why_gone = "it was typed"

    def __init__(self, descriptor: int = STDIN) -> None:
        self._descriptor = descriptor
        self._usual = termios.tcgetattr(descriptor)
        self._is_raw = self._is_over = False
        self._lock = threading.RLock()
        """Also a signal handler changes the terminal."""
        self._wakes, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Not at the end of `in_use`: a thread may still wait for one of them.
        finalize(self, _close, self._wakes, self._wake)
        self.size = self._sent_size = self._size()
        """The size at the beginning."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Follow the size of the terminal, and leave it as it was; for the main thread."""
        before = {number: signal.signal(number, self._changed) for number in (signal.SIGWINCH, signal.SIGCONT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.restore()

    def restore(self) -> None:
        """Leave the terminal as it was, for good; repeated calls do nothing."""
        with self._lock:
            self._is_over = True
            if self._is_raw:
                self._is_raw = False
                # It may be gone.
                with suppress(termios.error):
                    termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._usual)

    def read(self) -> bytes | None:
        """Return frames for the terminal of the task; None after a second without any. Raises `OSError`."""
        self.make_raw()
        if not self._is_raw and not self._is_over and self._is_in_foreground():
            raise _gone()
        poll = select.poll()
        poll.register(self._wakes, select.POLLIN)
        if self._is_raw:
            poll.register(self._descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(_QUIET_MS)]
        if self._wakes in ready:
            os.read(self._wakes, _READ_BYTES)
        frames = self._new_size()
        if self._descriptor in ready:
            keys = os.read(self._descriptor, _READ_BYTES)
            if not keys:
                raise _gone()
            frames += frame_of_keys(keys)
        return frames or None

    def go_to(self, offset: int) -> bool:  # noqa: ARG002 - as others
        """Return false: nobody types the same again."""
        return False

    def close(self) -> None:
        """Nothing: a terminal has no writer that had to learn of it."""

    def forget(self) -> None:
        """Nothing is kept."""

    def make_raw(self) -> None:
        """Pass every key on, and leave alone what is shown.

        Nothing happens in the background, afterwards, and if the terminal is gone.
        """
        with self._lock:
            if self._is_raw or self._is_over or not self._is_in_foreground():
                return
            inputs, outputs, control, local, *rest = self._usual
            control = control & ~(termios.CSIZE | termios.PARENB) | termios.CS8
            characters = list(rest[-1])
            characters[termios.VMIN], characters[termios.VTIME] = 1, 0
            raw = [inputs & ~_INPUT, outputs & ~termios.OPOST, control, local & ~_LOCAL, *rest[:-1], characters]
            # What was typed early is for the task, too.
            with suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, raw)
                self._is_raw = True

    def _changed(self, number: int, _: FrameType | None) -> None:
        """Look at the terminal again: its size is another one, or a shell has had it meanwhile."""
        with self._lock:
            if number == signal.SIGCONT and self._is_raw:
                self._is_raw = False
                self.make_raw()
        with suppress(BlockingIOError):
            os.write(self._wake, b"!")

    def _new_size(self) -> bytes:
        size = self._size()
        if size == self._sent_size:
            return b""
        self._sent_size = size
        return frame_of_size(size)

    def _size(self) -> TerminalSize:
        try:
            rows, columns = termios.tcgetwinsize(self._descriptor)
        except termios.error:
            return _USUAL
        return TerminalSize(rows=rows or _USUAL.rows, columns=columns or _USUAL.columns)

    def _is_in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            # It is not the terminal that controls this process.
            return True


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _gone() -> OSError:
    return OSError(errno.EIO, "the terminal is gone")
