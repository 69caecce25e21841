"""A scheduling module as its local users see it: the local API, one method per question."""

import http.client
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

from messiahs.client.connection import PATIENCE_SECONDS, Connection, Document, Waiting, refusal
from messiahs.client.submission import Submission
from messiahs.errors import ClientError

FINAL_STATES = frozenset({"finished", "aborted", "killed", "revoked", "denied"})
_POLL_SECONDS = 10
_CHUNK_BYTES = 262_144
_LENGTH_BYTES = 8
_LOG_SILENCE_SECONDS = 3600.0


@dataclass(slots=True)
class ModuleClient:
    """Asks one module; not to be shared between threads. Answers are the documents of the local API.

    Every method rides out a restart of the daemon for `patience` seconds (None: for ever), then raises
    `ModuleUnreachableError`; a refusal of the module is a `ClientError`.
    """

    socket_path: Path
    patience: float | None = PATIENCE_SECONDS
    _connection: Connection = field(init=False)
    _reader: Connection = field(init=False)

    def __post_init__(self) -> None:
        self._connection, self._reader = Connection(self.socket_path), Connection(self.socket_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
        self._reader.close()

    def module(self) -> Document:
        """Give who the module is, who its neighbors are, and from whom it has heard."""
        return self._connection.ask("GET", "/v1/module", patience=self.patience)

    def vectors(self) -> Document:
        """Give the module's sums and views (MESSIAHS 7.2)."""
        return self._connection.ask("GET", "/v1/vectors", patience=self.patience)

    def record(self, size_bytes: int | None) -> Document:
        """Let the module record everything that it hears and does, in at most so many bytes; None ends that.

        Gives `{"recording", "folder"}`. Only root and the module's own user may.
        """
        return self._connection.ask("POST", "/v1/trace", body={"size_bytes": size_bytes}, patience=self.patience)

    def policy(self) -> Document:
        """Give the policy that is in force: its name, file and hash, and since when."""
        return self._connection.ask("GET", "/v1/policy", patience=self.patience)

    def load_policy(self, text: str | None, *, file: str = "") -> Document:
        """Put a policy in place of the running one; None: the module's own file again.

        Gives what is in force then, and `problems`, with which nothing has changed. Only root and the module's own user
        may.
        """
        return self._connection.ask("POST", "/v1/policy", body={"text": text, "file": file}, patience=self.patience)

    def preview(self, neighbor: str, *, text: str | None = None, file: str = "") -> Document:
        """Give what a neighbor is told `now`, and with the text of a policy what it would be told `under` that.

        Only root and the module's own user may try a policy.
        """
        body = {"neighbor": neighbor, "text": text, "file": file}
        return self._connection.ask("POST", "/v1/preview", body=body, patience=self.patience)

    def attempts(self) -> list[Document]:
        """List what runs or waits on the module's machine, whoever submitted it; only root and its own user may."""
        return list(self._connection.ask("GET", "/v1/attempts", patience=self.patience)["attempts"])

    def revoke(self, name: str, *, kill: bool = False, reason: str = "") -> list[str]:
        """Revoke an attempt, a task or an array that runs on the module's machine, and name the attempts.

        Its origin is told the reason and lets it run elsewhere. Only root and the module's own user may.
        """
        body = {"id": name, "kill": kill, "reason": reason}
        return list(self._connection.ask("POST", "/v1/attempts/revoke", body=body, patience=self.patience)["revoked"])

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
            path = f"{_path(task)}/wait?timeout={poll:g}"
            document = self._connection.ask_held(path, held_seconds=poll, patience=self.patience)
            if timeout is not None or is_final(document):
                return document

    def cancel(self, task: str) -> None:
        """Ask for the end of a task, or of every member of an array; `wait` says when it has come."""
        self._connection.ask("POST", f"{_path(task)}/cancel", body={}, patience=self.patience)

    def retry(self, task: str) -> int:
        """Let a task that failed, or the members of an array that did, run again; give how many those are.

        Whatever ended otherwise than with exit code 0 has failed, also what was killed or denied. Ids stay the same.
        """
        return int(self._connection.ask("POST", f"{_path(task)}/retry", body={}, patience=self.patience)["retried"])

    def missing_files(self, hashes: Sequence[str]) -> list[str]:
        """Give those of some SHA-256 hashes (in hexadecimal) whose content the module does not have."""
        body = {"sha256": list(hashes)}
        return list(self._connection.ask("POST", "/v1/files/missing", body=body, patience=self.patience)["missing"])

    def put_file(self, sha256: str, pieces: Callable[[], Iterable[bytes]], *, size_bytes: int) -> None:
        """Bring a content to the module, which checks its hash; `pieces` is called anew after each interruption."""
        self._connection.put(f"/v1/files/{sha256}", pieces, size_bytes=size_bytes, patience=self.patience)

    def put_files(self, contents: Sequence[bytes]) -> list[str]:
        """Bring small files, together less than 8 MiB, in one request; gives their hashes as the module has them."""
        pieces = [part for content in contents for part in (len(content).to_bytes(_LENGTH_BYTES), content)]
        body = b"".join(pieces)
        answer = self._connection.put("/v1/files", lambda: [body], size_bytes=len(body), patience=self.patience)
        return list(answer["sha256"])

    def outputs(self, task: str) -> list[Document]:
        """List the files that an ended task left behind: `{"name", "size", "executable"}` each."""
        return list(self.output_listing(task)["outputs"])

    def output_listing(self, task: str) -> Document:
        """List the files that an ended task left behind (`outputs`) and the names that it declared (`declared`)."""
        return self._connection.ask("GET", f"{_path(task)}/outputs", patience=self.patience)

    def read_output(self, task: str, name: str, *, size_bytes: int) -> Iterator[bytes]:
        """Give an output piece by piece, taken up where it was cut; read it to its end before the next one."""

        def path(offset: int) -> str:
            return f"{_path(task)}/outputs/{quote(name)}?offset={offset}"

        return self._read_on(self._reader, path, size_bytes=size_bytes)

    def logs(self, task: str, *, stream: str = "stdout", follow: bool = False) -> Iterator[bytes]:
        """Give what the task wrote, piece by piece; with `follow` until the task is final and everything was sent.

        A cut connection is taken up at the byte where it was cut.
        """

        def path(offset: int) -> str:
            return f"{_path(task)}/logs?{urlencode({'stream': stream, 'offset': offset, 'follow': int(follow)})}"

        connection = Connection(self.socket_path)
        try:
            yield from self._read_on(connection, path)
        finally:
            connection.close()

    def _read_on(
        self, connection: Connection, path: Callable[[int], str], *, size_bytes: int | None = None
    ) -> Iterator[bytes]:
        offset, is_whole = 0, False
        waiting = Waiting(self.socket_path, patience=self.patience)
        try:
            while not is_whole:
                try:
                    for piece in _pieces(connection, path(offset)):
                        # An answer alone is a sign of life only where the end is not known.
                        if piece or size_bytes is None:
                            waiting.reset()
                        offset += len(piece)
                        yield piece
                    _check_size(offset, size_bytes)
                except (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException) as error:
                    connection.close()
                    waiting.pause(str(error))
                else:
                    is_whole = True
        finally:
            if not is_whole:
                # What is left of the answer must not be taken for that to the next request.
                connection.close()


def is_final(document: Document) -> bool:
    """Say whether a task, or every member of an array, has reached its last state."""
    if "counts" in document:
        ended = sum(count for state, count in document["counts"].items() if state in FINAL_STATES)
        return bool(ended == document["members"])
    return document.get("state") in FINAL_STATES


def _path(task: str) -> str:
    return f"/v1/tasks/{quote(task, safe='')}"


def _check_size(offset: int, size_bytes: int | None) -> None:
    if size_bytes is not None and offset < size_bytes:
        raise http.client.RemoteDisconnected(f"{size_bytes - offset} bytes are missing")
    if size_bytes is not None and offset > size_bytes:
        raise ClientError(f"the module sent {offset} bytes of an output of {size_bytes}")


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
    # Before Python 3.13 `read1` does not close it at its end, and the connection takes no other request until then.
    response.close()
