"""The audit log of decisions, read from a module, also through its restarts."""

import http.client
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

from messiahs.client.connection import Connection, Document, Waiting, pieces_of


def decisions(
    socket_path: Path, *, follow: bool, patience: float | None, wanted: Mapping[str, str]
) -> Iterator[Document]:
    """Yield the decisions of the audit log in the order of time; with `follow` also those to come, without end.

    `wanted` has `since` (RFC 3339), `task`, `neighbor`, `user` and `kind`. Other users than root and the module's own
    get those about their tasks. After an interruption it continues with the next line.
    """
    connection, waiting = Connection(socket_path), Waiting(socket_path, patience=patience)
    since, seen = wanted.get("since", ""), set[bytes]()
    try:
        while True:
            path = f"/v1/audit/decisions?{urlencode({**wanted, 'since': since, 'follow': int(follow)})}"
            try:
                for raw in _lines_in(pieces_of(connection, path)):
                    waiting.reset()
                    if raw in seen:
                        continue
                    document = json.loads(raw)
                    # Several lines may have the time at which the next request begins.
                    seen = {*seen, raw} if document["at"] == since else {raw}
                    since = document["at"]
                    yield document
            except (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException) as error:
                connection.close()
                waiting.pause(error)
            else:
                return
    finally:
        connection.close()


def _lines_in(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
