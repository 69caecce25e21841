"""Standard input of tasks: a pipe or a terminal for each task that takes any, into which the starter writes.

The starter keeps them open and counts what went into each. So a task notices nothing of a daemon that comes and
goes, and the next daemon continues at the right byte. Of each attempt, at most one piece waits here.
"""

import os
import select
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from messiahs.core.model.ids import AttemptId
from messiahs.core.model.terminals import TerminalSize
from messiahs.executor.attempt_values import Start
from messiahs.executor.protocol.frames import Fed, Feed
from messiahs.executor.starter.pool import Taken
from messiahs.executor.starter.terminals import Terminal, Terminals

_NOT_YET = -1
_WRITES: Final = 32
"""How often at most is written for an attempt in its turn: a piece may have tens of thousands of frames."""
_INPUTS: Final = 8
"""How many attempts have a turn before the starter does something else."""


@dataclass(slots=True)
class _Input:
    """The standard input of one attempt (mutable)."""

    writer: int = _NOT_YET
    """The end of its pipe into which is written; there is none before its process, and none once it is closed."""
    terminal: Terminal | None = None
    """What has that end, if it is not one of a pipe."""
    has_terminal: bool = False
    """Whether it is not, and so its process will have a terminal."""
    taken_bytes: int = 0
    waiting: memoryview = field(default_factory=lambda: memoryview(b""))
    is_last: bool = False
    """Nothing follows what waits."""
    is_closed: bool = False
    number: int | None = None
    """The `Feed` that is not answered yet."""


class Inputs:
    """Standard input of all attempts that take any and have not ended; `answers` is for the daemon, in order."""

    def __init__(self, terminals: Terminals) -> None:
        self._terminals = terminals
        self.answers: list[Fed] = []
        self._inputs: dict[AttemptId, _Input] = {}
        self._attempts: dict[int, AttemptId] = {}
        """The attempts for which more is to be written, by the pipe."""
        self._full = select.epoll()

    def fileno(self) -> int:
        """Return a descriptor that is readable when `write_on` has something to do."""
        return self._full.fileno()

    def expect(self, start: Start) -> None:
        """Accept pieces for an attempt, whose process may not be started yet."""
        self._inputs[start.attempt] = _Input(has_terminal=start.terminal is not None)

    def open(self, start: Start, taken: Taken, *, account: int | None) -> Taken:
        """Return a folder with the end of a new pipe that the process is to read, or with its terminal.

        Nothing changes for an attempt that takes no input. Raises `OSError`.
        """
        held = self._inputs.get(start.attempt)
        if held is None:
            return taken
        if start.terminal is not None:
            size = TerminalSize(rows=start.terminal[0], columns=start.terminal[1])
            connected, held.terminal = self._terminals.connect(start.attempt, size, taken=taken, account=account)
            held.writer = held.terminal.master
            return connected
        reader, held.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(held.writer, False)
        return taken._replace(stdin=reader)

    def begun(self, attempt: AttemptId) -> None:
        """Write what arrived before the process was started; the reader's end is no longer open here."""
        held = self._inputs.get(attempt)
        if held is not None and held.number is not None:
            self._write(attempt, held)

    def feed(self, feed: Feed) -> None:
        """Replace what waits for an attempt; bytes that it has taken already are left out.

        A `Feed` is answered once everything of it is taken, or nothing more can be. One that leaves a gap is answered
        with the right offset, and nothing of it is used.
        """
        held = self._inputs.get(feed.attempt)
        if held is None:
            self.answers.append(Fed(attempt=feed.attempt, number=feed.number, offset_bytes=0, is_closed=True))
            return
        known = held.taken_bytes - feed.offset_bytes
        is_in_place = 0 <= known <= len(feed.content)
        held.waiting = memoryview(feed.content)[known:] if is_in_place else memoryview(b"")
        held.is_last, held.number = feed.is_end and is_in_place, feed.number
        self._write(feed.attempt, held)

    def write_on(self) -> None:
        """Write to some pipes that have room again, or that nobody reads any more, in turn."""
        for writer, _ in self._full.poll(0, _INPUTS):
            attempt = self._attempts.pop(writer)
            self._full.unregister(writer)
            self._write(attempt, self._inputs[attempt])

    def close(self, attempt: AttemptId) -> None:
        """Forget an attempt whose process has ended; its terminal may still have something to show."""
        held = self._inputs.pop(attempt, None)
        if held is not None:
            self._close(held)
            self._answer(attempt, held)

    def hang_up(self, attempt: AttemptId) -> None:
        """Close the terminal of an attempt, if it has one: its user has gone, or it is to end."""
        held = self._inputs.get(attempt)
        if held is not None and held.terminal is not None:
            self._close(held)
            self._answer(attempt, held)
        self._terminals.hang_up(attempt)

    def forget_daemon(self) -> None:
        """Answer nothing that an earlier daemon sent; what waits is still written."""
        for held in self._inputs.values():
            held.number = None
        self.answers.clear()

    def _write(self, attempt: AttemptId, held: _Input) -> None:
        if held.writer == _NOT_YET and not held.is_closed and (held.waiting or held.is_last):
            return
        try:
            for _ in range(_WRITES):
                if not held.waiting or held.is_closed:
                    break
                terminal = held.terminal
                written = os.write(held.writer, held.waiting) if terminal is None else terminal.write(held.waiting)
                held.taken_bytes += written
                held.waiting = held.waiting[written:]
        except BlockingIOError:
            self._write_later(attempt, held)
            return
        except OSError:
            # Nobody reads it any more.
            self._close(held)
        if held.is_closed:
            # The daemon sent this before it learned that nobody reads.
            held.waiting = memoryview(b"")
        if held.waiting:
            self._write_later(attempt, held)
            return
        if held.is_last:
            self._close(held)
            if held.terminal is not None:
                self._terminals.hang_up(attempt)
        self._answer(attempt, held)

    def _write_later(self, attempt: AttemptId, held: _Input) -> None:
        if held.writer not in self._attempts:
            self._attempts[held.writer] = attempt
            self._full.register(held.writer, select.EPOLLOUT)

    def _answer(self, attempt: AttemptId, held: _Input) -> None:
        if held.number is not None:
            self.answers.append(
                Fed(
                    attempt=attempt,
                    number=held.number,
                    offset_bytes=held.taken_bytes,
                    is_closed=held.is_closed,
                    has_terminal=held.has_terminal,
                )
            )
            held.number = None

    def _close(self, held: _Input) -> None:
        held.is_closed, held.waiting = True, memoryview(b"")
        if held.writer != _NOT_YET:
            if self._attempts.pop(held.writer, None) is not None:
                self._full.unregister(held.writer)
            if held.terminal is None:
                with suppress(OSError):
                    os.close(held.writer)
            held.writer = _NOT_YET
