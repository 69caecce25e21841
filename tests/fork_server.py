"""A process that has loaded the code of commands and daemons, and forks for each that a test starts (`tests.forked`).

Loading takes longer than most commands run. `python -m tests.fork_server NAME` listens at an abstract Unix socket, and
ends with its standard input. A caller sends the three standard streams and a `Request`, and ends its side. It receives
the pid, and at the end the status for `os.waitstatus_to_exitcode`.
"""

import atexit
import os
import runpy
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from importlib import import_module
from typing import Final

import msgspec

from messiahs.cli.main import COMMANDS
from messiahs.daemon.supervision.forking import load_code

NUMBER: Final = struct.Struct("=i")
"""Format of a pid and of a status."""
READY: Final = "ready\n"
_STREAMS: Final = 3
_CHUNK: Final = 1 << 16


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to run as `python -m` does."""

    module: str
    words: list[str]
    environment: dict[str, str]
    folder: str
    is_leader: bool
    """Of a session of its own."""


class Exit:
    """Ends a child without a visit to everything that was loaded, which takes longer than most commands (mutable)."""

    def __init__(self) -> None:
        self.code: int | None = None
        # What is registered first is called last.
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


def main() -> None:
    """Serve until standard input ends; in each child, run what was requested."""
    leaving = Exit()
    for location in COMMANDS.values():
        import_module(location.partition(":")[0])
    load_code()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{sys.argv[1]}")
        listener.listen()
        sys.stdout.write(READY)
        sys.stdout.flush()
        request = _serve(listener)
    if request is None:
        return
    sys.argv[1:] = request.words
    # It may have been loaded as a module, of which `runpy` would warn.
    sys.modules.pop(request.module, None)
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
        leaving.code = 0
    except SystemExit as ended:
        leaving.code = ended.code if isinstance(ended.code, int) else None
        raise


def _serve(listener: socket.socket) -> Request | None:
    """Return None at the end of standard input, and in each child its request."""
    ended, on_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(on_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    callers: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select((sys.stdin, listener, ended), (), ())
        if sys.stdin in ready:
            return None
        if ended in ready:
            os.read(ended, _CHUNK)
            _report_ends(callers)
        if listener in ready:
            caller, _ = listener.accept()
            request, streams = _received(caller)
            if (pid := os.fork()) == 0:
                for other in (caller, *callers.values()):
                    other.close()
                _become(request, streams)
                return request
            for each in streams:
                os.close(each)
            callers[pid] = caller
            caller.sendall(NUMBER.pack(pid))


def _received(caller: socket.socket) -> tuple[Request, list[int]]:
    first, streams, _, _ = socket.recv_fds(caller, 1, _STREAMS)
    with caller.makefile("rb") as rest:
        return msgspec.json.decode(first + rest.read(), type=Request), streams


def _report_ends(callers: dict[int, socket.socket]) -> None:
    for pid in tuple(callers):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            # A test need not wait for it.
            with callers.pop(pid) as caller, suppress(BrokenPipeError):
                caller.sendall(NUMBER.pack(status))


def _become(request: Request, streams: list[int]) -> None:
    os.close(signal.set_wakeup_fd(-1))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if request.is_leader:
        os.setsid()
    for target, source in enumerate(streams):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)


if __name__ == "__main__":
    main()
