"""From options to a submission, whose inputs the module has then."""

import hashlib
import platform
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.client.inputs import Source
from messiahs.client.members import Members
from messiahs.client.module import ModuleClient
from messiahs.client.preparing import prepared_submission
from messiahs.client.programs import arch_of
from messiahs.errors import ClientError
from tests.unit.client.local_api_peer import Peer, StartPeer


def elf(*, machine: int, order: str = "<", bits: int = 2) -> bytes:
    """Return the beginning of a program for a machine."""
    return b"\x7fELF" + bytes([bits, "<>".index(order) + 1]) + bytes(10) + struct.pack(f"{order}HH", 2, machine)


SEVEN = hashlib.sha256(b"seven").hexdigest()


@pytest.fixture
def peer(start_peer: StartPeer) -> Peer:
    return start_peer((200, {}))


@pytest.fixture
def module(peer: Peer) -> Iterator[ModuleClient]:
    with ModuleClient(peer.socket_path, patience=0.0) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "7.txt"
    path.write_bytes(b"seven")
    return path


def test_what_is_not_stated_is_not_in_the_description(module: ModuleClient, peer: Peer) -> None:
    made = prepared_submission(module, ["true"], options={})
    assert (made.argv, made.tdv, made.requirement, made.members, made.waits) == (("true",), {}, "", 0, True)
    assert (made.deadline_seconds, made.retries, made.after) == (None, 0, ())
    assert made.key
    assert made.key != prepared_submission(module, ["true"], options={}).key
    assert not peer.asked


@pytest.mark.parametrize(
    ("command", "stated", "requirement"),
    [
        ("./solver", "", '$arch eq "aarch64"'),
        ("bin/../solver", "$nproc > 1", '($nproc > 1) and $arch eq "aarch64"'),
        ("./solver", '$arch like_ "a*"', '$arch like_ "a*"'),
        ("./solver", '$arch ne "x"', '$arch ne "x"'),
        ("./solver", "$architect = 1", '($architect = 1) and $arch eq "aarch64"'),
        ("solver", "", ""),
        ("/bin/solver", "", ""),
        ("./data", "", ""),
        ("./other", "", ""),
    ],
)
def test_a_program_that_a_task_brings_goes_where_it_runs_unless_the_user_says_otherwise(
    module: ModuleClient, tmp_path: Path, command: str, stated: str, requirement: str
) -> None:
    solver, data = tmp_path / "solver", tmp_path / "data"
    for file in (solver, data):
        file.write_bytes(elf(machine=183))
    solver.chmod(0o755)
    made = prepared_submission(
        module, [command], options={"inputs": [str(solver), str(data)], **({"require": stated} if stated else {})}
    )
    assert made.requirement == requirement


@pytest.mark.parametrize(
    ("header", "arch"),
    [
        (elf(machine=62), "x86_64"),
        (elf(machine=21), "ppc64le"),
        (elf(machine=21, order=">"), "ppc64"),
        (elf(machine=22, order=">"), "s390x"),
        (elf(machine=3, bits=1), ""),
        (elf(machine=60_000), ""),
        (elf(machine=62)[:19], ""),
        (b"#!/bin/sh\nexec true\n", ""),
        (b"\x7fELF\x02\x07" + bytes(20), ""),
        (b"", ""),
        (Path("/proc/self/exe").read_bytes()[:20], platform.machine()),
    ],
)
def test_the_instruction_set_of_a_program_is_in_its_header(header: bytes, arch: str) -> None:
    assert arch_of(header) == arch


def test_needs_are_in_the_description_and_things_are_demanded_as_well(module: ModuleClient) -> None:
    made = prepared_submission(
        module,
        ["true"],
        options={
            "mem": "2KiB",
            "time": 9.0,
            "priority": 3,
            "gpus": 2,
            "uses": {"licences": 1},
            "attributes": {"part": "a"},
            "require": "$free_mem >= 1",
        },
    )
    assert made.tdv == {"mem": 2_048, "est_time": 9, "priority": 3, "gpus": 2, "licences": 1, "part": "a"}
    assert made.requirement == (
        "($free_mem >= 1) and $gpus >= 2 and $free_gpus >= 0 and $licences >= 1 and $free_licences >= 0"
    )


def test_what_a_task_waits_for_is_named_with_its_condition(module: ModuleClient) -> None:
    made = prepared_submission(module, ["true"], options={"after_ok": ["a.1", "a.2"], "after": ["a.3"]})
    assert sorted(made.after) == [("a.1", "ok"), ("a.2", "ok"), ("a.3", "started")]


@pytest.mark.parametrize("kind", ["text", "path", "source"])
def test_an_input_is_named_and_at_the_module(module: ModuleClient, peer: Peer, file: Path, kind: str) -> None:
    given: dict[str, str | Path | Source] = {
        "text": f"{file}:in/here.txt",
        "path": file,
        "source": Source(path=str(file), name="in/here.txt"),
    }
    (made,) = prepared_submission(module, ["true"], options={"inputs": [given[kind]]}).inputs
    assert made.name == ("7.txt" if kind == "path" else "in/here.txt")
    assert (made.sha256, made.size_bytes) == (SEVEN, 5)
    assert peer.files == {SEVEN: b"seven"}


def test_members_have_inputs_of_their_own(module: ModuleClient, file: Path) -> None:
    (file.parent / "8.txt").write_bytes(b"eight")
    members = Members.of_items(["7", "8"])
    given = f"{file.parent}/{{}}.txt:in.txt"
    made = prepared_submission(module, ["true"], options={"inputs": [given]}, members=members)
    assert [[(one.name, one.size_bytes) for one in some] for some in made.member_inputs] == [[("in.txt", 5)]] * 2
    assert (made.inputs, made.items, made.members) == ((), ("7", "8"), 2)


def test_an_output_must_lie_in_the_working_directory_for_every_member(module: ModuleClient, peer: Peer) -> None:
    members = Members.of_items(["a", "../b"])
    assert prepared_submission(module, ["true"], options={"outputs": ["{}.csv"]}).outputs == ("{}.csv",)
    with pytest.raises(ClientError, match="leads out"):
        prepared_submission(module, ["true"], options={"outputs": ["{}.csv"]}, members=members)
    assert not peer.asked


def test_a_file_that_is_missing_is_named(module: ModuleClient, peer: Peer, tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"absent.*cannot be read"):
        prepared_submission(module, ["true"], options={"inputs": [tmp_path / "absent"]})
    assert not peer.asked


def test_a_text_is_no_command(module: ModuleClient) -> None:
    with pytest.raises(TypeError, match="list of words"):
        prepared_submission(module, "true", options={})


@pytest.mark.parametrize("place", ["../../usr", "a/../..", "./../a", "a/{}"])
def test_a_folder_to_start_in_is_not_above_the_working_folder(module: ModuleClient, peer: Peer, place: str) -> None:
    members = Members(count=2, items=("x", "../.."))
    with pytest.raises(ClientError, match=r"leads above the working folder of the task: a folder of the") as caught:
        prepared_submission(module, ["echo", "{}"], options={"cwd": place}, members=members)
    assert (caught.value.code, peer.asked) == (ClientError.USAGE, [])


@pytest.mark.parametrize("place", ["a/../b", "/usr/../..", "a..", "."])
def test_a_folder_to_start_in_may_be_any_other_one(module: ModuleClient, place: str) -> None:
    assert prepared_submission(module, ["true"], options={"cwd": place}).cwd == place


def test_an_empty_folder_to_start_in_is_refused(module: ModuleClient) -> None:
    with pytest.raises(ClientError, match="`cwd` is empty") as caught:
        prepared_submission(module, ["true"], options={"cwd": ""})
    assert caught.value.code == ClientError.USAGE


@pytest.mark.parametrize(
    ("text", "problem"), [("", "`notify` is empty"), (" ", "`notify` is empty"), ("ftp://x/y", "ftp:// is no webhook")]
)
def test_what_could_notify_nobody_is_refused(module: ModuleClient, peer: Peer, text: str, problem: str) -> None:
    with pytest.raises(ClientError, match=problem) as caught:
        prepared_submission(module, ["true"], options={"notify": text})
    assert (caught.value.code, peer.asked) == (ClientError.USAGE, [])


def test_who_asks_for_no_notification_gets_none(module: ModuleClient) -> None:
    assert prepared_submission(module, ["true"], options={"notify": None}).notify == ""
