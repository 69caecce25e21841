"""Fetching outputs, against a real HTTP server."""

import stat
from pathlib import Path

import pytest

from messiahs.client import ModuleClient, OutputFile, fetch, outputs_of
from messiahs.client.fetching import check_places
from messiahs.errors import ClientError
from tests.unit.client.local_api_peer import Peer, StartPeer

LARGE = bytes(range(256)) * 12_000


def fetched(peer: Peer, into: Path, *, task: str = "left.1") -> list[str]:
    with ModuleClient(peer.socket_path) as module:
        return [output.place for output in fetch(module, outputs_of(module, task), into=into)]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_outputs_are_written_under_their_names(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": LARGE, "folder/a b%?#.txt": b"x", "empty": b""}}
    assert fetched(peer, tmp_path / "new" / "into") == ["out", "folder/a b%?#.txt", "empty"]
    assert files_in(tmp_path / "new" / "into") == peer.outputs["left.1"]


def test_each_output_is_asked_for_once(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {name: name.encode() for name in "abc"}}
    fetched(peer, tmp_path / "into")
    assert [path.rpartition("/")[2] for _, path, _ in peer.asked if "offset" in path] == [
        f"{name}?offset=0" for name in "abc"
    ]


def test_those_of_a_member_go_to_the_folder_of_its_number(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1.3": {"out": b"x"}}
    assert fetched(peer, tmp_path / "into", task="left.1.3") == ["3/out"]
    assert files_in(tmp_path / "into") == {"3/out": b"x"}


def test_an_output_that_was_cut_is_taken_up_where_it_was_cut(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": LARGE}}
    peer.cuts = 2
    fetched(peer, tmp_path / "into")
    assert files_in(tmp_path / "into") == {"out": LARGE}
    offsets = [path.partition("offset=")[2] for _, path, _ in peer.asked if "offset" in path]
    assert offsets == ["0", str(len(LARGE) // 2), str(len(LARGE) * 3 // 4)]


def test_an_output_that_never_comes_whole_leaves_nothing_behind(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": b""}}
    output = OutputFile(task="left.1", name="out", place="out", size_bytes=5, is_executable=False)
    with (
        ModuleClient(peer.socket_path, patience=0.1) as module,
        pytest.raises(ClientError, match="5 bytes are missing"),
    ):
        list(fetch(module, [output], into=tmp_path / "into"))
    assert files_in(tmp_path / "into") == {}


def test_the_executable_bit_is_kept_and_the_users_mask_obeyed(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"run.sh": b"x", "data": b"x"}}
    fetched(peer, tmp_path / "into")
    modes = {name: stat.S_IMODE((tmp_path / "into" / name).stat().st_mode) for name in ("run.sh", "data")}
    (tmp_path / "probe").touch(mode=0o777)
    assert modes["run.sh"] == stat.S_IMODE((tmp_path / "probe").stat().st_mode)
    assert modes["data"] == modes["run.sh"] & ~0o111


def test_what_was_there_is_replaced(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": b"new", "link": b"new"}}
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "out").write_text("old")
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "into" / "link").symlink_to(tmp_path / "precious")
    fetched(peer, tmp_path / "into")
    assert files_in(tmp_path / "into") == {"out": b"new", "link": b"new"}
    assert (tmp_path / "precious").read_text() == "mine"


def test_links_and_empty_folders_are_made_and_replaced(start_peer: StartPeer, tmp_path: Path) -> None:
    peer, into = start_peer(), tmp_path / "into"
    peer.outputs = {"left.1": {"out/link": b"", "out/deep/none": b"", "out/plain": b"x"}}
    peer.kinds = {"out/link": {"link": "plain"}, "out/deep/none": {"folder": True}}
    for _ in range(2):
        assert sorted(fetched(peer, into)) == ["out/deep/none", "out/link", "out/plain"]
        assert str((into / "out" / "link").readlink()) == "plain"
        assert (into / "out" / "link").read_bytes() == b"x"
        assert list((into / "out" / "deep" / "none").iterdir()) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../../x", "a/../../../x", "a/..", "a\x1b[2J"])
def test_a_link_out_of_the_folder_is_refused_and_nothing_is_written(
    start_peer: StartPeer, tmp_path: Path, target: str
) -> None:
    peer = start_peer()
    peer.outputs, peer.kinds = {"left.1": {"plain": b"x", "link": b""}}, {"link": {"link": target}}
    with pytest.raises(ClientError, match=r"`link` is a link to `.*`, out of the task's working directory"):
        fetched(peer, tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_nothing_is_written_through_a_link_that_came_with_it(start_peer: StartPeer, tmp_path: Path) -> None:
    peer, into = start_peer(), tmp_path / "into"
    (into / "own").mkdir(parents=True)
    peer.outputs, peer.kinds = {"left.1": {"out": b"", "out/x": b"x"}}, {"out": {"link": "own"}}
    peer.declared = ["out"]
    with pytest.raises(ClientError, match="cannot be written"):
        fetched(peer, into)
    assert files_in(into / "own") == {}


def test_what_a_pattern_does_not_match_is_refused(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.declared = ["out/*.csv"]
    peer.outputs = {"left.1": {"out/a.csv": b"x"}}
    assert fetched(peer, tmp_path / "into") == ["out/a.csv"]
    for name in ("out/b.txt", "c.csv", "out/deep/d.csv"):
        peer.outputs = {"left.1": {name: b"x"}}
        with pytest.raises(ClientError, match="was not declared"):
            fetched(peer, tmp_path / "into")


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x", "a//x", ".", "a\0b", "a\x1b[2Jb"])
def test_a_name_that_leads_outside_is_refused(start_peer: StartPeer, tmp_path: Path, name: str) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {name: b"x"}}
    with pytest.raises(ClientError, match="cannot be the name of a task's file"):
        fetched(peer, tmp_path / "into")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", [".bashrc", ".ssh/authorized_keys", "out.txt.sh", "folder.d/x", "o"])
def test_what_the_task_did_not_declare_is_refused_and_nothing_is_written(
    start_peer: StartPeer, tmp_path: Path, name: str
) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out.txt": b"x", "folder/deep/x": b"x", name: b"x"}}
    peer.declared = ["out.txt", "folder"]
    with pytest.raises(ClientError, match="was not declared"):
        fetched(peer, tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_a_caller_that_knows_the_declaration_relies_on_no_other(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {".bashrc": b"x"}}
    with ModuleClient(peer.socket_path) as module, pytest.raises(ClientError, match="was not declared"):
        outputs_of(module, "left.1", declared=["out.txt"])


def test_an_output_of_zeros_is_written_as_a_hole(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": b"x" + bytes(16 << 20)}}
    fetched(peer, tmp_path / "into")
    assert files_in(tmp_path / "into") == peer.outputs["left.1"]
    assert (tmp_path / "into" / "out").stat().st_blocks * 512 < 8 << 20


def test_nothing_is_written_through_a_link_to_a_folder(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"sub/x": b"x"}}
    (tmp_path / "into").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "into" / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(ClientError, match="nothing is written outside"):
        fetched(peer, tmp_path / "into")
    assert files_in(tmp_path / "outside") == {}


def test_a_folder_in_the_way_is_named(start_peer: StartPeer, tmp_path: Path) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": b"x"}}
    (tmp_path / "into" / "out").mkdir(parents=True)
    with pytest.raises(ClientError, match="cannot be written: Is a directory"):
        fetched(peer, tmp_path / "into")
    assert files_in(tmp_path / "into") == {}


def test_files_of_two_tasks_in_one_place_are_an_error_that_names_both() -> None:
    outputs = [
        OutputFile(task=task, name="out", place="out", size_bytes=1, is_executable=False) for task in ("f.1", "f.2")
    ]
    check_places(outputs[:1])
    with pytest.raises(ClientError, match=r"f.1 and f.2 both left a file `out`"):
        check_places(outputs)


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_what_is_no_folder_is_named(start_peer: StartPeer, tmp_path: Path, below: str) -> None:
    peer = start_peer()
    peer.outputs = {"left.1": {"out": b"x"}}
    (tmp_path / "file").write_bytes(b"here")
    with pytest.raises(ClientError, match=f"^`{tmp_path}/file` is not a folder: nothing was written$"):
        fetched(peer, tmp_path / "file" / below)
    assert files_in(tmp_path) == {"file": b"here"}
