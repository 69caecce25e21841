"""Standard input of `messiahs run`: read as the task takes it, and kept until the task has taken it."""

import fcntl
import os
import select
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from messiahs.cli.output import print_text
from messiahs.cli.task.kept_input import KEPT_BYTES, KeptInput
from messiahs.cli.task.unread_input import STDIN, is_of_the_parent, unread_bytes
from messiahs.client.connection import Document
from messiahs.client.module import ModuleClient
from messiahs.errors import ClientError

_SHELLS: Final = ("ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "yash", "zsh")
_REMEDY: Final = "`cat | messiahs run …` passes it on, and `</dev/null` leaves it alone"
_PIECE_BYTES: Final = 262_144
_QUIET_SECONDS: Final = 1.0
"""After so long without input the module is asked what became of the task, and so learns that this command lives."""
_REFUSED_SECONDS: Final = 3.0
"""A refusal on the way that lasts longer is reported."""


class InputLostError(ClientError):
    """The task cannot get its standard input (any more)."""


class Source(Protocol):
    """What is brought to a task as its standard input."""

    is_closed: bool
    """Nothing more can be read of it."""

    @property
    def why_gone(self) -> str:
        """Why what was read cannot be read again; empty if it can."""

    def read(self) -> bytes | None:
        """Return the next bytes, empty at the end; None after a second without any. Raises `OSError`."""

    def go_to(self, offset: int) -> bool:
        """Continue at a byte, counted from the first one that was read; false if that is not possible."""

    def close(self) -> None:
        """Read no more, so that whoever writes to it learns that nobody reads."""

    def forget(self) -> None:
        """Keep nothing for another attempt."""


class StandardInput:
    """This command's standard input, for its task; only what the task takes soon is read (mutable).

    What is not a file is kept while it is read, up to a limit, so that another attempt can get it again.
    """

    def __init__(self, descriptor: int = STDIN, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._descriptor = descriptor
        found = os.fstat(descriptor)
        self._start = os.lseek(descriptor, 0, os.SEEK_CUR) if stat.S_ISREG(found.st_mode) else None
        self._kept = KeptInput(kept_bytes) if self._start is None else None
        if stat.S_ISFIFO(found.st_mode):
            with suppress(OSError):
                # A read returns no more than the pipe holds.
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIECE_BYTES)
        self.is_closed = False
        """Nothing more can be read of it."""

    def read(self) -> bytes | None:
        """Return the next bytes, empty at the end; None after a second without any. Raises `OSError`."""
        if self._kept is not None and (again := self._kept.read(_PIECE_BYTES)) is not None:
            return again
        if not self._is_for_this_process():
            # Reading would stop this process, although the task may not want anything.
            time.sleep(_QUIET_SECONDS)
            return None
        readable = select.poll()
        readable.register(self._descriptor, select.POLLIN)
        if not readable.poll(_QUIET_SECONDS * 1000):
            return None
        try:
            content = os.read(self._descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return None
        if self._kept is not None:
            self._kept.add(content)
        return content

    @property
    def why_gone(self) -> str:
        """Why what was read cannot be read again; empty if it can."""
        if self._kept is None:
            return ""
        return "the task had closed it" if self.is_closed else self._kept.why_gone

    def go_to(self, offset: int) -> bool:
        """Continue at a byte, counted from the first one that was read; false if that is not possible."""
        if self.why_gone:
            return False
        if self._kept is not None:
            return self._kept.go_to(offset)
        assert self._start is not None, "what is not kept is a file"
        if self._start + offset > os.fstat(self._descriptor).st_size:
            return False
        os.lseek(self._descriptor, self._start + offset, os.SEEK_SET)
        return True

    def close(self) -> None:
        """Read no more of a pipe, so that whoever writes to it learns that nobody reads."""
        if self._start is None and not self.is_closed:
            self.is_closed = True
            with suppress(OSError):
                nothing = os.open(os.devnull, os.O_RDONLY)
                os.dup2(nothing, self._descriptor)
                os.close(nothing)

    def forget(self) -> None:
        """Keep nothing for another attempt."""
        if self._kept is not None:
            self._kept.close()

    def _is_for_this_process(self) -> bool:
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            # It is not the terminal that controls this process.
            return True


def standard_input(*, is_wanted: bool = False) -> StandardInput | None:
    """Return the standard input that a task is to get; None if there is none, or it is left to a shell.

    That is never so if it `is_wanted`. A shell that has the same standard input may read it next, as in `while read
    name; do messiahs run …; done`. Then a message says so if data waits. A terminal is shared by all.
    """
    if sys.stdin is None:
        return None
    try:
        found = os.fstat(STDIN)
        if stat.S_ISREG(found.st_mode) and not unread_bytes(found):
            return None
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev:
            return None
        shell = "" if is_wanted or os.isatty(STDIN) else _shell_of(found)
        if not shell:
            return StandardInput()
        if unread_bytes(found):
            text = f"the task does not read standard input, which is that of {shell} as well: {_REMEDY}"
            print_text(f"messiahs: {text}", err=True)
    except OSError:
        return None
    return None


def _shell_of(found: os.stat_result) -> str:
    """Return the name of the shell that is the parent process and has the same standard input; else empty."""
    name = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    return name if name in _SHELLS and is_of_the_parent(found) else ""


def feed(
    module: ModuleClient,
    task: str,
    *,
    source: Source,
    has_ended: Callable[[], bool],
    report: Callable[[str], None],
) -> None:
    """Bring standard input to a task until it has ended.

    What the task has not taken is kept, less than 2 MiB, and sent again after an interruption. A module on the way that
    takes nothing for seconds is reported, with its reason, and so is input that no other attempt can get again. Raises
    `InputLostError` if another attempt needs what an earlier one has taken, unless it can be read again, and
    `ClientError`.
    """
    try:
        _feed(module, task, _Feeding(source, report), has_ended=has_ended, refusals=_Refusals(report))
    finally:
        source.forget()


def _feed(
    module: ModuleClient,
    task: str,
    feeding: "_Feeding",
    *,
    has_ended: Callable[[], bool],
    refusals: "_Refusals",
) -> None:
    state = module.feed(task)
    while not has_ended():
        refusals.note(state["refusal"])
        if state["problem"]:
            raise InputLostError(f"the standard input does not reach {task}: {state['problem']}")
        if state["received"] is not None:
            feeding.follow(task, state)
        if state["closed"]:
            feeding.rest(has_ended=state["ended"])
        elif state["received"] is not None:
            try:
                feeding.read()
            except OSError as error:
                raise InputLostError(f"standard input cannot be read: {error.strerror}") from error
        if state["attempt"] != feeding.attempt:
            # Nothing is for an attempt that has not begun to read.
            state = module.feed(task)
        else:
            state = module.feed(
                task,
                feeding.next_piece,
                attempt=feeding.attempt,
                offset=feeding.sent_bytes,
                is_end=feeding.is_end_next,
            )


class _Refusals:
    """Reports what a module on the way says while it takes nothing for seconds (mutable)."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._since: float | None = None
        self._is_reported = False

    def note(self, text: str) -> None:
        """Note the present refusal; empty if there is none."""
        now = time.monotonic()
        self._since = (self._since or now) if text else None
        if self._since is not None and now - self._since > _REFUSED_SECONDS and not self._is_reported:
            self._is_reported = True
            self._report(f"standard input waits: {text}")


class _Feeding:
    """What was read and may have to be sent again (mutable); the byte `sent_bytes` comes next."""

    def __init__(self, source: Source, report: Callable[[str], None]) -> None:
        self.attempt = 0
        self.sent_bytes = 0
        self._source, self._report = source, report
        self._is_reported = bool(source.why_gone)
        """Nobody expects that what is typed can be read again."""
        self._kept = bytearray()
        self._begin = 0
        self._has_end = False

    @property
    def next_piece(self) -> bytes:
        """The piece to send next; empty if everything was sent."""
        start = self.sent_bytes - self._begin
        return bytes(self._kept[start : start + _PIECE_BYTES])

    @property
    def is_end_next(self) -> bool:
        """Whether nothing follows the next piece."""
        return self._has_end and self.sent_bytes + len(self.next_piece) == self._begin + len(self._kept)

    def follow(self, task: str, state: Document) -> None:
        """Continue where the module says, and forget what the attempt has taken."""
        if state["attempt"] != self.attempt:
            is_whole = not self._begin and not self._source.is_closed
            if self.attempt and not is_whole and not self._can_go_to(0):
                raise InputLostError(
                    f"{task} starts again as attempt {state['attempt']}, and what attempt {self.attempt} has read of "
                    f"standard input cannot be read again ({self._source.why_gone}): use a file (`< FILE` or "
                    "`--input FILE`)"
                )
            self.attempt = state["attempt"]
        received, taken = state["received"], state["taken"]
        is_kept = self._begin <= taken <= received <= self._begin + len(self._kept)
        if not is_kept and not self._can_go_to(received):
            raise InputLostError(f"another `messiahs run` brought the standard input of {task}")
        if is_kept:
            del self._kept[: taken - self._begin]
            self._begin = taken
        self.sent_bytes = received

    def read(self) -> None:
        """Read more once everything was sent."""
        if self._has_end or self.sent_bytes < self._begin + len(self._kept):
            return
        content = self._source.read()
        if content is not None:
            self._kept += content
            self._has_end = not content
        if not self._is_reported and (why := self._source.why_gone):
            self._is_reported = True
            self._report(f"if the task has to run again, it cannot get this standard input again: {why}")

    def rest(self, *, has_ended: bool) -> None:
        """Read no more for this attempt, which has ended or has closed its standard input.

        Then whoever writes to the pipe learns of it, unless the next attempt can still get all of it.
        """
        is_needed = has_ended and (not self._begin or not self._source.why_gone)
        if not self._has_end and not is_needed:
            self._source.close()
        time.sleep(_QUIET_SECONDS)

    def _can_go_to(self, offset: int) -> bool:
        if not self._source.go_to(offset):
            return False
        self._kept.clear()
        self._begin, self._has_end = offset, False
        return True
