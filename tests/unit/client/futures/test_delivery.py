"""The results of a task that has ended, as its calls get them."""

import json
import pickle
from pathlib import Path

import pytest

from messiahs.client.futures.executor import Executor
from messiahs.client.futures.packing import PYTHON
from messiahs.client.futures.runner import RESULTS, number
from tests.unit.client.local_api_peer import StartPeer


def raising(error: BaseException) -> bytes:
    """Return the results of a task whose only call raised an error."""
    record = pickle.dumps((True, pickle.dumps(error), "Traceback: there"))
    header = json.dumps({"python": list(PYTHON)}).encode()
    return b"".join((header, b"\n", number(len(record)), number(1), record))


@pytest.mark.parametrize(
    ("error", "notes"),
    [(ModuleNotFoundError("No module named 'joblib'"), ["The Python at east", "PYTHONPATH"]), (KeyError("x"), [])],
)
def test_a_call_that_lacks_a_module_says_at_which_machine(
    start_peer: StartPeer, tmp_path: Path, error: BaseException, notes: list[str]
) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=tmp_path)
    ended = {"id": "left.1.1", "state": "finished", "exit_code": 0, "executed_on": "east"}
    peer.by_path = {
        "/v1/endings": {"ids": [], "gap": True, "after": "1"},
        "/v1/tasks?": {"tasks": [ended], "unknown": []},
    }
    peer.outputs = {"left.1.1": {RESULTS: raising(error)}}
    with Executor(module="left", state=tmp_path) as executor:
        raised = executor.submit(int).exception()
    assert type(raised) is type(error)
    written = " ".join(getattr(raised, "__notes__", []))
    assert [note for note in notes if note in written] == notes
    assert bool(written) == bool(notes)
