"""The log of requests whose heads or chunks are no HTTP: one line each, which names the user."""

import contextvars
import logging
from collections.abc import Callable
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import server_logger

from messiahs.core.model.texts import printable

_UID: Final = contextvars.ContextVar[int]("uid")
_SHOWN_CHARACTERS: Final = 200


def as_user(uid: int, begin: Callable[[], None]) -> None:
    """Begin tasks of aiohttp that log malformed requests as those of a user."""
    context = contextvars.copy_context()
    context.run(_UID.set, uid)
    context.run(begin)


def log_malformed_in_one_line() -> None:
    """Replace the traceback of a malformed request by one warning. The log omits those that one user repeats."""
    server_logger.addFilter(_shorten)


def _shorten(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        text = printable(" ".join(error.message.split()))[:_SHOWN_CHARACTERS]
        record.msg, record.args = "uid %s: a malformed request was refused: %s", (_UID.get(-1), text)
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
    return True
