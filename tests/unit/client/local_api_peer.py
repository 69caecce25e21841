"""A peer that speaks the local API over a Unix socket, with answers that the test lays out."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

Answer = tuple[int, object] | None
"""Status and document; None cuts the connection off without a word."""


@dataclass(slots=True)
class Peer:
    """What the peer will answer, and what it was asked; mutable, so that a test can go on while it is asked.

    `answers` come one after the other, the last one for ever; `by_path` goes before them, and answers whatever has its
    key in its path. Of a log, either `logs` has all, or each of `pieces` but the last is cut off after what it has.
    """

    socket_path: Path
    answers: list[Answer] = field(default_factory=list)
    by_path: dict[str, object] = field(default_factory=dict)
    pieces: list[list[bytes]] = field(default_factory=list)
    logs: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)

    def answer_to(self, path: str) -> Answer:
        """Give the answer for a path."""
        for part, document in self.by_path.items():
            if part in path:
                return (200, document)
        return self.next_answer()

    def next_answer(self) -> Answer:
        """Take the next answer off the list, except the last one."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


StartPeer = Callable[..., Peer]
"""Starts a peer with these answers; `state` is the state directory that it is to be found under."""


def _handler(peer: Peer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: dict[str, object]) -> None:
            peer.asked.append((self.command, self.path, body))
            if "/logs?" in self.path:
                stream = "stderr" if "stream=stderr" in self.path else "stdout"
                pieces = [peer.logs[stream]] if peer.logs else peer.pieces.pop(0)
                self._stream(pieces, is_cut=bool(peer.pieces))
                return
            answer = peer.answer_to(self.path)
            if answer is None:
                self.close_connection = True
                return
            raw = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def _stream(self, pieces: list[bytes], *, is_cut: bool) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in filter(None, pieces):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if not is_cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = is_cut

        def address_string(self) -> str:
            return "local"

        def log_message(self, *args: object) -> None: ...

    return Handler


@pytest.fixture
def start_peer(tmp_path: Path) -> Iterator[StartPeer]:
    servers: list[socketserver.ThreadingUnixStreamServer] = []

    def start(*answers: Answer, state: Path | None = None, name: str = "left") -> Peer:
        path = (tmp_path if state is None else state / "pair") / f"{name}.sock"
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        peer = Peer(socket_path=path, answers=list(answers))
        server = socketserver.ThreadingUnixStreamServer(str(path), _handler(peer))
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return peer

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
