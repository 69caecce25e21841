"""A scheduling module as its local users see it: the local API, one method per question."""

import http.client
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

from messiahs.client.connection import PATIENCE_SECONDS, Connection, Document, Waiting, refusal

FINAL_STATES = frozenset({"finished", "aborted", "killed", "revoked", "denied"})
_POLL_SECONDS = 30
_SLACK_SECONDS = 30
_CHUNK_BYTES = 65_536
_LOG_SILENCE_SECONDS = 3600.0


def new_key() -> str:
    """Give a key under which a submit can be repeated without doubling it."""
    return os.urandom(16).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a user wants to run; `tdv` says what one task needs, `members` is 0 for a single task.

    `key` is drawn anew for each submission: one that is sent twice is still one.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    tdv: Mapping[str, int | str] = field(default_factory=dict)
    requirement: str = ""
    members: int = 0
    name: str = ""
    retries: int = 0
    waits: bool = True
    deadline_seconds: int | None = None
    key: str = field(default_factory=new_key)

    def document(self) -> Document:
        """Give the body of the request."""
        return {
            "key": self.key,
            "argv": list(self.argv),
            "env": dict(self.env),
            "tdv": dict(self.tdv),
            "requirement": self.requirement,
            "members": self.members,
            "name": self.name,
            "retries": self.retries,
            "waits": self.waits,
            "deadline_s": self.deadline_seconds,
        }


@dataclass(slots=True)
class ModuleClient:
    """Asks one module; not to be shared between threads. Answers are the documents of the local API.

    Every method rides out a restart of the daemon for `patience` seconds (None: for ever), then raises
    `ModuleUnreachableError`; a refusal of the module is a `ClientError`.
    """

    socket_path: Path
    patience: float | None = PATIENCE_SECONDS
    _connection: Connection = field(init=False)

    def __post_init__(self) -> None:
        self._connection = Connection(self.socket_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def module(self) -> Document:
        """Give who the module is, who its neighbors are, and from whom it has heard."""
        return self._connection.ask("GET", "/v1/module", patience=self.patience)

    def vectors(self) -> Document:
        """Give the module's sums and views (MESSIAHS 7.2)."""
        return self._connection.ask("GET", "/v1/vectors", patience=self.patience)

    def submit(self, submission: Submission) -> str:
        """Hand a task in and give its id; it is stored when this returns."""
        body = submission.document()
        return str(self._connection.ask("POST", "/v1/tasks", body=body, patience=self.patience)["id"])

    def tasks(self, *ids: str, members: bool = False) -> Document:
        """Give `{"tasks": […], "unknown": [ids]}` for these ids, or for all tasks; `members` unfolds arrays."""
        asked = [("id", task) for task in ids] + ([("members", "1")] if members else [])
        path = f"/v1/tasks?{urlencode(asked)}" if asked else "/v1/tasks"
        return self._connection.ask("GET", path, patience=self.patience)

    def wait(self, task: str, *, timeout: float | None = None) -> Document:
        """Give the task's document once its state is final, or after `timeout` seconds as it is then."""
        poll = _POLL_SECONDS if timeout is None else timeout
        while True:
            document = self._connection.ask(
                "GET",
                f"/v1/tasks/{quote(task, safe='')}/wait?timeout={poll:g}",
                patience=self.patience,
                answer_seconds=poll + _SLACK_SECONDS,
            )
            if timeout is not None or is_final(document):
                return document

    def cancel(self, task: str) -> None:
        """Ask for the end of a task, or of every member of an array; `wait` says when it has come."""
        path = f"/v1/tasks/{quote(task, safe='')}/cancel"
        self._connection.ask("POST", path, body={}, patience=self.patience)

    def logs(self, task: str, *, stream: str = "stdout", follow: bool = False) -> Iterator[bytes]:
        """Give what the task wrote, piece by piece; with `follow` until the task is final and everything was sent.

        A cut connection is taken up at the byte where it was cut.
        """
        offset = 0
        waiting = Waiting(self.socket_path, patience=self.patience)
        connection = Connection(self.socket_path)
        try:
            while True:
                asked = urlencode({"stream": stream, "offset": offset, "follow": int(follow)})
                try:
                    for piece in _pieces(connection, f"/v1/tasks/{quote(task, safe='')}/logs?{asked}"):
                        waiting.reset()
                        offset += len(piece)
                        yield piece
                except (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException) as error:
                    connection.close()
                    waiting.pause(str(error))
                else:
                    return
        finally:
            connection.close()


def is_final(document: Document) -> bool:
    """Say whether a task, or every member of an array, has reached its last state."""
    if "counts" in document:
        ended = sum(count for state, count in document["counts"].items() if state in FINAL_STATES)
        return bool(ended == document["members"])
    return document.get("state") in FINAL_STATES


def _pieces(connection: Connection, path: str) -> Iterator[bytes]:
    response = connection.send("GET", path, answer_seconds=_LOG_SILENCE_SECONDS)
    if response.status == http.client.SERVICE_UNAVAILABLE:
        response.read()
        raise http.client.RemoteDisconnected("the module is starting")
    if response.status != http.client.OK:
        raise refusal(response.status, response.read())
    yield b""  # The module answers, however long the task may be silent.
    while piece := response.read1(_CHUNK_BYTES):
        yield piece
