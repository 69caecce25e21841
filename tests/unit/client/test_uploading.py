"""Uploading files to the module, against a real HTTP server."""

import hashlib
from pathlib import Path

import pytest

from messiahs.client import ModuleClient, Source, prepare_inputs, upload
from messiahs.client.inputs import PreparedInputs
from messiahs.errors import ClientError
from tests.unit.client.local_api_peer import Peer, StartPeer

LARGE = bytes(range(256)) * 12_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, body in {"large": LARGE, "small": b"s", "same": b"s", "empty": b""}.items():
        (folder / name).write_bytes(body)
    return folder


@pytest.fixture
def prepared(folder: Path) -> PreparedInputs:
    return prepare_inputs([Source(path=str(folder))])


def puts(peer: Peer) -> int:
    return sum(method == "PUT" for method, _, _ in peer.asked)


def test_each_content_is_sent_once(start_peer: StartPeer, prepared: PreparedInputs) -> None:
    peer = start_peer()
    with ModuleClient(peer.socket_path) as module:
        assert upload(module, prepared.contents) == len(LARGE) + 1
        assert sorted(map(len, peer.files.values())) == [0, 1, len(LARGE)]
        assert upload(module, prepared.contents) == 0
    assert puts(peer) == 2


def test_small_files_travel_together_in_requests_of_a_bounded_size(start_peer: StartPeer, tmp_path: Path) -> None:
    peer, folder = start_peer(), tmp_path / "many"
    folder.mkdir()
    for number in range(2_100):
        (folder / str(number)).write_text(str(number))
    for number in range(80):
        (folder / f"larger{number}").write_bytes(bytes([number]) * 65_536)
    items = sorted(path.name for path in folder.iterdir())
    prepared = prepare_inputs([Source(path=f"{folder}/{{}}")], items=items)
    with ModuleClient(peer.socket_path) as module:
        upload(module, prepared.contents)
    assert len(peer.files) == 2_180
    assert set(peer.files) == set(prepared.contents)
    assert puts(peer) <= 4


def test_a_small_file_that_changed_since_it_was_hashed_is_an_error(
    start_peer: StartPeer, folder: Path, prepared: PreparedInputs
) -> None:
    peer = start_peer()
    same = prepared.contents[hashlib.sha256(b"s").hexdigest()].path
    Path(same).write_text("t")
    with ModuleClient(peer.socket_path) as module, pytest.raises(ClientError, match=f"`{same}` changed while"):
        upload(module, prepared.contents)


def test_only_what_is_missing_is_sent(start_peer: StartPeer, prepared: PreparedInputs) -> None:
    peer = start_peer()
    known = next(sha256 for sha256, content in prepared.contents.items() if content.size_bytes == len(LARGE))
    peer.files[known] = LARGE
    with ModuleClient(peer.socket_path) as module:
        assert upload(module, prepared.contents) == 1
    assert puts(peer) == 1


def test_a_file_that_was_cut_off_is_sent_again(start_peer: StartPeer, prepared: PreparedInputs) -> None:
    peer = start_peer()
    peer.cuts = 2
    with ModuleClient(peer.socket_path) as module:
        upload(module, prepared.contents)
    assert LARGE in peer.files.values()
    assert puts(peer) == 4


@pytest.mark.parametrize("body", [b"other", LARGE[:-1], LARGE[:-1] + b"x", b""])
def test_a_file_that_changed_since_it_was_hashed_is_an_error(
    start_peer: StartPeer, folder: Path, prepared: PreparedInputs, body: bytes
) -> None:
    peer = start_peer()
    (folder / "large").write_bytes(body)
    with ModuleClient(peer.socket_path) as module, pytest.raises(ClientError, match="large` changed while"):
        upload(module, prepared.contents)
    assert LARGE not in peer.files.values()


def test_a_file_that_vanished_since_it_was_hashed_is_an_error(
    start_peer: StartPeer, folder: Path, prepared: PreparedInputs
) -> None:
    peer = start_peer()
    (folder / "large").unlink()
    with ModuleClient(peer.socket_path) as module, pytest.raises(ClientError, match="large` cannot be read: No such"):
        upload(module, prepared.contents)


def test_hashes_are_asked_for_in_questions_of_a_bounded_size(
    start_peer: StartPeer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("messiahs.client.uploading.QUESTION_LIMIT", 2)
    peer = start_peer()
    with ModuleClient(peer.socket_path) as module:
        upload(module, prepare_inputs([Source(path=str(folder))]).contents)
    asked = [body["sha256"] for _, path, body in peer.asked if path == "/v1/files/missing"]
    assert [len(hashes) for hashes in asked if isinstance(hashes, list)] == [2, 1]


def test_progress_goes_from_nothing_to_everything(start_peer: StartPeer, folder: Path) -> None:
    peer = start_peer()
    reported: list[tuple[str, int, int]] = []

    def on_progress(what: str, done_bytes: int, total_bytes: int, /) -> None:
        reported.append((what, done_bytes, total_bytes))

    prepared = prepare_inputs([Source(path=str(folder))], on_progress=on_progress)
    with ModuleClient(peer.socket_path) as module:
        upload(module, prepared.contents, on_progress=on_progress)
    last = {what: (done, total) for what, done, total in reported}
    assert last == {"reading": (len(LARGE) + 2, len(LARGE) + 2), "uploading": (len(LARGE) + 1, len(LARGE) + 1)}
    uploaded = [done for what, done, _ in reported if what == "uploading"]
    assert uploaded == sorted(uploaded)


def test_a_module_that_takes_no_files_is_heard_although_it_hangs_up(
    start_peer: StartPeer, prepared: PreparedInputs
) -> None:
    peer = start_peer()
    peer.refuses_files = "no_space: the disk is full"
    with ModuleClient(peer.socket_path) as module, pytest.raises(ClientError, match="no_space: the disk is full"):
        upload(module, prepared.contents)
    assert puts(peer) == 1
