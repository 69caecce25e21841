"""HTTP over a module's Unix socket, through restarts of the daemon.

Every request of the local API may be repeated without harm (a submit carries its own key), so an interrupted request is
repeated until the module answers or patience ends. The logger `messiahs.client` reports waiting; without a handler that
is a line on stderr.
"""

import http.client
import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from messiahs.client.local_sockets import connected, process_behind, why_closed
from messiahs.client.locating import check_socket_path
from messiahs.client.silence import silence_of
from messiahs.core.interface.limits import REQUEST_LIMIT_BYTES
from messiahs.errors import (
    ClientError,
    ModuleSilentError,
    ModuleUnreachableError,
    PartRefusedError,
    UnknownRequestError,
    UnknownTaskError,
)

Document = dict[str, Any]
"""A JSON object from the module."""

PATIENCE_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 60.0
_QUIET_SECONDS = 5.0
_AWAY_SECONDS = 3.0
_SLACK_SECONDS = 30.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5
_CHUNK_BYTES = 262_144
_SILENT_ANSWER_SECONDS = 3600.0


class BusyError(http.client.HTTPException):
    """The module runs and cannot serve a request now; the text is its reason."""


_CUT_OFF = (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException)


@dataclass(slots=True)
class Connection:
    """A connection that is opened when needed and kept open; used by one thread at a time.

    No answer takes longer than `answer_seconds`, beyond the time for which the module holds it back on purpose. A
    warning is logged when one is late by `quiet_seconds`.
    """

    socket_path: Path
    answer_seconds: float = ANSWER_SECONDS
    quiet_seconds: float = _QUIET_SECONDS
    _open: http.client.HTTPConnection | None = field(default=None, init=False)
    _is_ended: bool = field(default=False, init=False)

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        patience: float | None = PATIENCE_SECONDS,
    ) -> Document:
        """Send a request and return the module's answer.

        While the module is away or starting, the request is repeated for `patience` seconds (None: without limit); then
        `ModuleUnreachableError` is raised, or `ModuleSilentError` if its process runs. A refusal by the module is a
        `ClientError`.
        """
        payload = None if body is None else _payload_of(body)
        return self._patiently(lambda: self.send(method, path, payload=payload), patience=patience)

    def ask_held(
        self, path: str, *, held_seconds: float, patience: float | None, payload: bytes | None = None
    ) -> Document:
        """Request an answer that the module may hold back for `held_seconds` on purpose; a payload is posted."""
        method, answer_seconds = "GET" if payload is None else "POST", held_seconds + _SLACK_SECONDS
        return self._patiently(
            lambda: self.send(method, path, payload=payload, answer_seconds=answer_seconds, held_seconds=held_seconds),
            patience=patience,
        )

    def put(
        self,
        path: str,
        pieces: Callable[[], Iterable[bytes]],
        *,
        size_bytes: int,
        patience: float | None = PATIENCE_SECONDS,
    ) -> Document:
        """Send a body piece by piece and return the answer; after an interruption, `pieces` is called again."""
        return self._patiently(lambda: self._send_pieces(path, pieces(), size_bytes), patience=patience)

    def send(
        self,
        method: str,
        path: str,
        *,
        payload: bytes | None = None,
        answer_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> http.client.HTTPResponse:
        """Send one request and return the response with its body unread; every error is raised."""
        headers = {} if payload is None else {"Content-Type": "application/json"}
        answer_seconds = self.answer_seconds if answer_seconds is None else answer_seconds
        connection = self._ready(answer_seconds)
        connection.request(method, path, body=payload, headers=headers)
        if held_seconds + self.quiet_seconds < answer_seconds:
            self._report_if_quiet(connection, held_seconds + self.quiet_seconds)
        return self._response()

    def _report_if_quiet(self, connection: http.client.HTTPConnection, seconds: float) -> None:
        assert isinstance(connection.sock, socket.socket)
        answering = select.poll()
        answering.register(connection.sock, select.POLLIN)
        if answering.poll(seconds * 1000):
            return
        reason = silence_of(self.socket_path, process_behind(connection.sock), silent_seconds=seconds)
        # The reason takes seconds to find, in which the answer may have come.
        if not answering.poll(0):
            _report(f"{reason} (still waiting)")

    def _send_pieces(self, path: str, pieces: Iterable[bytes], size_bytes: int) -> http.client.HTTPResponse:
        connection = self._ready(self.answer_seconds)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size_bytes)}
        try:
            connection.request("PUT", path, body=pieces, headers=headers)
        except ConnectionError:
            # A module that refuses answers at once and closes while the body is being sent; its answer has the reason.
            return self._response()
        except ClientError:
            # The body ended early, so this connection cannot be used again.
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
                check_not_busy(status, raw)
            except _CUT_OFF as error:
                silent = self._process() if isinstance(error, TimeoutError) else None
                self.close()
                # The time without an answer counts as patience used up.
                waiting.pause(error, since=began if isinstance(error, TimeoutError) else None, process=silent)
            else:
                return _document(status, raw)

    def _ready(self, answer_seconds: float) -> http.client.HTTPConnection:
        if self._open is None and not self._is_ended:
            self._open = _connected(self.socket_path, answer_seconds)
        # Another thread may have ended it meanwhile.
        if self._is_ended or self._open is None:
            raise ClientError("another thread ended this connection")
        assert isinstance(self._open.sock, socket.socket)
        self._open.sock.settimeout(answer_seconds)
        return self._open

    def _process(self) -> int | None:
        return None if self._open is None or self._open.sock is None else process_behind(self._open.sock)

    def _response(self) -> http.client.HTTPResponse:
        assert self._open is not None
        response = self._open.getresponse()
        if response.will_close:
            # The response keeps the socket; the next request needs a new one.
            self._open = None
        return response

    def end(self) -> None:
        """Let the present request and all later ones fail; unlike all else, another thread may do this."""
        self._is_ended = True
        opened = self._open
        if opened is not None and isinstance(opened.sock, socket.socket):
            with suppress(OSError):
                opened.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; a later request opens a new one."""
        if self._open is not None:
            self._open.close()
        self._open = None


OnConnection = Callable[[Connection], None]
"""Is told of a connection before it is used, so that another thread can end it."""


def untold(connection: Connection) -> None:
    """Do nothing: no other thread is to end the connection."""


@dataclass(slots=True)
class Waiting:
    """The time since a module went away, and the limit for it; `reset` restarts both."""

    socket_path: Path
    patience: float | None = PATIENCE_SECONDS
    since: float | None = None
    next_pause: float = _FIRST_PAUSE_SECONDS
    is_reported: bool = False

    def pause(self, error: Exception, *, since: float | None = None, process: int | None = None) -> None:
        """Sleep before the next try, longer each time; a `ModuleUnreachableError` when patience has ended.

        The module has been away from `since`, or from now if that is unknown. `process` is the one that was silent.
        """
        now = time.monotonic()
        if self.since is None:
            self.since = now if since is None else since
        away_seconds = now - self.since
        if self.patience is not None and away_seconds >= self.patience:
            silent_seconds = 0.0 if since is None else now - since
            raise _unreachable(self.socket_path, error, process, silent_seconds)
        if away_seconds >= _AWAY_SECONDS and not self.is_reported:
            self.is_reported = True
            until = "until it is back" if self.patience is None else f"for {self.patience - away_seconds:.0f} s more"
            what = "does not serve requests" if _is_up(error) else "is away"
            _report(f"the module `{self.socket_path.stem}` {what} ({_cause_of(error)}); trying {until}")
        time.sleep(self.next_pause)
        self.next_pause = min(2 * self.next_pause, _LONGEST_PAUSE_SECONDS)

    def reset(self) -> None:
        """Note that the module answered."""
        self.since, self.next_pause, self.is_reported = None, _FIRST_PAUSE_SECONDS, False


def _report(text: str) -> None:
    import logging  # noqa: PLC0415 - few commands need it, and the others start faster

    logging.getLogger("messiahs.client").warning(text)


def pieces_of(connection: Connection, path: str) -> Iterator[bytes]:
    """Yield the answer to a request piece by piece, at first an empty one: the module answers, if with nothing yet.

    An answer may be silent for an hour.
    """
    response = connection.send("GET", path, answer_seconds=_SILENT_ANSWER_SECONDS)
    if response.status != http.client.OK:
        raw = response.read()
        check_not_busy(response.status, raw)
        raise refusal(response.status, raw)
    yield b""
    while piece := response.read1(_CHUNK_BYTES):
        yield piece
    # Before Python 3.13 `read1` does not close the response at its end, which would block the next request.
    response.close()


def _connected(path: Path, seconds: float) -> http.client.HTTPConnection:
    check_socket_path(path)
    try:
        plug = connected(path, seconds=seconds)
    except PermissionError as error:
        raise ClientError(why_closed(path)) from error
    # http.client opens no connection of its own when it has a socket.
    connection = http.client.HTTPConnection("localhost")
    connection.sock = plug
    return connection


def _document(status: int, raw: bytes) -> Document:
    if status != http.client.OK:
        raise refusal(status, raw)
    try:
        document = json.loads(raw)
    except ValueError as error:
        raise ClientError(f"the module's answer is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ClientError("the module's answer is not a JSON object")
    return document


def refusal(status: int, raw: bytes) -> ClientError:
    """Return the error for an answer other than 200."""
    document = _json_in(raw)
    text = _error_text(raw) or f"the module answered {status}"
    if "unknown_task" in document:
        return UnknownTaskError(text)
    if "place" in document:
        return PartRefusedError(text, int(document["place"]))
    if status == http.client.NOT_FOUND and not document:
        return UnknownRequestError(f"the module is of a release that does not have this request ({text})")
    return ClientError(text, code=ClientError.USAGE if status == http.client.BAD_REQUEST else 1)


def _error_text(raw: bytes) -> str:
    document = _json_in(raw)
    return str(document.get("error", "")) if document else raw.decode(errors="replace")[:200]


def _payload_of(body: Mapping[str, object]) -> bytes:
    payload = json.dumps(body).encode()
    if len(payload) > REQUEST_LIMIT_BYTES:
        text = f"a module reads at most {REQUEST_LIMIT_BYTES} bytes in one request, and this one has {len(payload)}"
        advice = "divide a long array among several, and put what is long into a file that is an input"
        raise ClientError(f"{text}: {advice}", code=ClientError.USAGE)
    return payload


def _json_in(raw: bytes) -> Document:
    try:
        document = json.loads(raw)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def check_not_busy(status: int, raw: bytes) -> None:
    """Raise the error for an answer that asks to try again."""
    if status == http.client.SERVICE_UNAVAILABLE:
        raise BusyError(_error_text(raw))


def _cause_of(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _is_up(error: Exception) -> bool:
    """Whether something took the request or the connection, so that a module runs."""
    return isinstance(error, TimeoutError | BusyError)


def _unreachable(path: Path, error: Exception, process: int | None, silent_seconds: float) -> ModuleUnreachableError:
    if isinstance(error, TimeoutError):
        return ModuleSilentError(silence_of(path, process, silent_seconds=silent_seconds))
    if _is_up(error):
        text = f"the module `{path.stem}` runs and does not serve the request ({_cause_of(error)}); try again later"
        return ModuleSilentError(text)
    remedy = "start it with `messiahs up TOPOLOGY` or `messiahs module run NAME --topology FILE`"
    if _is_of_another_account(path):
        remedy = "ask its administrator to start it"
    text = f"the module `{path.stem}` is not running (nothing answers at {path}: {_cause_of(error)}); {remedy}"
    return ModuleUnreachableError(text)


def _is_of_another_account(path: Path) -> bool:
    """Whether this user could not start the module with a socket; root can start all."""
    try:
        return os.geteuid() not in {0, path.parent.stat().st_uid}
    except OSError:
        return False


def check_size(offset: int, size_bytes: int | None) -> None:
    """Raise an error if not as many bytes have come as were announced, if they were."""
    if size_bytes is not None and offset < size_bytes:
        raise http.client.RemoteDisconnected(f"{size_bytes - offset} bytes are missing")
    if size_bytes is not None and offset > size_bytes:
        raise ClientError(f"the module sent {offset} bytes of an output of {size_bytes}")
