"""Waiting for tasks, with a progress line on a terminal."""

import sys
import time
from collections.abc import Iterable

from messiahs.cli.exit_codes import FEDERATION_FAILED, NOT_IN_TIME
from messiahs.cli.options import PlaceOptions
from messiahs.cli.task.modules import client_of, located
from messiahs.cli.task.sentences import count_ended
from messiahs.client.connection import Document
from messiahs.errors import ClientError

_POLL_SECONDS = 1.0
_CLEAR_LINE = "\r\x1b[K"


def waited(ids: tuple[str, ...], options: PlaceOptions, *, timeout_seconds: int | None = None) -> list[Document]:
    """Return the documents of tasks, in the order of `ids`, once all have ended; survives restarts of their modules.

    A failure exits with 125, and with 124 if some have not ended in time, since other codes are those of tasks.
    """
    try:
        return _waited(ids, options, timeout_seconds)
    except TimeoutError as error:
        text = f"not all have ended within {timeout_seconds} s; they run on"
        raise ClientError(text, code=NOT_IN_TIME) from error
    except ClientError as error:
        raise ClientError(str(error), code=FEDERATION_FAILED) from error


def _waited(ids: tuple[str, ...], options: PlaceOptions, timeout_seconds: int | None) -> list[Document]:
    shows, ends_at = sys.stderr.isatty(), None if timeout_seconds is None else time.monotonic() + timeout_seconds
    for name in ids:
        located(name, options)
    with client_of(options, patience=None) as client:
        try:
            while True:
                left_seconds = None if ends_at is None else max(0.0, ends_at - time.monotonic())
                poll_seconds = min(_POLL_SECONDS, left_seconds or _POLL_SECONDS) if shows else left_seconds
                try:
                    return [dict(task) for task in client.wait(*ids, timeout=poll_seconds)]
                except TimeoutError:
                    if ends_at is not None and time.monotonic() >= ends_at:
                        raise
                _draw(progress_line(client.found(*ids)[0]))
        finally:
            if shows:
                _draw("")


def progress_line(tasks: Iterable[Document]) -> str:
    """Return the counts of tasks that ended, run and failed; each member of an array counts."""
    total = ended = running = failed = 0
    for document in tasks:
        counts = document.get("counts") or {document.get("substate") or document["state"]: 1}
        final, bad = count_ended(document)
        total += sum(counts.values())
        ended += final
        running += counts.get("running", 0)
        failed += bad
    return f"{ended} of {total} ended, {running} running, {failed} failed"


def _draw(line: str) -> None:
    sys.stderr.write(f"{_CLEAR_LINE}{line}")
    sys.stderr.flush()
