"""A module that may open no more files says so, and goes on when it may again."""

import http.client
import json
import resource
import socket
from pathlib import Path
from typing import Any

from messiahs.daemon.process.pid_files import recorded_process
from tests.live.conftest import Federation
from tests.waiting import eventually

_FEW_FILES = 3
"""Fewer than are open: those stay open, and no other one can be opened."""
_UNSTORED = (
    "no_files: it is not stored yet, and need not be repeated: it takes effect when this module, which has too many "
    "files open, can store again, unless it ends before"
)
_NO_FILES = "no_files: this module has too many files open to store anything; nothing was changed: try again later"


class Opened:
    """A connection that is open before no other one is accepted any more."""

    def __init__(self, path: Path) -> None:
        plug = socket.socket(socket.AF_UNIX)
        plug.connect(str(path))
        self.connection = http.client.HTTPConnection("localhost")
        self.connection.sock = plug
        # The user's name has to be known, too.
        self.notes()

    def begin(self, method: str, path: str, **body: object) -> None:
        """Send a request."""
        self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Return the status of its answer, and the document."""
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def begin_submit(self, key: str) -> None:
        """Send a submit."""
        self.begin("POST", "/v1/tasks", argv=["true"], key=key)

    def submitted(self, key: str) -> tuple[int, dict[str, Any]]:
        """Submit a task, and return the answer."""
        self.begin_submit(key)
        return self.answer()

    def notes(self) -> list[str]:
        """Return what the module reports to its administrator."""
        self.begin("GET", "/v1/module")
        return list(self.answer()[1]["notes"])


def test_a_module_without_open_files_says_so_stores_nothing_and_goes_on_later(own_pair: Federation) -> None:
    folder = own_pair.folder("left")
    module = recorded_process(folder / "daemon.pid")
    assert module is not None
    first, second = (Opened(folder.with_suffix(".sock")) for _ in range(2))
    assert first.submitted("before")[0] == 200
    before = resource.prlimit(module.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(module.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, before[1]))
    try:
        # Its present files of the audit log are gone, so that it has to open others.
        for file in folder.glob("audit/*/*.jsonl"):
            file.unlink()
        unstored = first.submitted("unstored")
        first.begin("POST", "/v1/drain", on=True, reason="no files")
        refused = first.answer()
        notes = first.notes()
        second.begin_submit("while it stores nothing")
        assert first.notes() == notes
    finally:
        resource.prlimit(module.pid, resource.RLIMIT_NOFILE, before)
    assert unstored == (503, {"error": _UNSTORED})
    assert refused == (503, {"error": _NO_FILES})
    assert "this module has too many files open: no new work is accepted" in notes
    # The core has refused it, or it has waited for too long.
    status, document = second.answer()
    assert (status, document["error"] in {_NO_FILES, _UNSTORED}) == (503, True), document
    eventually(lambda: first.submitted("while it stores nothing")[0] == 200)
    eventually(lambda: "too many files" not in str(first.notes()))
    assert own_pair.run("run", "--", "echo", "after").stdout == "after\n"
    for each in (first, second):
        each.connection.close()
