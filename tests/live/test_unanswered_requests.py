"""What is said of a module that does not answer depends on what its process does."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.client.connection import Connection
from messiahs.client.silence import FROZEN_AFTER_SECONDS, silence_of
from tests.commands import Command
from tests.waiting import eventually

pytestmark = pytest.mark.live

_LISTEN = """
import os, signal, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print(flush=True)
"""
_FROZEN = _LISTEN + "signal.pause()"
_BUSY = _LISTEN + "while True: pass"
_LATE = (
    _LISTEN
    + r"""
answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
first, _ = listener.accept()
while True:
    other, _ = listener.accept()
    other.recv(65536)
    if sys.argv[2:]:
        first.sendall(answer)
    other.sendall(answer)
"""
)


@contextmanager
def listening(path: Path, program: str, *words: str) -> Iterator[int]:
    """Run a program that listens at a socket like a module, and yield its process."""
    command = [sys.executable, "-c", program, str(path), *words]
    with Command(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "left.sock"


def test_only_a_process_that_has_done_nothing_for_long_is_to_be_killed(path: Path) -> None:
    with listening(path, _FROZEN) as process:
        text = f"the module `left` does not answer: its process {process} does nothing"
        eventually(lambda: silence_of(path, process, silent_seconds=5) == f"{text}; try again later")
        said = silence_of(path, process, silent_seconds=FROZEN_AFTER_SECONDS)
        assert said.startswith(
            f"{text} and has not answered for 30 s: it is frozen; end it with `kill -KILL {process}`"
        )


def test_a_process_that_works_is_busy_however_long_it_takes(path: Path) -> None:
    with listening(path, _BUSY) as process:
        said = silence_of(path, process, silent_seconds=3600)
    assert said.startswith(f"the module `left` does not answer yet: its process {process} is busy (")
    assert said.endswith(" % of a core); try again later")


def test_a_module_that_answers_others_is_busy_with_the_request(path: Path) -> None:
    with listening(path, _LATE) as process, socket.socket(socket.AF_UNIX) as first:
        first.connect(str(path))
        said = silence_of(path, process, silent_seconds=3600)
    text = "the module `left` does not answer this request yet, and it answers others: it is busy; try again later"
    assert said == text


def test_a_stopped_process_is_to_be_continued(path: Path) -> None:
    with listening(path, _FROZEN) as process:
        os.kill(process, signal.SIGSTOP)
        eventually(lambda: "is stopped" in silence_of(path, process))
        said = silence_of(path, process, silent_seconds=3600)
    text = f"its process {process} is stopped; `kill -CONT {process}` lets it go on"
    assert said == f"the module `left` does not answer: {text}"


def test_a_process_that_cannot_be_seen_is_not_to_be_killed(path: Path) -> None:
    with listening(path, _FROZEN):
        said = silence_of(path, None, silent_seconds=3600)
    assert said == "the module `left` does not answer: its process is frozen or busy; try again later"


def test_an_answer_that_comes_while_its_reason_is_sought_is_not_reported(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    connection = Connection(path, quiet_seconds=0.01)
    with listening(path, _LATE, "then the first"):
        asking = threading.Thread(target=lambda: connection.ask("GET", "/v1/tasks"))
        asking.start()
        asking.join()
    connection.close()
    assert caplog.messages == []
