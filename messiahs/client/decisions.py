"""The audit log of decisions, read from a module, also through its restarts."""

import http.client
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from messiahs.client.connection import Connection, Document, Waiting, pieces_of

_LATE: Final = timedelta(seconds=10)
"""How much later than its time a decision may be written; after that it was lost with its module."""
_SECOND: Final = len("2026-01-31T12:00:00")


def decisions(
    socket_path: Path, *, follow: bool, patience: float | None, wanted: Mapping[str, str]
) -> Iterator[Document]:
    """Yield the decisions of the audit log in the order of time; with `follow` also those to come, without end.

    `wanted` has `since` (RFC 3339), `task`, `neighbor`, `user` and `kind`. Other users than root and the module's own
    get those about their tasks. After an interruption it continues where it was, without a line twice: it asks for the
    last seconds again, since a decision may be written after later ones of another source.
    """
    connection, waiting = Connection(socket_path), Waiting(socket_path, patience=patience)
    earliest = wanted.get("since", "")
    recent = _Recent()
    try:
        while True:
            since = max(earliest, recent.since)
            path = f"/v1/audit/decisions?{urlencode({**wanted, 'since': since, 'follow': int(follow)})}"
            try:
                for raw in _lines_in(pieces_of(connection, path)):
                    waiting.reset()
                    if raw in recent.lines:
                        continue
                    document = json.loads(raw)
                    recent.add(raw, document["at"])
                    yield document
            except (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException) as error:
                connection.close()
                waiting.pause(error)
            else:
                return
    finally:
        connection.close()


@dataclass(slots=True)
class _Recent:
    """The lines of the last seconds by their times, and the time at which these begin (mutable)."""

    lines: dict[bytes, str] = field(default_factory=dict)
    latest: str = ""

    @property
    def since(self) -> str:
        if not self.latest:
            return ""
        begins = datetime.fromisoformat(self.latest) - _LATE
        return begins.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def add(self, raw: bytes, at: str) -> None:
        """Note a line, and drop those that are too old to come again."""
        self.lines[raw] = at
        if at[:_SECOND] <= self.latest[:_SECOND]:
            return
        self.latest = at
        since = self.since
        self.lines = {each: when for each, when in self.lines.items() if when >= since}


def _lines_in(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
