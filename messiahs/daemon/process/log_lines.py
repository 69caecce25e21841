"""The daemon's log: input from others can neither forge a record, nor rotate other records away."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from messiahs.core.interface.actions import Decision, Report, ReportCode
from messiahs.core.model.texts import printable_lines

DECISIONS: Final = "messiahs.decisions"
"""The name of the logger to which decisions are written."""
_LOG_BYTES, _LOG_FILES = 16 * 1_024 * 1_024, 5
WINDOW_SECONDS: Final = 10.0
ALIKE_LIMIT: Final = 20
"""Maximum number of warnings, errors and reports of one kind about one peer in one window."""
KIND_LIMIT: Final = 200
"""Maximum number of one kind about all peers."""
_KNOWN_LIMIT = 4_096
_PEER_LENGTH = 80
_LIMITED = "is_limited"
"""Marks a record below warnings that others can cause as often as they want."""


def log_to(path: Path) -> None:
    """Write all log records of this process to a file."""
    handler = LogFile(path, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname).1s %(name)s %(message)s"))
    handler.addFilter(RateLimit())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def log_report(log: logging.Logger, report: Report) -> None:
    """Write why a message of a neighbor was dropped: a violation as a warning, others as information.

    The neighbor can cause either as often as it wants, so `RateLimit` counts both.
    """
    level = logging.INFO if report.code is ReportCode.NO_LINK else logging.WARNING
    log.log(level, "%s: %s %s", report.neighbor, report.code.value, report.text, extra={_LIMITED: True})


class DecisionLines:
    """Writes one line for all tasks with the same decision in the same turn of the event loop (mutable)."""

    def __init__(self) -> None:
        self._waiting: list[Decision] = []

    def note(self, decision: Decision) -> None:
        """Write a decision soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write)
        self._waiting.append(decision)

    def _write(self) -> None:
        alike: dict[tuple[str, str], list[str]] = {}
        for decision in self._waiting:
            alike.setdefault((decision.what, decision.text), []).append(decision.task)
        self._waiting.clear()
        for (what, text), tasks in alike.items():
            logging.getLogger(DECISIONS).info("%s %s %s", " ".join(tasks), what, text)


class LineFormatter(logging.Formatter):
    """Escapes control characters; further lines of a record are indented, so that none looks like another record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record, with its traceback if it has one."""
        return printable_lines(super().format(record)).replace("\n", "\n    ")


class LogFile(RotatingFileHandler):
    """A file that drops lines while its disk is full, and reports their number afterwards (mutable)."""

    lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if self.lost:
            lost, self.lost = self.lost, 0
            super().emit(_record_of(record, f"{lost} lines before this one could not be written"))
            if self.lost:
                # That could not be written either; it does not count as a lost line.
                self.lost = lost
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - as logging wants it
        """Count a record that could not be written, and discard its rest in the buffer."""
        self.lost += 1
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


@dataclass(slots=True)
class _Window:
    """Records of one kind since `began_at` (mutable)."""

    began_at: float
    count: int = 0


class RateLimit(logging.Filter):
    """Drops warnings, errors and reports that repeat too fast, and says so; others are limited where they arise."""

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[tuple[str, str, str], _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written; the last one before others are dropped says so."""
        if record.levelno < logging.WARNING and not hasattr(record, _LIMITED):
            return True
        alike = self._counted(record, _peer_of(record), ALIKE_LIMIT)
        if alike > ALIKE_LIMIT:
            return False
        kind = self._counted(record, "", KIND_LIMIT)
        if kind > KIND_LIMIT:
            return False
        if alike == ALIKE_LIMIT or kind == KIND_LIMIT:
            record.msg = f"{record.getMessage()} (more of these are omitted for {WINDOW_SECONDS:g} s)"
            record.args = ()
        return True

    def _counted(self, record: logging.LogRecord, peer: str, limit: int) -> int:
        key = (record.name, str(record.msg)[:_PEER_LENGTH], peer)
        window = self._windows.pop(key, None)
        if window is None or not 0 <= record.created - window.began_at < WINDOW_SECONDS:
            window = _Window(record.created)
        # Ordered by use; the least recently used one makes room.
        self._windows[key] = window
        if len(self._windows) > _KNOWN_LIMIT:
            del self._windows[next(iter(self._windows))]
        window.count = min(window.count + 1, limit + 1)
        return window.count


def _peer_of(record: logging.LogRecord) -> str:
    """Return the first word that a record is about, without a port, which differs for every connection."""
    first = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
    host, _, port = first.rpartition(":")
    return (host if host and port.isdigit() else first)[:_PEER_LENGTH]


def _record_of(record: logging.LogRecord, message: str) -> logging.LogRecord:
    copy = logging.makeLogRecord(record.__dict__)
    copy.msg, copy.args = message, ()
    return copy
