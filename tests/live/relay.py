"""A link that a test controls: a TCP relay between two modules that can be cut, held, slowed or half closed.

It does not interpret the bytes that it forwards.
"""

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

from tests.live.conftest import Federation
from tests.waiting import eventually, let_pass

_PIECE_BYTES = 65_536


class Way(Enum):
    """A direction, relative to the hierarchy."""

    UP = "from the child to the parent"
    DOWN = "from the parent to the child"


class Relay:
    """Listens at `address` and forwards every connection to `target` (mutable, and safe to use from any thread)."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._changed = threading.Condition()
        self._held: frozenset[Way] = frozenset()
        self._delay_seconds = 0.0
        self._is_cut = False
        self._ends: dict[Way, set[socket.socket]] = {way: set() for way in Way}
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, *ways: Way) -> None:
        """Stop delivery in these directions; sent bytes wait, and connections stay open."""
        self._set(held=frozenset(ways))

    def slow(self, seconds: float) -> None:
        """Delay every piece, one after the other."""
        self._set(delay_seconds=seconds)

    def cut(self) -> None:
        """End every connection, and refuse new ones at once."""
        self._set(is_cut=True)
        self._end_all()

    def half_close(self, way: Way) -> None:
        """Close one direction; the other one continues."""
        with self._changed:
            for end in self._ends[way]:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_WR)

    def mend(self) -> None:
        """Forward everything again."""
        self._set()

    def close(self) -> None:
        """Stop listening and end every connection."""
        self.cut()
        self._listener.close()

    @property
    def connections(self) -> int:
        """The number of connections."""
        with self._changed:
            return len(self._ends[Way.UP])

    def _set(self, *, held: frozenset[Way] = frozenset(), delay_seconds: float = 0.0, is_cut: bool = False) -> None:
        with self._changed:
            self._held, self._delay_seconds, self._is_cut = held, delay_seconds, is_cut
            self._changed.notify_all()

    def _end_all(self) -> None:
        with self._changed:
            for end in (*self._ends[Way.UP], *self._ends[Way.DOWN]):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                child, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(child,), daemon=True).start()

    def _carry(self, child: socket.socket) -> None:
        with child, suppress(OSError), socket.create_connection(self._target) as parent:
            with self._changed:
                if self._is_cut:
                    return
                self._ends[Way.UP].add(parent)
                self._ends[Way.DOWN].add(child)
            up = threading.Thread(target=self._pump, args=(child, parent, Way.UP), daemon=True)
            up.start()
            self._pump(parent, child, Way.DOWN)
            up.join()
            with self._changed:
                self._ends[Way.UP].discard(parent)
                self._ends[Way.DOWN].discard(child)

    def _pump(self, source: socket.socket, sink: socket.socket, way: Way) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                with self._changed:
                    self._changed.wait_for(lambda: way not in self._held)
                    delay_seconds = self._delay_seconds
                let_pass(delay_seconds)
                sink.sendall(piece)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR if end is source else socket.SHUT_WR)


@contextmanager
def relayed(federation: Federation, child: str, *, parent: str) -> Iterator[Relay]:
    """Route the link of a child with its parent through a relay."""
    file = federation.folder(child) / "settings.json"
    before = file.read_text()
    settings = json.loads(before)
    (link,) = [one for one in settings["neighbors"] if one["neighbor"]["system"] == parent]
    relay = Relay(link["address"])
    link["address"] = relay.address
    file.write_text(json.dumps(settings))
    restart(federation, child)
    try:
        eventually(lambda: parent in heard_by(federation, child) and child in heard_by(federation, parent))
        yield relay
    finally:
        file.write_text(before)
        restart(federation, child)
        relay.close()


def restart(federation: Federation, module: str) -> None:
    """Kill a daemon; `up` starts it again, with its present settings."""
    before = federation.pid(module, "daemon")
    os.kill(before, signal.SIGKILL)
    eventually(lambda: federation.pid(module, "daemon") != before)


def heard_by(federation: Federation, module: str) -> set[str]:
    """Return the neighbors of which a module has a view."""
    return set(federation.vectors(module)["views"])
