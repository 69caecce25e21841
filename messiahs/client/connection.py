"""HTTP over a module's Unix socket, through restarts of the daemon.

Every request of the local API may be repeated without harm (a submit carries its own key), so whatever was cut off is
simply asked again until the module answers or patience ends. Whoever is kept waiting is told by the logger
`messiahs.client`: without any handler that is a line on stderr.
"""

import http.client
import json
import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from messiahs.client.locating import check_socket_path
from messiahs.errors import ClientError, ModuleUnreachableError

Document = dict[str, Any]
"""A JSON object as the module sent it."""

PATIENCE_SECONDS: Final = 10.0
_ANSWER_SECONDS = 60.0
_QUIET_SECONDS = 5.0
_AWAY_SECONDS = 3.0
_SLACK_SECONDS = 30.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5
_USAGE_EXIT = 2
_CUT_OFF = (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException)


@dataclass(slots=True)
class Connection:
    """A connection that is made when it is needed and kept while it lasts; used by one thread at a time.

    An answer that is late by `quiet_seconds` is told to be awaited.
    """

    socket_path: Path
    quiet_seconds: float = _QUIET_SECONDS
    _open: http.client.HTTPConnection | None = field(default=None, init=False)

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        patience: float | None = PATIENCE_SECONDS,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> Document:
        """Give the module's answer.

        While the module is away or starting the request is repeated for `patience` seconds (None: for ever), then it
        is a `ModuleUnreachableError`. A `ClientError` is the module's own refusal.
        """
        payload = None if body is None else json.dumps(body).encode()
        return self._patiently(
            lambda: self.send(method, path, payload=payload, answer_seconds=answer_seconds), patience=patience
        )

    def ask_held(self, path: str, *, held_seconds: float, patience: float | None) -> Document:
        """Give an answer that the module may hold back for so long on purpose."""
        answer_seconds = held_seconds + _SLACK_SECONDS
        return self._patiently(
            lambda: self.send("GET", path, answer_seconds=answer_seconds, held_seconds=held_seconds), patience=patience
        )

    def put(
        self,
        path: str,
        pieces: Callable[[], Iterable[bytes]],
        *,
        size_bytes: int,
        patience: float | None = PATIENCE_SECONDS,
    ) -> Document:
        """Send a body piece by piece and give the answer; `pieces` begins anew whenever it was cut off."""
        return self._patiently(lambda: self._send_pieces(path, pieces(), size_bytes), patience=patience)

    def send(
        self,
        method: str,
        path: str,
        *,
        payload: bytes | None = None,
        answer_seconds: float = _ANSWER_SECONDS,
        held_seconds: float = 0.0,
    ) -> http.client.HTTPResponse:
        """Send one request and give the response before its body was read; whatever goes wrong is raised."""
        headers = {} if payload is None else {"Content-Type": "application/json"}
        connection = self._ready(answer_seconds)
        connection.request(method, path, body=payload, headers=headers)
        if held_seconds + self.quiet_seconds < answer_seconds:
            self._tell_if_quiet(connection, held_seconds + self.quiet_seconds)
        return self._response()

    def _tell_if_quiet(self, connection: http.client.HTTPConnection, seconds: float) -> None:
        assert isinstance(connection.sock, socket.socket)
        answering = select.poll()
        answering.register(connection.sock, select.POLLIN)
        if not answering.poll(seconds * 1000):
            _tell(f"the module `{self.socket_path.stem}` runs but does not answer; still waiting")

    def _send_pieces(self, path: str, pieces: Iterable[bytes], size_bytes: int) -> http.client.HTTPResponse:
        connection = self._ready(_ANSWER_SECONDS)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size_bytes)}
        try:
            connection.request("PUT", path, body=pieces, headers=headers)
        except ConnectionError:
            # A module that refuses says so at once and hangs up, while we still send; its words tell more.
            return self._response()
        except ClientError:
            # The body ended before its announced end: this connection is of no more use.
            self.close()
            raise
        return self._response()

    def _patiently(self, ask: Callable[[], http.client.HTTPResponse], *, patience: float | None) -> Document:
        waiting = Waiting(self.socket_path, patience=patience)
        while True:
            began = time.monotonic()
            try:
                response = ask()
                status, raw = response.status, response.read()
            except _CUT_OFF as error:
                self.close()
                # What was not answered in all that time has used up its patience.
                waiting.pause(_cause_of(error), since=began if isinstance(error, TimeoutError) else None)
                continue
            if status != http.client.SERVICE_UNAVAILABLE:
                return _document(status, raw)
            self.close()
            waiting.pause(_error_text(raw))

    def _ready(self, answer_seconds: float) -> http.client.HTTPConnection:
        if self._open is None:
            self._open = _connected(self.socket_path)
        assert isinstance(self._open.sock, socket.socket)
        self._open.sock.settimeout(answer_seconds)
        return self._open

    def _response(self) -> http.client.HTTPResponse:
        assert self._open is not None
        response = self._open.getresponse()
        if response.will_close:
            # The response keeps its own hold of the socket; the next request needs a new one.
            self._open = None
        return response

    def close(self) -> None:
        """End the connection; a later request makes a new one."""
        if self._open is not None:
            self._open.close()
        self._open = None


@dataclass(slots=True)
class Waiting:
    """How long a module has been away, and how long that is borne; it is started anew by `reset`."""

    socket_path: Path
    patience: float | None = PATIENCE_SECONDS
    since: float | None = None
    next_pause: float = _FIRST_PAUSE_SECONDS
    is_told: bool = False

    def pause(self, cause: str, *, since: float | None = None) -> None:
        """Sleep before the next try, longer each time; a `ModuleUnreachableError` when patience has ended.

        The module has been away `since` then, if that is known, else from now on.
        """
        now = time.monotonic()
        if self.since is None:
            self.since = now if since is None else since
        away_seconds = now - self.since
        if self.patience is not None and away_seconds >= self.patience:
            raise ModuleUnreachableError(_unreachable_text(self.socket_path, cause))
        if away_seconds >= _AWAY_SECONDS and not self.is_told:
            self.is_told = True
            until = "until it is back" if self.patience is None else f"for {self.patience - away_seconds:.0f} s more"
            _tell(f"the module `{self.socket_path.stem}` is away ({cause}); trying {until}")
        time.sleep(self.next_pause)
        self.next_pause = min(2 * self.next_pause, _LONGEST_PAUSE_SECONDS)

    def reset(self) -> None:
        """Note that the module answered."""
        self.since, self.next_pause, self.is_told = None, _FIRST_PAUSE_SECONDS, False


def _tell(text: str) -> None:
    import logging  # noqa: PLC0415 - few commands need it, and all of them start faster without

    logging.getLogger("messiahs.client").warning(text)


def _connected(path: Path) -> http.client.HTTPConnection:
    check_socket_path(path)
    plug = socket.socket(socket.AF_UNIX)
    try:
        plug.connect(str(path))
    except PermissionError as error:
        plug.close()
        raise ClientError(f"you may not talk to the module at {path}: {error.strerror}") from error
    except OSError:
        plug.close()
        raise
    # http.client dials nothing by itself when it is handed a socket.
    connection = http.client.HTTPConnection("localhost")
    connection.sock = plug
    return connection


def _document(status: int, raw: bytes) -> Document:
    if status != http.client.OK:
        raise refusal(status, raw)
    try:
        document = json.loads(raw)
    except ValueError as error:
        raise ClientError(f"the module's answer is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ClientError("the module's answer is no JSON object")
    return document


def refusal(status: int, raw: bytes) -> ClientError:
    """Give the error that stands for an answer other than 200."""
    is_usage = status == http.client.BAD_REQUEST
    return ClientError(_error_text(raw) or f"the module answered {status}", code=_USAGE_EXIT if is_usage else 1)


def _error_text(raw: bytes) -> str:
    try:
        document = json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")[:200]
    return str(document.get("error", "")) if isinstance(document, dict) else ""


def _cause_of(error: BaseException) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _unreachable_text(path: Path, cause: str) -> str:
    return (
        f"the module `{path.stem}` is not running (nothing answers at {path}: {cause}); "
        "start it with `messiahs up TOPOLOGY` or `messiahs module run NAME --topology FILE`"
    )
