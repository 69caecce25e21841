"""Places of the folders of attempts, and what is refused there."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import folder_name
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.linux.processes import ProcessIdentity, identity_of, is_alive, kill
from messiahs.executor.protocol.frames import Discard, Extend, FrameReader, Ping, ToStarter, encode_frames
from messiahs.executor.protocol.layout import (
    Account,
    WorkFolders,
    can_traverse,
    find_work_folders,
    prepare_attempts_root,
    prepare_files_root,
    task_account,
)
from messiahs.executor.starter.spawn import find_program

OWN = Account(name="own", uid=os.geteuid(), gid=os.getegid())
OTHER = Account(name="other", uid=54321, gid=54321)


def attempt(system: str) -> AttemptId:
    return AttemptId(TaskId(SystemId(system), Epoch(255), 3, 4), 5)


def test_a_folder_is_named_as_people_would() -> None:
    assert folder_name(attempt("cs.purdue")) == "cs.purdue.ff.3.4.5"


@pytest.mark.parametrize("system", ["../../etc", "a/b", "", ".", "x" * 300, "a\0b", "A\n", "~"])
def test_no_name_of_another_site_leads_elsewhere(system: str) -> None:
    name = folder_name(attempt(system))
    assert name.startswith("~")
    assert not set("/\0\n") & set(name)
    assert len(name) < 100


def test_folders_of_different_attempts_have_different_names() -> None:
    names = {folder_name(attempt(system)) for system in ("a", "a.ff", "../a", "../b")}
    assert len(names) == 4


def test_a_folder_that_the_account_cannot_reach_is_made_elsewhere(tmp_path: Path) -> None:
    closed, fallback = tmp_path / "closed", tmp_path / "fallback"
    closed.mkdir(mode=0o700)
    fallback.mkdir()
    assert can_traverse(closed, OWN)
    assert not can_traverse(closed, OTHER)
    assert prepare_attempts_root(closed, OWN, fallback=fallback) == closed / "tasks"
    root = prepare_attempts_root(closed, OTHER, fallback=fallback)
    assert root.parent == fallback
    assert (root.stat().st_uid, root.stat().st_mode & 0o777) == (OWN.uid, 0o711)
    assert prepare_attempts_root(closed, OTHER, fallback=fallback) == root
    assert prepare_files_root(closed, OTHER, fallback=fallback) != root


def test_the_folders_of_a_module_are_found_where_they_are_made(tmp_path: Path) -> None:
    module, fallback = tmp_path / "module", tmp_path / "fallback"
    for folder in (module, fallback):
        folder.mkdir(mode=0o700)
    uids = (OTHER.uid, OTHER.uid)
    assert find_work_folders(module, None, fallback=fallback) == WorkFolders(state=module)
    will_be = fallback if os.geteuid() == 0 else module
    at_first = WorkFolders(state=module, files=will_be, tasks=will_be)
    assert find_work_folders(module, uids, fallback=fallback) == at_first
    account = task_account(uids)
    files, tasks = (make(module, account, fallback=fallback) for make in (prepare_files_root, prepare_attempts_root))
    made = WorkFolders(state=module, files=files, tasks=tasks)
    assert find_work_folders(module, uids, fallback=fallback) == made


def test_root_finds_the_folders_of_the_module_of_another_account(public: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a folder of another account")
    public.chmod(0o711)
    module = public / "module"
    for folder in (module, module / "files", module / "tasks"):
        folder.mkdir(mode=0o711)
        os.chown(folder, OTHER.uid, OTHER.gid)
    made = WorkFolders(state=module, files=module / "files", tasks=module / "tasks")
    assert find_work_folders(module, (1, 1), fallback=public) == made


@pytest.mark.parametrize("prepare", [prepare_attempts_root, prepare_files_root])
def test_a_folder_made_elsewhere_names_its_module_until_that_is_removed(
    tmp_path: Path, prepare: Callable[..., Path]
) -> None:
    closed, fallback = tmp_path / "closed", tmp_path / "fallback"
    closed.mkdir(mode=0o700)
    fallback.mkdir()
    owner = prepare(closed, OTHER, fallback=fallback) / "module"
    assert owner.readlink() == closed
    # A folder of an earlier release names its module from the next start on.
    owner.unlink()
    prepare(closed, OTHER, fallback=fallback)
    assert prepare(closed, OTHER, fallback=fallback) / "module" == owner
    assert owner.exists()
    closed.rmdir()
    assert (owner.is_symlink(), owner.exists()) == (True, False)
    assert not (prepare(tmp_path, OWN, fallback=fallback) / "module").is_symlink()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_stands_in_the_place_of_a_folder_is_refused(tmp_path: Path, kind: str) -> None:
    _plant(tmp_path / "tasks", kind)
    with pytest.raises(ExecutorError, match="remove it"):
        prepare_attempts_root(tmp_path, OWN, fallback=tmp_path)


@pytest.mark.parametrize("mode", [0o777, 0])
def test_a_folder_of_ours_that_a_task_opened_or_closed_is_repaired(tmp_path: Path, mode: int) -> None:
    root = prepare_attempts_root(tmp_path, OWN, fallback=tmp_path)
    root.chmod(mode)
    assert prepare_attempts_root(tmp_path, OWN, fallback=tmp_path) == root
    assert root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("prepare", [prepare_attempts_root, prepare_files_root])
@pytest.mark.parametrize("kind", ["link", "file", "open to others", "another account's"])
def test_whoever_takes_our_name_among_others_first_gets_nothing_of_ours(
    tmp_path: Path, kind: str, prepare: Callable[..., Path]
) -> None:
    if kind == "another account's" and os.geteuid() != 0:
        pytest.skip("needs root to make a folder of another account")
    closed, fallback = tmp_path / "closed", tmp_path / "fallback"
    closed.mkdir(mode=0o700)
    fallback.mkdir()
    expected = prepare(closed, OTHER, fallback=fallback)
    shutil.rmtree(expected)
    _plant(expected, kind)
    root = prepare(closed, OTHER, fallback=fallback)
    assert root != expected
    assert (root.stat().st_uid, root.stat().st_mode & 0o777) == (OWN.uid, 0o711)
    assert prepare(closed, OTHER, fallback=fallback) == root


def _plant(root: Path, kind: str) -> None:
    """Create what another account could create."""
    match kind:
        case "link":
            target = root.with_name("target")
            target.mkdir(mode=0o700)
            root.symlink_to(target)
        case "file":
            root.touch()
        case "open to others":
            root.mkdir()
            root.chmod(0o777)
        case _:
            root.mkdir(mode=0o700)
            os.chown(root, OTHER.uid, OTHER.gid)


def test_frames_survive_any_cut_of_the_stream() -> None:
    messages: list[ToStarter] = [Ping(), Discard(attempt=attempt("x")), *(Ping() for _ in range(300))]
    data = encode_frames(msgspec.msgpack.Encoder(), messages)
    decoder = msgspec.msgpack.Decoder(list[ToStarter])
    for step in (1, 7, len(data)):
        reader = FrameReader()
        pieces = [data[first : first + step] for first in range(0, len(data), step)]
        assert [one for piece in pieces for body in reader.feed(piece) for one in decoder.decode(body)] == messages


def test_an_invalid_frame_is_an_error() -> None:
    with pytest.raises(msgspec.MsgspecError):
        msgspec.msgpack.Decoder(list[Extend]).decode(b"\xc1")


def test_a_program_is_found_as_a_shell_would(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (first / "tool").touch(mode=0o644)
    (second / "tool").touch(mode=0o755)
    (first / "folder").mkdir()
    assert find_program("tool", f"{first}:{second}") == f"{second}/tool"
    assert find_program("./tool", "") == "./tool"
    for program, path, code in (("tool", str(first), 126), ("folder", str(first), 127), ("", str(second), 127)):
        found = find_program(program, path)
        assert isinstance(found, NotSpawned)
        assert (found.cause, found.exit_code) == ("not_found", code)


def test_a_process_of_another_start_time_is_never_killed() -> None:
    own = identity_of(os.getpid())
    assert own is not None
    assert is_alive(own)
    earlier = ProcessIdentity(pid=own.pid, started=own.started - 1)
    assert not is_alive(earlier)
    kill(earlier)
    assert is_alive(own)
