"""Terminals of tasks: the starter has the other end of each, and copies what the task shows into its log.

So a terminal notices nothing of a daemon that comes and goes. When nobody has read the log for a while, no more is
copied, and the task waits, as it would for a slow terminal.
"""

import os
import select
import termios
from contextlib import suppress
from typing import Final

from messiahs.core.model.ids import AttemptId
from messiahs.core.model.terminals import HEADER, SIZE, FrameKind, TerminalSize
from messiahs.executor.starter.pool import Taken

UNREAD_BYTES: Final = 1 << 20
"""So much of what a task shows waits to be read by a daemon."""
_READ_BYTES: Final = 1 << 16
_READS: Final = 16
"""How often a terminal is read in one step, which gives a few KiB each time."""
_LAST_READS: Final = 1024
"""Beyond that, something still writes that does not end."""


class Terminal:
    """One terminal (mutable): at the end `shown` is a task. It stays open here, so that reading never ends."""

    def __init__(self, size: TerminalSize, *, log: int) -> None:
        self.master, self.shown = os.openpty()
        self._log, self._written_bytes, self._read_bytes = log, 0, 0
        self._header, self._kind, self._left, self._size = b"", 0, 0, b""
        os.set_blocking(self.master, False)
        self._resize(size.rows, size.columns)

    def write(self, content: memoryview) -> int:
        """Take the beginning of frames; return how many bytes that was. Raises `OSError`, as `os.write` does."""
        if not self._left:
            taken = content[: HEADER.size - len(self._header)]
            self._header += bytes(taken)
            if len(self._header) == HEADER.size:
                self._kind, self._left = HEADER.unpack(self._header)
                self._header, self._size = b"", b""
            return len(taken)
        part = content[: self._left]
        if self._kind == FrameKind.KEYS:
            part = part[: os.write(self.master, part)]
        elif self._kind == FrameKind.SIZE and self._left + len(self._size) == SIZE.size:
            self._size += bytes(part)
            if len(self._size) == SIZE.size:
                self._resize(*SIZE.unpack(self._size))
        self._left -= len(part)
        return len(part)

    @property
    def is_unread(self) -> bool:
        """Whether so much waits to be read that no more is copied."""
        return self._written_bytes - self._read_bytes >= UNREAD_BYTES

    def note_read(self, offset_bytes: int) -> None:
        """Note that a daemon has read the log up to there."""
        self._read_bytes = max(self._read_bytes, offset_bytes)

    def copy(self) -> None:
        """Copy what the task has shown."""
        for _ in range(_READS):
            if self.is_unread or not self._copy_once():
                return

    def close(self) -> None:
        """Copy the rest, and hang up: processes in the foreground, and the first one, get SIGHUP."""
        for _ in range(_LAST_READS):
            if not self._copy_once():
                break
        for file in (self.master, self.shown, self._log):
            os.close(file)

    def _copy_once(self) -> bool:
        try:
            content = os.read(self.master, _READ_BYTES)
        except OSError:
            return False
        # As when a task itself writes to a full disk, this is lost.
        with suppress(OSError):
            self._written_bytes += os.write(self._log, content)
        return bool(content)

    def _resize(self, rows: int, columns: int) -> None:
        """Change the size; processes in the foreground get SIGWINCH if it is another one."""
        termios.tcsetwinsize(self.shown, (rows, columns))


class Terminals:
    """The terminals of all attempts that have one and have not ended."""

    def __init__(self) -> None:
        self._open: dict[AttemptId, Terminal] = {}
        self._attempts: dict[int, AttemptId] = {}
        """Those whose terminals are copied, by the descriptor that is read."""
        self._readable = select.epoll()

    def fileno(self) -> int:
        """Return a descriptor that is readable when `copy` has something to do."""
        return self._readable.fileno()

    def connect(
        self, attempt: AttemptId, size: TerminalSize, *, taken: Taken, account: int | None
    ) -> tuple[Taken, Terminal]:
        """Return a folder whose task has a new terminal, which belongs to an account, in place of its logs.

        The logs of `taken` are closed. Raises `OSError`.
        """
        terminal = self._open[attempt] = Terminal(size, log=os.dup(taken.stdout))
        taken.close()
        if account is not None:
            os.fchown(terminal.shown, account, -1)
        self._attempts[terminal.master] = attempt
        self._readable.register(terminal.master, select.EPOLLIN)
        return Taken(taken.folder, *(os.dup(terminal.shown) for _ in range(3))), terminal

    def copy(self) -> None:
        """Copy what tasks have shown, except for those whose readers do not keep up."""
        for master, _ in self._readable.poll(0):
            terminal = self._open[self._attempts[master]]
            terminal.copy()
            if terminal.is_unread:
                self._pause(terminal)

    def note_read(self, attempt: AttemptId, offset_bytes: int) -> None:
        """Note that the output of an attempt was read up to there."""
        terminal = self._open.get(attempt)
        if terminal is None:
            return
        terminal.note_read(offset_bytes)
        if terminal.master not in self._attempts and not terminal.is_unread:
            self._attempts[terminal.master] = attempt
            self._readable.register(terminal.master, select.EPOLLIN)

    def hang_up(self, attempt: AttemptId) -> None:
        """Close the terminal of an attempt, if it has one; what the task shows afterwards is lost."""
        terminal = self._open.pop(attempt, None)
        if terminal is not None:
            self._pause(terminal)
            terminal.close()

    def _pause(self, terminal: Terminal) -> None:
        if self._attempts.pop(terminal.master, None) is not None:
            self._readable.unregister(terminal.master)
