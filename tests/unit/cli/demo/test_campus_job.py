"""Files that the demo compresses, and its checks of the outputs."""

import gzip
import hashlib
from pathlib import Path

import pytest

from messiahs.cli.demo.campus_job import checked_files, compress_everywhere, library, library_files, problem_with
from messiahs.cli.examples import example
from messiahs.client import ModuleClient
from messiahs.errors import ClientError
from tests.unit.client.local_api_peer import StartPeer

BODY = b"import this\n"
HASH = hashlib.sha256(BODY).hexdigest()


def test_the_library_is_found_without_its_tests() -> None:
    names = library_files(library())
    assert {"os.py", "json/decoder.py"} <= set(names)
    assert not [name for name in names if "site-packages" in name or "/test/" in f"/{name}" or "idle_test" in name]


def test_a_correct_output_has_no_problem() -> None:
    assert problem_with(BODY, gzip.compress(BODY), printed=f"{HASH}  os.py\n") == ""


@pytest.mark.parametrize(
    ("compressed", "printed", "problem"),
    [
        (gzip.compress(BODY), "", "printed the hash nothing"),
        (gzip.compress(BODY), "0" * 64, "printed the hash 000"),
        (gzip.compress(BODY + b"x"), HASH, "differs from the file"),
        (gzip.compress(BODY)[:-1], HASH, "cannot be decompressed"),
        (b"", HASH, "differs from the file"),
        (b"no gzip", HASH, "cannot be decompressed"),
    ],
    # gzip writes the time, and all processes that share the tests must agree on their ids.
    ids=("no hash", "another hash", "another file", "cut", "nothing", "no gzip"),
)
def test_a_wrong_output_is_reported(compressed: bytes, printed: str, problem: str) -> None:
    assert problem in problem_with(BODY, compressed, printed=printed)


def test_every_file_is_submitted_as_a_member_and_checked(tmp_path: Path, start_peer: StartPeer) -> None:
    names = ("a.py", "b/a.py", "c.py")
    for name in names:
        (tmp_path / "library" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "library" / name).write_bytes(BODY)
    done = {"state": "finished", "exit_code": 0, "executed_on": "right", "cause": "", "text": ""}
    members = [{**done, "id": f"left.1.{number}"} for number in (1, 2, 3)]
    members[2] = {**members[2], "state": "aborted", "exit_code": None, "cause": "lost"}
    array = {"id": "left.1", "members": 3, "counts": {"finished": 2, "aborted": 1}, "exit_codes": {"0": 2}}
    peer = start_peer((200, {"id": "left.1"}))
    peer.by_path = {
        "members=1": {"tasks": members, "unknown": []},
        "?id=": {"tasks": [array], "unknown": []},
    }
    peer.outputs = {f"left.1.{number}": {f"{name}.gz": gzip.compress(BODY)} for number, name in enumerate(names, 1)}
    peer.logs = {"stdout": HASH.encode(), "stderr": b""}
    steps: list[tuple[str, int, int]] = []
    with ModuleClient(peer.socket_path) as module:
        root = tmp_path / "library"
        ended = compress_everywhere(module, root, names=names, on_step=lambda *step: steps.append(step))
    checked = list(checked_files(peer.socket_path, ended, root=root, names=names, into=tmp_path / "outputs"))
    body = next(body for method, path, body in peer.asked if (method, path) == ("POST", "/v1/tasks"))
    assert (body["items"], body["members"], body["outputs"]) == (list(names), 3, ["{}.gz"])
    assert list(peer.files.values()) == [BODY]
    assert [one.problem for one in checked] == ["", "", "left.1.3 aborted lost"]
    assert [(one.machine, one.bytes_in) for one in checked] == [("right", len(BODY))] * 3
    assert steps[-1] == ("compressed", 3, 3)
    assert gzip.decompress((tmp_path / "outputs" / "2" / "b" / "a.py.gz").read_bytes()) == BODY


def test_the_examples_of_a_checkout_are_found() -> None:
    assert example("topologies", "campus.yaml").is_file()


def test_a_missing_example_is_an_error() -> None:
    with pytest.raises(ClientError, match=r"example topologies/nowhere.yaml is not installed"):
        example("topologies", "nowhere.yaml")
