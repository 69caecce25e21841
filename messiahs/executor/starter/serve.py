"""The starter's loop: one daemon at a time on a Unix socket, signals, and the steps of the runner."""

import os
import selectors
import signal
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from messiahs.executor.attempt_values import Ended
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.protocol.frames import (
    Ask,
    FrameReader,
    Hello,
    News,
    Ping,
    Pong,
    Started,
    Stop,
    ToDaemon,
    ToStarter,
    encode_frames,
)
from messiahs.executor.starter.runner import Runner

_LONGEST_WAIT_NS = 500_000_000
_CLEARING_WAIT_NS = 2_000_000
_TOGETHER_NS = 20_000_000
"""How long reports are collected while no place is empty: a message of twenty reports costs as much as of one."""
_READ_BYTES = 1 << 18
_CREDENTIALS = struct.Struct("3i")


class Connection:
    """The connection with a daemon; data that the socket does not accept yet waits in `unsent`."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.frames = FrameReader()
        self.unsent = bytearray()
        self.has_asked = False
        self.asks: list[int] = []
        self.answers: list[ToDaemon] = []


class Server:
    """Serves the last connection from the owner's uid; without a daemon, attempts continue until their leases end.

    After `alone_ns` without a daemon and without attempts it ends, because its folder may be gone; the journal has the
    ends for the next starter.
    """

    def __init__(self, *, listener: socket.socket, runner: Runner, hello: Hello, owner: int, alone_ns: int) -> None:
        self._listener, self._runner, self._hello, self._owner = listener, runner, hello, owner
        self._alone_ns, self._needed_at = alone_ns, boottime_ns()
        self._selector = selectors.DefaultSelector()
        self._connection: Connection | None = None
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[ToStarter])
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._reported_at = 0

    def run(self) -> None:
        """Serve until everything has ended, and the starter is stopped or alone."""
        self._listen()
        while not (self._runner.is_idle and (self._runner.is_stopping or self._is_alone)):
            self._wait()
            if _is_asked_to_end(from_outside=os.getpid() == 1):
                self._runner.end_all()
            self._runner.reap()
            self._runner.enforce()
            self._runner.settle()
            self._send()
            if self._connection is not None or not self._runner.is_settled:
                self._needed_at = boottime_ns()
        self._runner.settle()
        self._send()

    @property
    def _is_alone(self) -> bool:
        return boottime_ns() - self._needed_at >= self._alone_ns

    def _listen(self) -> None:
        for sock in (self._listener, self._wake_reader, self._wake_writer):
            sock.setblocking(False)
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        # The wakeup needs a handler; every step looks for ended processes anyway.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._awake)
        self._selector.register(self._runner.inputs, selectors.EVENT_READ, self._runner.inputs.write_on)
        self._selector.register(self._runner.terminals, selectors.EVENT_READ, self._runner.terminals.copy)
        # Every step asks for events anyway.
        self._selector.register(self._runner.tasks, selectors.EVENT_READ, lambda: None)

    def _wait(self) -> None:
        wait_ns = self._wait_ns()
        events = self._selector.select(0 if self._runner.can_prepare else max(0, wait_ns) / 1e9)
        # Folders are prepared one by one while there is nothing else to do.
        if not events and wait_ns > 0:
            self._runner.prepare()
        for key, mask in events:
            if isinstance(key.data, Connection):
                self._serve(key.data, mask)
            else:
                key.data()

    def _wait_ns(self) -> int:
        now = boottime_ns()
        limit = _CLEARING_WAIT_NS if self._runner.is_clearing else _LONGEST_WAIT_NS
        if self._runner.reports:
            limit = min(limit, self._reported_at + _TOGETHER_NS - now)
        return min(limit, self._runner.wake_at - now)

    def _awake(self) -> None:
        with suppress(BlockingIOError):
            self._wake_reader.recv(4096)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        packed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(packed)[1] != self._owner:
            sock.close()
            return
        self._drop()
        self._runner.inputs.forget_daemon()
        sock.setblocking(False)
        self._connection = Connection(sock)
        self._connection.answers.append(self._hello)
        self._selector.register(sock, selectors.EVENT_READ, self._connection)

    def _drop(self) -> None:
        if self._connection is not None:
            self._selector.unregister(self._connection.sock)
            self._connection.sock.close()
            self._connection = None

    def _serve(self, connection: Connection, mask: int) -> None:
        if connection is not self._connection or not mask & selectors.EVENT_READ:
            return
        try:
            data = connection.sock.recv(_READ_BYTES)
            if not data:
                self._drop()
                return
            for body in connection.frames.feed(data):
                for message in self._decoder.decode(body):
                    self._take(connection, message)
        except BlockingIOError:
            return
        except (OSError, msgspec.MsgspecError):
            self._drop()

    def _take(self, connection: Connection, message: ToStarter) -> None:
        match message:
            case Ask():
                connection.asks.append(message.number)
            case Ping():
                connection.answers.append(Pong())
            case Stop():
                self._runner.end_all()
            case _:
                self._runner.apply(message)

    def _can_wait(self, connection: Connection) -> bool:
        """Whether reports can be sent a little later, together with others."""
        if connection.answers or connection.asks or connection.unsent or not self._runner.has_waiting:
            return False
        return boottime_ns() < self._reported_at + _TOGETHER_NS

    def _send(self) -> None:
        reports, fed = self._runner.reports, self._runner.inputs.answers
        connection = self._connection
        if connection is not None:
            connection.answers += fed
            fed.clear()
            if reports and self._can_wait(connection):
                return
            messages = connection.answers
            if connection.has_asked and reports:
                messages += news_of(reports)
                self._reported_at = boottime_ns()
            if connection.asks:
                # Events before a daemon's first `Ask` are part of its answer.
                messages += [self._runner.known(number) for number in connection.asks]
                connection.asks.clear()
                connection.has_asked = True
            if messages:
                connection.unsent += encode_frames(self._encoder, messages)
                messages.clear()
            if connection.unsent:
                self._flush(connection)
        reports.clear()
        fed.clear()

    def _flush(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.unsent)
            del connection.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._drop()
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        if self._selector.get_key(connection.sock).events != wanted:
            self._selector.modify(connection.sock, wanted, connection)


def news_of(reports: Sequence[News]) -> list[News]:
    """Omit starts of attempts that have ended since."""
    ended = {report.attempt for report in reports if isinstance(report, Ended)}
    return [report for report in reports if not isinstance(report, Started) or report.attempt not in ended]


def _is_asked_to_end(*, from_outside: bool) -> bool:
    """Whether SIGTERM arrived; as pid 1, the starter accepts it only from outside, because tasks share its account."""
    asked = signal.sigtimedwait({signal.SIGTERM}, 0)
    return asked is not None and (not from_outside or asked.si_pid == 0)
