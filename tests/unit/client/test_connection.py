"""A user who waits for a module is informed."""

import os
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from messiahs.client.connection import Connection, Waiting
from messiahs.core.interface.limits import REQUEST_LIMIT_BYTES
from messiahs.errors import ClientError, ModuleSilentError
from tests.waiting import eventually

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def listener(tmp_path: Path) -> socket.socket:
    """Listen like a module whose process is suspended: the kernel accepts connections, and nothing answers."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(tmp_path / "left.sock"))
    made.listen()
    return made


def test_a_module_that_does_not_answer_is_reported_and_waited_for(
    listener: socket.socket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers = []
    connection = Connection(tmp_path / "left.sock", quiet_seconds=0.01)
    asking = threading.Thread(target=lambda: answers.append(connection.ask("GET", "/v1/module")))
    with listener:
        asking.start()
        peer, _ = listener.accept()
        with peer:
            while "`left` does not answer" not in caplog.text:
                assert asking.is_alive()
                asking.join(0.01)
            peer.sendall(ANSWER)
            asking.join(10)
    assert answers == [{}]
    connection.close()


def test_time_that_was_spent_without_an_answer_counts_as_patience(listener: socket.socket, tmp_path: Path) -> None:
    connection = Connection(tmp_path / "left.sock", answer_seconds=0.1)
    with listener, pytest.raises(ModuleSilentError) as caught:
        connection.ask("GET", "/v1/module", patience=0.05)
    # This process listens, and is at work while it reads what it does.
    assert str(caught.value).startswith(f"the module `left` does not answer yet: its process {os.getpid()} is busy (")


def test_a_module_whose_queue_of_connections_is_full_is_not_waited_for_without_end(tmp_path: Path) -> None:
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        connection = Connection(path, answer_seconds=0.1)
        with pytest.raises(ModuleSilentError, match="`left` does not answer: its process is frozen or busy"):
            connection.ask("GET", "/v1/module", patience=0)


@pytest.mark.parametrize(("patience", "until"), [(None, "until it is back"), (900.0, r"for 8\d\d s more")])
def test_a_module_that_is_down_for_a_while_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, patience: float | None, until: str
) -> None:
    waiting = Waiting(tmp_path / "left.sock", patience=patience, next_pause=0)
    waiting.pause(ConnectionRefusedError("connection refused"))
    assert caplog.messages == []
    waiting.since = time.monotonic() - 10
    waiting.pause(ConnectionRefusedError("connection refused"))
    waiting.pause(ConnectionRefusedError("connection refused"))
    (message,) = caplog.messages
    assert re.fullmatch(rf"the module `left` is away \(connection refused\); trying {until}", message)


def test_a_request_to_a_module_that_is_away_ends_with_its_connection(tmp_path: Path) -> None:
    connection = Connection(tmp_path / "left.sock")
    raised: list[Exception] = []

    def ask() -> None:
        try:
            connection.ask("GET", "/v1/module", patience=None)
        except ClientError as error:
            raised.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    connection.end()
    eventually(lambda: raised)
    assert "another thread ended" in str(raised[0])


def test_a_request_that_no_module_reads_is_not_sent_and_says_what_to_do(tmp_path: Path) -> None:
    connection = Connection(tmp_path / "left.sock")
    body = {"items": ["x" * REQUEST_LIMIT_BYTES]}
    said = f"at most {REQUEST_LIMIT_BYTES} bytes in one request, and this one has 80000..: divide a long array"
    with pytest.raises(ClientError, match=said):
        connection.ask("POST", "/v1/tasks", body=body)
