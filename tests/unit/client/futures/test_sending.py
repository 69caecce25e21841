"""How calls that wait become tasks of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.client.futures.executor import Executor
from messiahs.errors import ClientError, ModuleUnreachableError
from tests.unit.client.local_api_peer import Peer, StartPeer
from tests.waiting import eventually

_NOTHING_ENDS = {"ids": [], "gap": False, "after": "1"}
_RUNS = {"tasks": [{"id": "left.1.1", "state": "executing"}], "unknown": []}


@pytest.fixture
def peer(start_peer: StartPeer, tmp_path: Path) -> Peer:
    """Return a module at which tasks run without end."""
    started = start_peer((200, {"id": "left.1"}), state=tmp_path)
    started.by_path = {"/cancel": {"id": "left.1"}, "/v1/endings": _NOTHING_ENDS, "/v1/tasks?": _RUNS}
    return started


@pytest.fixture
def executor(peer: Peer, tmp_path: Path) -> Iterator[Executor]:
    assert peer.socket_path.is_relative_to(tmp_path)
    with Executor(module="left", state=tmp_path, patience=0.2) as made:
        yield made
        made.cancel_all()


def submits(peer: Peer) -> list[dict[str, object]]:
    return [body for method, path, body in peer.asked if (method, path) == ("POST", "/v1/tasks")]


def cancels(peer: Peer) -> list[str]:
    return [path for _, path, _ in peer.asked if path.endswith("/cancel")]


def test_a_submit_of_which_no_answer_comes_is_not_made_again_under_another_key(executor: Executor, peer: Peer) -> None:
    executor.submit(int)
    eventually(lambda: submits(peer))
    peer.answers[:] = [None]
    assert isinstance(executor.submit(int).exception(), ModuleUnreachableError)
    assert len({str(body["key"]) for body in submits(peer)}) == 2


def test_a_refused_submit_is_made_again_with_its_files(executor: Executor, peer: Peer) -> None:
    executor.submit(int)
    eventually(lambda: submits(peer))
    peer.answers[:] = [(400, {"error": "a file is not there"}), (200, {"id": "left.2"})]
    second = executor.submit(int)
    eventually(lambda: len(submits(peer)) == 3)
    assert not second.done()


def test_the_calls_of_a_submit_that_is_refused_fail_and_others_follow(executor: Executor, peer: Peer) -> None:
    peer.answers[:] = [(400, {"error": "no"})]
    error = executor.submit(int).exception()
    assert isinstance(error, ClientError)
    assert "no" in str(error)
    peer.answers[:] = [(200, {"id": "left.3"})]
    following = executor.submit(int)
    eventually(lambda: len(submits(peer)) == 2)
    assert not following.done()


@pytest.mark.parametrize(("substate", "sent"), [("running", 6), ("queued", 4), ("staging", 4)])
def test_more_calls_follow_without_a_result_once_those_before_have_begun(
    executor: Executor, peer: Peer, substate: str, sent: int
) -> None:
    doing = {"state": "executing", "substate": substate}
    states = [{"id": f"left.{array}.{number}", **doing} for array in range(1, 7) for number in range(1, 5)]
    # One task alone is asked for by the thread that collects its results.
    peer.by_path = {"&id=": {"tasks": states, "unknown": []}, **peer.by_path}
    peer.answers[:] = [(200, {"id": f"left.{array}"}) for array in range(1, 7)]
    for _ in range(6):
        executor.submit(int)
    eventually(lambda: sum(int(str(body["members"])) for body in submits(peer)) == sent)
    if sent < 6:
        eventually(lambda: len([path for _, path, _ in peer.asked if path.count("id=") == sent]) >= 2)
    assert sum(int(str(body["members"])) for body in submits(peer)) == sent


def test_calls_are_cancelled_while_their_files_are_on_the_way(executor: Executor, peer: Peer) -> None:
    peer.takes_files.clear()
    future = executor.submit(int)
    eventually(lambda: any(method == "PUT" for method, _, _ in peer.asked))
    executor.shutdown(wait=False, cancel_futures=True)
    assert future.cancelled()
    peer.takes_files.set()
    executor.shutdown()
    assert len(submits(peer)) == len(cancels(peer))
