"""Whatever the texts of a module's answers are, no command lets them steer the terminal or add lines.

The API, the wire and the documents of a module refuse control characters, or escape them. Here a real module answers,
and each text on its way to the command becomes a hostile one: what the command prints is all that is left to hold.
"""

import http.client
import json
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from messiahs.cli.main import main
from messiahs.core.model.texts import has_control
from tests.live.conftest import Federation
from tests.live.two_machines import two_machines
from tests.waiting import eventually

STEERING = "\x1b]0;steered\x07\x1b[2J\x9b31m\u202e\r\x08"
_KEPT = frozenset({"state", "substate", "kind", "event", "cause", "schema"})
"""Fields of which a command knows all values, or which it compares."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d")


class _Between(BaseHTTPRequestHandler):
    """Passes requests on to a module, and its answers back with hostile texts."""

    protocol_version = "HTTP/1.1"

    def __init__(self, real: Path, *arguments: object) -> None:
        self._real = real
        super().__init__(*arguments)  # type: ignore[arg-type] # they are the server's

    def do_GET(self) -> None:
        """Pass a request on."""
        plug = socket.socket(socket.AF_UNIX)
        plug.connect(str(self._real))
        connection = http.client.HTTPConnection("localhost")
        connection.sock = plug
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        connection.request(self.command, self.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        raw = answer.read()
        if "json" in answer.headers.get("Content-Type", ""):
            raw = b"\n".join(json.dumps(hostile(json.loads(line))).encode() for line in raw.splitlines() if line)
            raw += b"\n"
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        connection.close()

    do_POST = do_GET  # noqa: N815 - the base class finds handlers by these names

    def address_string(self) -> str:
        """Name the other end, which has no address."""
        return "local"

    def log_message(self, *args: object) -> None:
        """Log nothing."""


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def hostile(value: object, key: str = "") -> object:
    """Return a document with hostile texts, but for times and what commands compare."""
    match value:
        case dict():
            return {name: hostile(each, name) for name, each in value.items()}
        case list():
            return [hostile(each, key) for each in value]
        case str() if value and key not in _KEPT and not _TIME.match(value):
            return value + STEERING
        case _:
            return value


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a federation with something to tell: tasks of all kinds, and decisions of people."""
    with two_machines(tmp_path_factory.mktemp("office")) as made:
        made.submit("--require", "$cpus > 90", "--", "true")
        made.submit("--array", "1-3", "--", "true")
        ended = made.submit("--", "sh", "-c", "exit 3")
        held = made.submit("--require", "$cpus > 90", "--", "true")
        assert made.run("task", "hold", held, "--reason", "later").returncode == 0
        assert made.run("neighbor", "off", "right", "--reason", "incident").returncode == 0
        eventually(lambda: made.status(ended)["state"] == "finished", ended)
        yield made


@pytest.fixture
def between(office: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    path = tmp_path / "office" / "top.sock"
    path.parent.mkdir()
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    server = _Server(str(path), partial(_Between, office.folder("top").with_suffix(".sock")))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize(
    "command",
    [
        "status",
        "status top.1 top.2 top.3 top.4",
        "status top.2 --members",
        "explain top.1 top.3 top.4",
        "fetch top.2",
        "task revoke top.1",
        "task hold top.1",
        "module vectors",
        "module policy",
        "module preview left",
        "neighbor list",
        "audit decisions",
        "audit log",
        "accounting",
        "accounting --by user",
    ],
)
@pytest.mark.usefixtures("between")
def test_no_text_of_an_answer_reaches_the_terminal_as_it_is(
    command: str,
    form: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main([*command.split(), *form])
    printed = capsys.readouterr()
    assert has_control(printed.out.replace("\n", "")) is False
    assert has_control(printed.err.replace("\n", "")) is False
    assert r"\u202e" in printed.out + printed.err, (code, printed)
