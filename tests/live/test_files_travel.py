"""Files of tasks: from the local API of one module to the machine of another, and back."""

import hashlib
import http.client
import json
import random
import socket
from pathlib import Path
from typing import Any

from messiahs.client.uploading import GROUP_FILES
from messiahs.daemon.api.files import FILE_LENGTH_BYTES, GROUP_LIMIT
from tests.live.conftest import Federation
from tests.waiting import eventually

ON_RIGHT = '$side eq "right"'


class Local(http.client.HTTPConnection):
    """HTTP on a module's Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


def call(federation: Federation, method: str, path: str, /, *, body: bytes = b"") -> tuple[int, bytes]:
    connection = Local(federation.folder(federation.module).with_suffix(".sock"))
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def document(federation: Federation, method: str, path: str, /, body: object = None) -> dict[str, Any]:
    status, content = call(federation, method, path, body=json.dumps(body).encode() if body is not None else b"")
    assert status == 200, content
    return dict(json.loads(content))


def upload(federation: Federation, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    assert document(federation, "POST", "/v1/files/missing", {"sha256": [sha256]}) == {"missing": [sha256]}
    status, answer = call(federation, "PUT", f"/v1/files/{sha256}", body=content)
    assert (status, json.loads(answer)) == (200, {"sha256": sha256, "size": len(content)})
    assert document(federation, "POST", "/v1/files/missing", {"sha256": [sha256]}) == {"missing": []}
    return sha256


def input_of(name: str, content: bytes, *, executable: bool = False) -> dict[str, object]:
    sha256 = hashlib.sha256(content).hexdigest()
    return {"name": name, "sha256": sha256, "size": len(content), "executable": executable}


def test_inputs_reach_the_machine_and_outputs_return(pair: Federation) -> None:
    large = random.Random(1).randbytes(5_000_000)
    tool = b'#!/bin/sh\nmkdir -p out/deep; cp data/large out/deep/copy; cp "$0" out/tool; : > out/empty\n'
    for content in (large, tool):
        upload(pair, content)
    body = {
        "key": "files-travel",
        "argv": ["./tool"],
        "inputs": [input_of("data/large", large), input_of("tool", tool, executable=True)],
        "outputs": ["out"],
        "requirement": ON_RIGHT,
    }
    task = document(pair, "POST", "/v1/tasks", body)["id"]
    eventually(lambda: document(pair, "GET", f"/v1/tasks/{task}/wait?timeout=20")["state"] != "executing")
    ended = document(pair, "GET", f"/v1/tasks/{task}/wait")
    assert (ended["state"], ended["exit_code"], ended["text"]) == ("finished", 0, "")
    assert document(pair, "GET", f"/v1/tasks/{task}/outputs")["outputs"] == [
        {"name": "out/deep/copy", "size": len(large), "executable": False},
        {"name": "out/empty", "size": 0, "executable": False},
        {"name": "out/tool", "size": len(tool), "executable": True},
    ]
    assert call(pair, "GET", f"/v1/tasks/{task}/outputs/out/deep/copy") == (200, large)
    assert call(pair, "GET", f"/v1/tasks/{task}/outputs/out/deep/copy?offset=4999999") == (200, large[-1:])
    assert call(pair, "GET", f"/v1/tasks/{task}/outputs/out/empty") == (200, b"")
    assert call(pair, "GET", f"/v1/tasks/{task}/outputs/out/tool") == (200, tool)
    assert call(pair, "GET", f"/v1/tasks/{task}/outputs/out/none")[0] == 404
    assert call(pair, "GET", f"/v1/tasks/{task}/outputs/out%2F..%2Ftool")[0] == 404


def test_a_task_has_thousands_of_inputs(pair: Federation, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(2_500):
        (many / f"in{number}").write_text(f"{number}\n")
    count = "ls many | wc -l; cat many/* | sort -n | tail -1"
    done = pair.run("run", "--require", ON_RIGHT, "--input", str(many), "--", "sh", "-c", count)
    assert (done.returncode, done.stdout) == (0, "2500\n2499\n"), done.stderr


def test_a_task_starts_in_the_folder_that_its_user_names(pair: Federation, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "in").write_text(f"{name}\n")
    each = tmp_path / "names"
    each.write_text("a\nb\n")
    given = ("--require", ON_RIGHT, "--input", f"{tmp_path / 'all'}:all")
    array = pair.submit(*given, "--each-line", str(each), "--cwd", "all/{}", "--", "cat", "in")
    assert pair.run("wait", array).returncode == 0
    assert [pair.run("logs", f"{array}.{number}").stdout for number in (1, 2)] == ["a\n", "b\n"]
    done = pair.run("run", *given, "--cwd", "/nowhere-at-all", "--", "cat", "in")
    assert done.returncode == 125
    assert "the task cannot start in /nowhere-at-all: No such file or directory" in done.stderr


def test_many_tasks_share_their_inputs(pair: Federation) -> None:
    large, small = random.Random(2).randbytes(1_000_000), b"small"
    for content in (large, small):
        upload(pair, content)
    body = {
        "key": "files-shared",
        "argv": ["sh", "-c", "cat large small > both"],
        "inputs": [input_of("large", large), input_of("small", small)],
        "outputs": ["both"],
        "requirement": ON_RIGHT,
        "members": 20,
    }
    array = document(pair, "POST", "/v1/tasks", body)["id"]
    done = pair.run("wait", array)
    assert done.returncode == 0, done.stdout + done.stderr
    assert call(pair, "GET", f"/v1/tasks/{array}.20/outputs/both") == (200, large + small)


def test_a_missing_output_aborts_a_task_and_keeps_its_exit_code(pair: Federation) -> None:
    body = {"key": "files-missing", "argv": ["true"], "outputs": ["gone"]}
    task = document(pair, "POST", "/v1/tasks", body)["id"]
    eventually(lambda: document(pair, "GET", f"/v1/tasks/{task}/wait?timeout=20")["state"] != "executing")
    ended = document(pair, "GET", f"/v1/tasks/{task}/wait")
    assert (ended["state"], ended["exit_code"], ended["cause"]) == ("aborted", 0, "output_missing")


def test_a_cancel_stops_the_fetch_of_a_large_output_and_leaves_nothing_of_it(pair: Federation) -> None:
    body = {
        "key": "files-cancelled",
        "argv": ["sh", "-c", "truncate -s 12G out; exit 3"],
        "outputs": ["out"],
        "requirement": ON_RIGHT,
    }
    task = document(pair, "POST", "/v1/tasks", body)["id"]
    home = pair.folder(pair.module) / "outputs" / task.rpartition(".")[2]
    eventually(lambda: any(home.rglob("*.part")))
    document(pair, "POST", f"/v1/tasks/{task}/cancel", {})
    ended = document(pair, "GET", f"/v1/tasks/{task}/wait?timeout=20")
    assert (ended["state"], ended["exit_code"]) == ("killed", None)
    eventually(lambda: not any(path.is_file() for path in home.rglob("*")))


def test_outputs_above_what_the_task_states_are_named_in_its_record(pair: Federation) -> None:
    body = {
        "key": "files-too-much",
        "argv": ["sh", "-c", "echo said; truncate -s 65M out; exit 3"],
        "outputs": ["out"],
        "tdv": {"disk": 1},
        "requirement": ON_RIGHT,
    }
    task = document(pair, "POST", "/v1/tasks", body)["id"]
    eventually(lambda: document(pair, "GET", f"/v1/tasks/{task}/wait?timeout=20")["state"] != "executing")
    ended = document(pair, "GET", f"/v1/tasks/{task}/wait")
    assert (ended["state"], ended["cause"], ended["exit_code"]) == ("aborted", "too_much_output", 3)
    assert call(pair, "GET", f"/v1/tasks/{task}/logs") == (200, b"said\n")
    assert document(pair, "GET", f"/v1/tasks/{task}/outputs")["outputs"] == []


def test_one_request_carries_many_files_up_to_a_limit(pair: Federation) -> None:
    assert GROUP_FILES <= GROUP_LIMIT
    empty = bytes(FILE_LENGTH_BYTES)
    assert call(pair, "PUT", "/v1/files", body=empty * GROUP_LIMIT)[0] == 200
    status, answer = call(pair, "PUT", "/v1/files", body=empty * (GROUP_LIMIT + 1))
    assert status == 400
    assert f"at most {GROUP_LIMIT} files" in answer.decode()


def test_anything_but_a_file_is_refused(pair: Federation) -> None:
    sha256 = hashlib.sha256(b"this").hexdigest()
    assert call(pair, "PUT", f"/v1/files/{sha256}", body=b"that")[0] == 400
    assert call(pair, "PUT", "/v1/files/..%2Fkey", body=b"that")[0] == 400
    assert call(pair, "POST", "/v1/files/missing", body=b'{"sha256": ["A"]}')[0] == 400
    assert document(pair, "POST", "/v1/files/missing", {"sha256": [sha256]}) == {"missing": [sha256]}
    body = {"key": "files-unknown", "argv": ["true"], "inputs": [input_of("in", b"this")]}
    status, answer = call(pair, "POST", "/v1/tasks", body=json.dumps(body).encode())
    assert status == 409
    assert sha256 in answer.decode()
