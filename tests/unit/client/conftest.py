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
    """What the peer will answer (the last answer for ever), and what it was asked; both grow."""

    socket_path: Path
    answers: list[Answer] = field(default_factory=list)
    pieces: list[list[bytes]] = field(default_factory=list)
    asked: list[tuple[str, str, object]] = field(default_factory=list)

    def next_answer(self) -> Answer:
        """Take the next answer off the list, except the last one."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def _handler(peer: Peer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: object) -> None:
            peer.asked.append((self.command, self.path, body))
            if "/logs?" in self.path:
                self._stream(peer.pieces.pop(0), is_cut=bool(peer.pieces))
                return
            answer = peer.next_answer()
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
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if not is_cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = is_cut

        def address_string(self) -> str:
            return "local"

        def log_message(self, *args: object) -> None: ...

    return Handler


@pytest.fixture
def start_peer(tmp_path: Path) -> Iterator[Callable[..., Peer]]:
    servers: list[socketserver.ThreadingUnixStreamServer] = []

    def start(*answers: Answer, name: str = "left") -> Peer:
        path = tmp_path / f"{name}.sock"
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
