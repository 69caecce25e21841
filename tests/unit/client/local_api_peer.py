"""A peer with a local API on a Unix socket, whose answers the test sets."""

import hashlib
import json
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

Answer = tuple[int, object] | None
"""Status and document; None cuts the connection off without a word."""


@dataclass(slots=True)
class Peer:
    """What the peer will answer, and what it was asked; mutable, so that a test can go on while it is asked.

    `answers` come one after the other, the last one for ever; `by_path` goes before them, and answers whatever has its
    key in its path. Of a log, or of the audit log, either `logs` has all, or each of `pieces` but the last is cut off
    after what it has. `files` are those that were uploaded, by hash, and `refuses_files` is why none is taken;
    `outputs` are those of tasks by name (one that ends with `.sh` is executable), `declared` what they had declared
    (None: just those), and `kinds` says by name which are links and folders; `member_logs` has what members of an array
    wrote, by stream. While `cuts` is above 0, a file is cut off in the middle; while `takes_files` is not set, one is
    taken and not answered.
    """

    socket_path: Path
    answers: list[Answer] = field(default_factory=list)
    by_path: dict[str, object] = field(default_factory=dict)
    pieces: list[list[bytes]] = field(default_factory=list)
    logs: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    outputs: dict[str, dict[str, bytes]] = field(default_factory=dict)
    member_logs: dict[str, dict[int, bytes]] = field(default_factory=dict)
    declared: list[str] | None = None
    kinds: dict[str, dict[str, object]] = field(default_factory=dict)
    refuses_files: str = ""
    cuts: int = 0
    takes_files: threading.Event = field(default_factory=threading.Event)

    def answer_to(self, path: str) -> Answer:
        """Return the answer for a path."""
        for part, document in self.by_path.items():
            if part in path:
                return (200, document)
        return self.next_answer()

    def __post_init__(self) -> None:
        self.takes_files.set()

    def next_answer(self) -> Answer:
        """Take the next answer off the list, except the last one."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def is_cut(self) -> bool:
        """Return whether this file is to be cut off."""
        self.cuts -= 1
        return self.cuts >= 0


StartPeer = Callable[..., Peer]
"""Starts a peer with these answers; `state` is the state directory that it is to be found under."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection as its server's peer says."""

    server: "Server"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a question."""
        self._reply({})

    def do_POST(self) -> None:
        """Answer a request; standard input comes as it is, everything else as a document."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._reply({"piece": body.decode("latin-1")} if "/stdin?" in self.path else json.loads(body))

    def do_PUT(self) -> None:
        """Take a file."""
        self.server.peer.asked.append((self.command, self.path, {}))
        size = int(self.headers["Content-Length"])
        if self.server.peer.refuses_files:
            self.close_connection = True
            self._answer(507, {"error": self.server.peer.refuses_files})
            return
        if self.server.peer.is_cut():
            self.rfile.read(size // 2)
            self.close_connection = True
            return
        body, wanted = self.rfile.read(size), self.path.rpartition("/")[2]
        self.server.peer.takes_files.wait()
        if wanted == "files":
            self._take_many(body)
            return
        if hashlib.sha256(body).hexdigest() != wanted:
            self._answer(400, {"error": "the hash differs"})
            return
        self.server.peer.files[wanted] = body
        self._answer(200, {"sha256": wanted, "size": size})

    def _take_many(self, body: bytes) -> None:
        hashes = []
        while body:
            end = 8 + int.from_bytes(body[:8])
            content, body = body[8:end], body[end:]
            hashes.append(hashlib.sha256(content).hexdigest())
            self.server.peer.files[hashes[-1]] = content
        self._answer(200, {"sha256": hashes})

    def _reply(self, body: dict[str, object]) -> None:
        self.server.peer.asked.append((self.command, self.path, body))
        if "/member-logs?" in self.path:
            (stream,) = parse_qs(urlsplit(self.path).query)["stream"]
            of_members = self.server.peer.member_logs.get(stream, {}).items()
            frames = (number.to_bytes(4) + len(piece).to_bytes(4) + piece for number, piece in of_members)
            self._stream([b"".join(frames)], is_cut=False)
            return
        if "/logs?" in self.path or "/audit/decisions?" in self.path:
            stream = "stderr" if "stream=stderr" in self.path else "stdout"
            pieces = [self.server.peer.logs[stream]] if self.server.peer.logs else self.server.peer.pieces.pop(0)
            self._stream(pieces, is_cut=bool(self.server.peer.pieces))
            return
        if self.path == "/v1/files/missing":
            hashes = body["sha256"]
            assert isinstance(hashes, list)
            self._answer(200, {"missing": [each for each in hashes if each not in self.server.peer.files]})
            return
        task, _, name = urlsplit(self.path).path.removeprefix("/v1/tasks/").partition("/outputs")
        if task in self.server.peer.outputs:
            self._output(self.server.peer.outputs[task], unquote(name[1:]))
            return
        if task.endswith("/member-outputs"):
            members = self.server.peer.outputs.items()
            self._answer(200, {"members": [{"id": each, **self._listing(outputs)} for each, outputs in members]})
            return
        answer = self.server.peer.answer_to(self.path)
        if answer is None:
            self.close_connection = True
            return
        self._answer(*answer)

    def _output(self, outputs: dict[str, bytes], name: str) -> None:
        if not name:
            self._answer(200, self._listing(outputs))
            return
        body = outputs[name][int(parse_qs(urlsplit(self.path).query)["offset"][0]) :]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.close_connection = self.server.peer.is_cut()
        self.wfile.write(body[: len(body) // 2] if self.close_connection else body)

    def _listing(self, outputs: dict[str, bytes]) -> dict[str, object]:
        listed = [
            {
                "name": each,
                "size": len(body),
                "executable": each.endswith(".sh"),
                **self.server.peer.kinds.get(each, {}),
            }
            for each, body in outputs.items()
        ]
        declared = self.server.peer.declared
        return {"outputs": listed, "declared": list(outputs if declared is None else declared)}

    def _answer(self, status: int, document: object) -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
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
        """Name the other end, which has no address."""
        return "local"

    def log_message(self, *args: object) -> None:
        """Log nothing."""


class Server(socketserver.ThreadingUnixStreamServer):
    """Bears clients that hang up in the middle of an answer."""

    daemon_threads = True

    def __init__(self, peer: Peer) -> None:
        super().__init__(str(peer.socket_path), Handler)
        self.peer = peer

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type] # typeshed is narrower than it need be


@pytest.fixture
def start_peer(tmp_path: Path) -> Iterator[StartPeer]:
    servers: list[Server] = []

    def start(*answers: Answer, state: Path | None = None, name: str = "left") -> Peer:
        path = (tmp_path if state is None else state / "pair") / f"{name}.sock"
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        peer = Peer(socket_path=path, answers=list(answers))
        server = Server(peer)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return peer

    yield start
    for server in servers:
        server.peer.takes_files.set()
        server.shutdown()
        server.server_close()
