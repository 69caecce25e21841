"""Cancelled calls: their tasks end although the executor, or the script, ends right after."""

import logging
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import pytest

from messiahs.client.futures import dispatch
from messiahs.client.futures.batches import Call
from messiahs.client.futures.calls import Batch, Calls
from messiahs.client.futures.executor import Executor
from messiahs.client.futures.sending import Sender
from messiahs.client.tasks import Client
from tests.unit.client.local_api_peer import Peer, StartPeer
from tests.waiting import eventually

_NOTHING_ENDS: Final[dict[str, object]] = {"ids": [], "gap": False, "after": "1"}
_RUNS: Final[dict[str, object]] = {"tasks": [{"id": "left.1.1", "state": "executing"}], "unknown": []}


@pytest.fixture
def peer(start_peer: StartPeer, tmp_path: Path) -> Peer:
    """Return a module at which tasks run without end."""
    started = start_peer((200, {"id": "left.1"}), state=tmp_path)
    started.by_path = {"/cancel": {"id": "left.1"}, "/v1/endings": _NOTHING_ENDS, "/v1/tasks?": _RUNS}
    return started


@pytest.fixture
def array() -> Calls:
    """Return three calls that are in the tasks of an array."""
    calls = Calls()
    chunk = [Call(b"", Future()) for _ in range(3)]
    calls.add(chunk, {}, function=int)
    group = calls.group_of({}, function=int)
    group.waiting.chunks.clear()
    sent = [
        Batch(task=f"left.7.{number}", array="left.7", group=group, calls=deque([call]))
        for number, call in enumerate(chunk, 1)
    ]
    calls.register(sent, gaps=0)
    return calls


@pytest.fixture
def executor(peer: Peer, tmp_path: Path) -> Iterator[Executor]:
    (tmp_path / "pair").mkdir(exist_ok=True)
    with Executor(module="left", state=tmp_path) as made:
        yield made
        made.cancel_all()


def submitted(peer: Peer) -> list[str]:
    return [path for method, path, _ in peer.asked if (method, path) == ("POST", "/v1/tasks")]


def cancelled(peer: Peer) -> set[str]:
    return {path.removeprefix("/v1/tasks/") for _, path, _ in peer.asked if path.endswith("/cancel")}


def test_a_call_that_is_cancelled_after_all_calls_were_taken_ends_its_task(executor: Executor, peer: Peer) -> None:
    future = executor.submit(int)
    eventually(lambda: submitted(peer))
    executor.shutdown(wait=False)
    assert future.cancel()
    executor.shutdown()
    assert cancelled(peer) == {"left.1.1/cancel"}


def test_a_shutdown_that_cancels_ends_the_tasks_that_have_not_begun(executor: Executor, peer: Peer) -> None:
    peer.answers[:] = [(200, {"id": f"left.{number}"}) for number in (1, 2, 3)]
    doing = {"left.1.1": "running", "left.2.1": "queued", "left.2.2": "staging", "left.3.1": "staging"}
    states = [{"id": task, "state": "executing", "substate": substate} for task, substate in doing.items()]
    # One task alone is asked for by the thread that collects its results.
    peer.by_path = {"&id=": {"tasks": states, "unknown": []}, **peer.by_path}
    begun = executor.submit(int)
    eventually(lambda: submitted(peer))
    others = [executor.submit(int) for _ in range(2)]
    eventually(lambda: not executor._dispatcher._calls.unsent())
    executor.shutdown(wait=False, cancel_futures=True)
    eventually(lambda: all(future.cancelled() for future in others))
    assert not begun.done()
    begun.cancel()
    executor.shutdown()
    assert "left.1.1/cancel" in cancelled(peer)
    assert cancelled(peer) - {"left.1.1/cancel"} <= {f"left.{id_}/cancel" for id_ in ("2", "2.1", "2.2", "3.1")}
    assert len(cancelled(peer)) >= 2


def test_calls_run_on_if_the_module_does_not_say_which_have_begun(array: Calls, peer: Peer, tmp_path: Path) -> None:
    peer.by_path.clear()
    peer.answers[:] = [(400, {"error": "no"})]
    with Client("left", tmp_path) as client:
        sender = Sender(array, client, max_tasks=1, python="python3", on_ended=lambda _: None)
        sender._drain(list(array.under_way.values()))
    assert [method for method, _, _ in peer.asked] == ["GET"]
    assert not any(call.future.cancelled() for call in array.waiting_and_sent())


def test_whoever_leaves_the_results_of_a_map_cancels_its_calls(executor: Executor, peer: Peer) -> None:
    results = executor.map(divmod, range(3), [1] * 3, chunksize=3, timeout=0)
    eventually(lambda: submitted(peer))
    with pytest.raises(TimeoutError):
        next(results)
    executor.shutdown()
    assert cancelled(peer) == {"left.1.1/cancel"}


def test_a_map_whose_items_end_early_cancels_its_calls(executor: Executor, peer: Peer) -> None:
    def items() -> Iterator[int]:
        yield 1
        eventually(lambda: submitted(peer))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executor.map(abs, items())
    executor.shutdown()
    assert cancelled(peer) == {"left.1.1/cancel"}


def test_a_module_that_takes_no_cancels_is_not_waited_for_without_end(
    peer: Peer, executor: Executor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dispatch, "CANCELLING_SECONDS", 0.05)
    future = executor.submit(int)
    eventually(lambda: submitted(peer))
    del peer.by_path["/cancel"]
    peer.answers[:] = [None]
    with caplog.at_level(logging.WARNING, "messiahs.client"):
        assert future.cancel()
        executor.shutdown()
    assert "may run on" in caplog.text
    peer.answers[:] = [(200, {"id": "left.1"})]


def test_none_takes_an_option_of_the_executor_back(executor: Executor, peer: Peer) -> None:
    peer.answers.insert(0, (200, {"id": "left.0"}))
    stated = executor.with_options(mem="1KiB", cpus=2)
    stated.submit(int)
    eventually(lambda: len(submitted(peer)) == 1)
    stated.with_options(mem=None).submit(int)
    eventually(lambda: len(submitted(peer)) == 2)
    needs = [body["tdv"] for method, path, body in peer.asked if (method, path) == ("POST", "/v1/tasks")]
    assert needs == [{"mem": 1024, "cpus": 2}, {"cpus": 2}]


def test_the_members_of_an_array_that_nobody_wants_are_cancelled_at_once(array: Calls) -> None:
    for call in array.waiting_and_sent():
        call.future.cancel()
    assert (array.next_unneeded(), array.next_unneeded()) == ("left.7", None)


def test_members_beside_one_that_is_wanted_are_cancelled_alone(array: Calls) -> None:
    for call in array.waiting_and_sent()[1:]:
        call.future.cancel()
    assert [array.next_unneeded() for _ in range(3)] == ["left.7.2", "left.7.3", None]
