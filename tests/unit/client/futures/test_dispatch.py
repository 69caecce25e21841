"""The threads of an executor."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from messiahs.client.futures.executor import Executor
from tests.unit.client.local_api_peer import StartPeer


@pytest.fixture
def executor(start_peer: StartPeer, tmp_path: Path) -> Iterator[Executor]:
    """Return an executor of a module that refuses all submits."""
    peer = start_peer((400, {"error": "no"}), state=tmp_path)
    peer.by_path = {"/v1/endings": {"ids": [], "gap": False, "after": "1"}}
    with Executor(module="left", state=tmp_path) as made:
        yield made


def test_a_callback_cannot_wait_for_the_end_of_its_own_call(executor: Executor) -> None:
    raised: list[BaseException] = []
    called = threading.Event()

    def shut_down(_: Future[int]) -> None:
        try:
            executor.shutdown()
        except RuntimeError as error:
            raised.append(error)
        called.set()

    executor.submit(int).add_done_callback(shut_down)
    called.wait()
    assert "wait=False" in str(raised[0])
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)


def test_all_threads_of_an_executor_run_once_it_is_made(start_peer: StartPeer, tmp_path: Path) -> None:
    start_peer((400, {"error": "no"}), state=tmp_path)
    known = set(threading.enumerate())
    with Executor(module="left", state=tmp_path):
        names = [thread.name for thread in threading.enumerate() if thread not in known]
    assert [names.count(f"messiahs-{what}") for what in ("calls", "endings", "results")] == [1, 1, 4]
