"""Processes that a failing test does not leave behind, and does not wait for; those that run our code start at once."""

import atexit
import os
import select
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, AnyStr

import msgspec

from messiahs.daemon.process.environment import daemon_environment
from tests.fork_server import NUMBER, READY, Request

_ROOT = Path(__file__).parents[1]
_OF_PYTHON = [sys.executable, "-m"]


class Command(subprocess.Popen[AnyStr]):
    """A process that is killed when its block fails; another one would be waited for, maybe for ever."""

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, traceback)


class Forked(Command[AnyStr]):
    """The command `python -m MODULE [WORD...]`, forked by a process that has loaded our code (`tests.fork_server`).

    It is no child of this process, and its status comes from there.
    """

    # `Popen` of Python 3.11 to 3.14 makes the pipes, reads them and waits by means of the following.
    _waitpid_lock: threading.Lock
    _close_pipe_fds: Callable[..., None]
    _handle_exitstatus: Callable[[int], None]
    _server: socket.socket

    def _execute_child(self, args: list[str], *rest: Any) -> None:  # noqa: ANN401 - twenty parameters of `Popen`
        cwd, environment, streams, is_leader = rest[4], rest[5], rest[9:15], rest[-2]
        assert args[:2] == _OF_PYTHON
        sys.audit("subprocess.Popen", args[0], args, cwd, environment)
        request = Request(
            module=args[2],
            words=args[3:],
            environment=dict(os.environ if environment is None else environment),
            folder=str(cwd or Path.cwd()),
            is_leader=is_leader,
        )
        content = msgspec.json.encode(request)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_fork_server())
        ends = (streams[0], streams[3], streams[5])
        socket.send_fds(self._server, [content[:1]], [number if end < 0 else end for number, end in enumerate(ends)])
        self._server.sendall(content[1:])
        self._server.shutdown(socket.SHUT_WR)
        self.pid = self._number()
        self._child_created = True
        self._close_pipe_fds(*streams)

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if not select.select((self._server,), (), (), 0 if flags & os.WNOHANG else None)[0]:
            return 0, 0
        with self._server:
            return self.pid, self._number()

    def _internal_poll(self, **_: object) -> int | None:
        # Another thread may be waiting.
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode

    def _number(self) -> int:
        (number,) = NUMBER.unpack(self._server.recv(NUMBER.size, socket.MSG_WAITALL))
        return int(number)


@cache
def _fork_server() -> str:
    """Start the fork server of this process, which ends with it; return its address."""
    name = f"messiahs-tests-{uuid.uuid4()}"
    command = [*_OF_PYTHON, "tests.fork_server", name]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, cwd=_ROOT, env=daemon_environment(), stdin=pipe, stdout=pipe, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == READY
    atexit.register(server.communicate)
    return f"\0{name}"
