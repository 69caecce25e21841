"""The client, against a real HTTP server on a Unix socket."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from messiahs.client import InputFile, ModuleClient, Submission
from messiahs.errors import ClientError, ModuleUnreachableError
from tests.unit.client.local_api_peer import StartPeer

Connect = Callable[[Path], ModuleClient]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients that are closed when the test ends."""
    with ExitStack() as clients:
        yield lambda path: clients.enter_context(ModuleClient(path))


def test_a_submit_contains_every_option(start_peer: StartPeer) -> None:
    peer = start_peer((200, {"id": "left.1"}))
    submission = Submission(argv=("echo", "hi"), env={"A": "1"}, tdv={"mem": 5}, members=3, waits=False, retries=2)
    with ModuleClient(peer.socket_path) as module:
        assert module.submit(submission) == "left.1"
    method, path, body = peer.asked[0]
    assert (method, path) == ("POST", "/v1/tasks")
    assert body == {
        "key": submission.key,
        "argv": ["echo", "hi"],
        "env": {"A": "1"},
        "tdv": {"mem": 5},
        "requirement": "",
        "members": 3,
        "name": "",
        "retries": 2,
        "waits": False,
        "deadline_s": None,
    }


def test_two_submissions_of_the_same_command_have_different_keys() -> None:
    assert Submission(argv=("a",)).key != Submission(argv=("a",)).key


def test_a_submit_that_was_cut_off_is_repeated_with_the_same_key(start_peer: StartPeer) -> None:
    peer = start_peer(None, (503, {"error": "starting"}), (200, {"id": "left.7"}))
    with ModuleClient(peer.socket_path) as module:
        assert module.submit(Submission(argv=("true",))) == "left.7"
    keys = {body["key"] for _, _, body in peer.asked}
    assert (len(peer.asked), len(keys)) == (3, 1)


def test_a_connection_that_the_module_closed_is_opened_again(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"name": "left"}), None, (200, {"name": "left again"}))
    with ModuleClient(peer.socket_path) as module:
        assert module.module() == {"name": "left"}
        assert module.module() == {"name": "left again"}


def test_a_module_that_comes_up_a_little_later_is_found(
    start_peer: StartPeer, connect: Connect, tmp_path: Path
) -> None:
    answers = []
    path = tmp_path / "left.sock"
    asking = threading.Thread(target=lambda: answers.append(connect(path).module()))
    asking.start()
    start_peer((200, {"name": "left"}))
    asking.join(10)
    assert answers == [{"name": "left"}]


def test_a_module_that_does_not_run_is_an_error_that_says_how_to_start_it(tmp_path: Path) -> None:
    with pytest.raises(ModuleUnreachableError, match=r"`left` is not running.*messiahs up") as caught:
        ModuleClient(tmp_path / "left.sock", patience=0).module()
    assert caught.value.code == 1


def test_a_module_that_refuses_for_long_is_not_said_to_be_down(start_peer: StartPeer) -> None:
    peer = start_peer((503, {"error": "you have too many connections"}))
    text = r"`left` runs and does not serve the request \(you have too many connections\)"
    with ModuleClient(peer.socket_path, patience=0) as module, pytest.raises(ModuleUnreachableError, match=text):
        module.module()


@pytest.mark.parametrize(("status", "code"), [(400, 2), (404, 1), (507, 1)])
def test_a_refusal_is_an_error_with_the_words_of_the_module(
    start_peer: StartPeer, connect: Connect, status: int, code: int
) -> None:
    peer = start_peer((status, {"error": "no such thing"}))
    with pytest.raises(ClientError, match="no such thing") as caught:
        connect(peer.socket_path).vectors()
    assert caught.value.code == code


def test_ids_are_asked_for_in_one_question(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"tasks": [], "unknown": ["left.2"]}))
    answer = connect(peer.socket_path).tasks("left.1", "left.2", members=True)
    assert answer["unknown"] == ["left.2"]
    assert peer.asked[0][1] == "/v1/tasks?id=left.1&id=left.2&members=1"


def test_waiting_asks_again_until_the_state_is_final(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"state": "executing"}), None, (200, {"state": "finished", "exit_code": 3}))
    assert connect(peer.socket_path).wait("left.1")["exit_code"] == 3
    assert {path for _, path, _ in peer.asked} == {"/v1/tasks/left.1/wait?timeout=10"}


def test_waiting_with_a_timeout_gives_what_is_known_then(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"state": "executing"}))
    assert connect(peer.socket_path).wait("left.1", timeout=0.5) == {"state": "executing"}


def test_an_array_is_waited_for_until_every_member_has_ended(start_peer: StartPeer, connect: Connect) -> None:
    running = {"id": "left.1", "members": 2, "counts": {"finished": 1, "running": 1}, "exit_codes": {}}
    ended = {"id": "left.1", "members": 2, "counts": {"finished": 1, "aborted": 1}, "exit_codes": {}}
    peer = start_peer((200, running), (200, ended))
    assert connect(peer.socket_path).wait("left.1") == ended


def test_a_cancel_names_the_task(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"id": "left.1"}))
    connect(peer.socket_path).cancel("left.1")
    assert peer.asked[0][:2] == ("POST", "/v1/tasks/left.1/cancel")


def test_logs_are_taken_up_where_they_were_cut(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {}))
    peer.pieces = [[b"one ", b"two "], [b"three"]]
    read = b"".join(connect(peer.socket_path).logs("left.1", stream="stderr", follow=True))
    assert read == b"one two three"
    assert [path.partition("?")[2] for _, path, _ in peer.asked] == [
        "stream=stderr&offset=0&follow=1",
        "stream=stderr&offset=8&follow=1",
    ]


def test_files_and_items_are_part_of_a_submit(start_peer: StartPeer) -> None:
    peer = start_peer((200, {"id": "left.1"}))
    one = InputFile(name="a", sha256="00", size_bytes=1, is_executable=True)
    submission = Submission(
        argv=("cat",), inputs=(one,), outputs=("b",), items=("x", "y"), members=2, member_inputs=((one,), ())
    )
    with ModuleClient(peer.socket_path) as module:
        module.submit(submission)
    described = {"name": "a", "sha256": "00", "size": 1, "executable": True}
    body = peer.asked[0][2]
    assert (body["inputs"], body["outputs"], body["items"]) == ([described], ["b"], ["x", "y"])
    assert body["member_inputs"] == [[described], []]


def test_a_retry_gives_how_many_run_again(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"id": "left.1", "retried": 4}))
    assert connect(peer.socket_path).retry("left.1", {}) == 4
    assert peer.asked[0][:2] == ("POST", "/v1/tasks/left.1/retry")


def test_recording_is_asked_for_with_a_size_and_ended_without(start_peer: StartPeer, connect: Connect) -> None:
    peer = start_peer((200, {"recording": True, "folder": "/f"}))
    module = connect(peer.socket_path)
    assert module.record(1 << 20) == {"recording": True, "folder": "/f"}
    module.record(None)
    assert [(method, path, body) for method, path, body in peer.asked] == [
        ("POST", "/v1/trace", {"size_bytes": 1 << 20}),
        ("POST", "/v1/trace", {"size_bytes": None}),
    ]
