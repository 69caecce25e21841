"""Waiting for the ends of tasks, at modules of this release and of an earlier one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import messiahs
from messiahs.client.completion import EndingsFeed, ended_tasks, unknown_error, unknown_in
from messiahs.client.module import ModuleClient
from messiahs.errors import UnknownTaskError
from tests.unit.client.local_api_peer import Peer, StartPeer
from tests.waiting import eventually

_RUNS = {"id": "left.1", "state": "executing"}
_ENDED = {"id": "left.1", "state": "finished"}


@pytest.fixture
def module(start_peer: StartPeer) -> Iterator[ModuleClient]:
    """Return a client of a module of an earlier release: it has no feed of endings."""
    peer = start_peer((404, "404: Not Found"))
    peer.by_path = {"/v1/tasks?": {"tasks": [_ENDED], "unknown": []}}
    with ModuleClient(peer.socket_path, patience=0.0) as made:
        yield made


def endings(peer: Peer) -> list[str]:
    return [path for _, path, _ in peer.asked if path.startswith("/v1/endings")]


def test_at_a_module_without_a_feed_any_task_may_have_ended(module: ModuleClient) -> None:
    with closing(EndingsFeed(module)) as feed:
        assert [feed.next(0), feed.next(0)] == [([], True), ([], True)]


def test_tasks_are_waited_for_at_a_module_without_a_feed(module: ModuleClient) -> None:
    assert list(ended_tasks([(module, ["left.1"])])) == [_ENDED]


def test_a_feed_continues_where_the_last_answer_ended(start_peer: StartPeer) -> None:
    peer = start_peer(
        (200, {"ids": [], "gap": False, "after": "a-1"}), (200, {"ids": ["left.1"], "gap": False, "after": "a-2"})
    )
    with ModuleClient(peer.socket_path, patience=0.0) as module, closing(EndingsFeed(module)) as feed:
        # What ended before the first call is not in the feed.
        assert feed.next(0) == ([], True)
        assert feed.next(0) == (["left.1"], False)
    assert ["after=a-1" in path for path in endings(peer)] == [False, True]


def test_only_tasks_that_a_feed_names_are_asked_for_again(start_peer: StartPeer) -> None:
    peer = start_peer(
        (200, {"ids": [], "gap": True, "after": "1"}),
        (200, {"tasks": [_RUNS, {"id": "left.2", "state": "executing"}], "unknown": []}),
        (200, {"ids": ["left.1", "left.9"], "gap": False, "after": "2"}),
        (200, {"tasks": [_ENDED], "unknown": []}),
    )
    with ModuleClient(peer.socket_path, patience=0.0) as module:
        assert next(ended_tasks([(module, ["left.1", "left.2"])])) == _ENDED
    asked = [path for _, path, _ in peer.asked if path.startswith("/v1/tasks?")]
    assert asked == ["/v1/tasks?id=left.1&id=left.2", "/v1/tasks?id=left.1"]


def test_an_awaited_wait_that_is_cancelled_ends_its_thread_although_the_module_is_away(
    start_peer: StartPeer, tmp_path: Path
) -> None:
    peer = start_peer(None, state=tmp_path)
    peer.by_path = {"/v1/endings": {"ids": [], "gap": True, "after": "1"}}
    known = set(threading.enumerate())

    async def cancelled() -> None:
        async with messiahs.AsyncClient("left", tmp_path, patience=None) as client:
            waiting = asyncio.create_task(client.wait("left.1"))
            await asyncio.to_thread(eventually, lambda: any("/v1/tasks?" in path for _, path, _ in peer.asked))
            waiting.cancel()
            await asyncio.wait([waiting])

    asyncio.run(cancelled())
    eventually(lambda: not [one for one in set(threading.enumerate()) - known if one.name == "messiahs-stream"])


def test_an_error_names_a_task_and_counts_the_others() -> None:
    assert isinstance(unknown_error(unknown_in({"unknown": ["left.1"]})), UnknownTaskError)
    assert [str(unknown_error(unknown_in({"unknown": ["a", "b", "c"][:count]}))) for count in (1, 2, 3)] == [
        "no task a is known here",
        "no task a is known here; 1 more is not known either",
        "no task a is known here; 2 more are not known either",
    ]


def test_no_ids_are_not_the_outputs_of_all_tasks(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer((200, {"tasks": [_ENDED], "unknown": []}), state=tmp_path)
    with messiahs.connect("left", tmp_path) as client, pytest.raises(TypeError, match="at least one id"):
        client.fetch(*[])
    assert not peer.asked
