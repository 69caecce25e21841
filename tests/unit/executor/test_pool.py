"""Folders of attempts: which are reused, and which are repaired where tasks share the daemon's account."""

import fcntl
import os
import resource
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from messiahs.executor.starter import small_folders
from messiahs.executor.starter.pool import Pool, Taken
from messiahs.executor.starter.pool_owner import Owner
from tests.unit.executor.apart import as_ordinary_user, in_own_process

pytestmark = pytest.mark.processes

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_NO_DUMP = 0x40
_ACCOUNT = 2_100_000_000
_AGE_NS = 100_000_000
"""How much older than they are the pool takes its folders to be: enough to use them again."""


NAMES = ("work", "stdout", "stderr")


def test_nothing_of_an_attempt_that_may_have_handed_it_out_is_given_to_another_one(pool: Pool) -> None:
    first = pool.take("first")
    held = [os.open(f"{first.folder}/{name}", os.O_RDONLY) for name in NAMES]
    used = {os.fstat(file).st_ino for file in held}
    pool.give_back("first")
    for number in range(100):
        folder = pool.take(str(number)).folder
        assert used.isdisjoint(Path(folder, name).stat().st_ino for name in NAMES)
        pool.give_back(str(number))
    # Nor are they still somewhere: whoever has them writes into nothing.
    assert [os.fstat(file).st_nlink for file in held] == [0, 0, 0]
    for file in (*held, first.stdout, first.stderr):
        os.close(file)


def test_where_tasks_reach_all_folders_anyway_one_that_was_handed_out_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    pool = opened(tmp_path / "tasks", is_open_to_tasks=True)
    pool.take("first").close()
    with held_inode(tmp_path / "tasks" / "attempts" / "first") as inode:
        pool.give_back("first")
        assert (Path(pool.take("second").folder) / "work").stat().st_ino == inode


def test_a_folder_that_its_task_left_alone_is_used_again(pool: Pool) -> None:
    with held_inode(used(pool, lambda _: None)) as inode:
        assert (Path(pool.take("second").folder) / "work").stat().st_ino == inode


def _set_attribute(folder: Path) -> None:
    try:
        os.setxattr(folder / "work", "user.poison", b"1")
    except OSError:
        pytest.skip("this file system has no attributes")


def _set_flag(folder: Path) -> None:
    descriptor = os.open(folder / "stdout", os.O_RDONLY)
    try:
        (flags,) = struct.unpack("L", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8)))
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("L", flags | _NO_DUMP))
    except OSError:
        pytest.skip("this file system has no flags")
    finally:
        os.close(descriptor)


def _come_and_go(folder: Path) -> None:
    (folder / "work" / "file").touch()
    (folder / "work" / "file").unlink()


def _change_mode_and_back(folder: Path) -> None:
    (folder / "work").chmod(0o777)
    (folder / "work").chmod(0o700)


def _write_and_truncate(folder: Path) -> None:
    (folder / "stderr").write_text("x")
    os.truncate(folder / "stderr", 0)


def _link(folder: Path) -> None:
    os.link(folder / "stdout", folder.parent.parent / "kept")


def _put_beside(folder: Path) -> None:
    (folder / ".profile").touch()


CHANGES = [
    _set_attribute,
    _set_flag,
    _come_and_go,
    _change_mode_and_back,
    _write_and_truncate,
    _link,
    _put_beside,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_was_changed_in_any_way_is_never_used_again(pool: Pool, change: Callable[[Path], None]) -> None:
    with held_inode(used(pool, change)) as inode:
        assert (Path(pool.take("second").folder) / "work").stat().st_ino != inode


@pytest.mark.parametrize("change", [_set_attribute, _come_and_go, _put_beside])
def test_a_folder_that_was_changed_in_the_pool_is_not_used(pool: Pool, change: Callable[[Path], None]) -> None:
    used(pool, lambda _: None)
    (folder,) = (Path(pool.root) / "pool").iterdir()
    change(folder)
    with held_inode(folder) as inode:
        taken = Path(pool.take("second").folder)
        assert (taken / "work").stat().st_ino != inode
        assert sorted(entry.name for entry in taken.iterdir()) == ["stderr", "stdout", "work"]


def _remove_all(root: Path) -> None:
    shutil.rmtree(root)


def _replace_by_links(root: Path) -> None:
    for name in ("pool", "attempts", "trash"):
        (root / name).rename(root / f"{name}-{time.time_ns()}")
        (root / name).symlink_to("/proc")


def _close_all(root: Path) -> None:
    for name in ("pool", "attempts", "trash", ""):
        (root / name).chmod(0)


@pytest.mark.parametrize("damage", [_remove_all, _replace_by_links, _close_all])
def test_shared_folders_that_a_task_of_the_same_account_damaged_are_repaired(
    public: Path, damage: Callable[[Path], None]
) -> None:
    def act() -> None:
        pool = opened(public / "tasks")
        pool.take("first")
        damage(Path(pool.root))
        taken = pool.take("second")
        os.write(taken.stdout, b"well")
        assert pool.sizes("second") == (4, 0)
        damage(Path(pool.root))
        pool.give_back("second")
        assert Path(pool.take("third").folder, "work").is_dir()

    as_ordinary_user(act, public)


def test_sizes_are_reported_although_a_task_of_the_same_account_removed_the_access(public: Path) -> None:
    def act() -> None:
        pool = opened(public / "tasks")
        os.write(pool.take("first").stdout, b"well")
        _close_all(Path(pool.root))
        assert pool.sizes("first") == (4, 0)

    as_ordinary_user(act, public)


def test_a_folder_of_which_only_one_log_can_be_opened_leaves_nothing_open(pool: Pool) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    (lowest, following), opened = _free_descriptors(), _opened()
    assert lowest < following
    resource.setrlimit(resource.RLIMIT_NOFILE, (following, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            pool.take("first")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert _opened() == opened


def test_a_log_that_cannot_be_closed_does_not_keep_the_other_one_open() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    Taken("folder", reader, writer).close()
    assert {reader, writer}.isdisjoint(_opened())


def test_a_removal_that_cannot_be_looked_at_any_more_is_left_out(tmp_path: Path) -> None:
    def act() -> None:
        (tmp_path / "tasks").mkdir()
        pool = Pool(tmp_path / "tasks", Owner(uid=os.geteuid(), gid=os.getegid(), capabilities=nullcontext()))
        pool.open(set())
        for name in ("first", "second"):
            Path(pool.take(name).folder, "work", "folder").mkdir()
        pool.give_back("first")
        pool.give_back("second")
        os.waitpid(pool.remover, 0)
        trash = tmp_path / "tasks" / "trash"
        shutil.rmtree(trash)
        trash.touch()
        pool.removed()
        assert pool.remover == 0

    in_own_process(act)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to other accounts")
def test_a_folder_is_used_again_by_its_account_only(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    pool = opened(tmp_path / "tasks", account=_ACCOUNT)
    pool.expect(_ACCOUNT + 1)
    with held_inode(used(pool, lambda _: None, account=_ACCOUNT)) as inode:
        other, own = (Path(pool.take(f"of-{uid}", uid).folder, "work").stat() for uid in (_ACCOUNT + 1, _ACCOUNT))
    assert (own.st_ino, own.st_uid, other.st_ino == inode, other.st_uid) == (inode, _ACCOUNT, False, _ACCOUNT + 1)


def test_a_few_small_files_are_removed_without_a_process(pool: Pool, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    taken = Path(pool.take("first").folder)
    for number in range(15):
        (taken / "work" / str(number)).write_text("x")
    (taken / "work" / "link").symlink_to(outside)
    pool.give_back("first")
    assert (pool.remover, taken.exists(), (outside / "precious").exists()) == (0, False, True)
    assert list((tmp_path / "tasks" / "trash").iterdir()) == []


@pytest.mark.parametrize("left", ["folder/file", "large", "many"])
def test_anything_else_is_removed_by_a_process(pool: Pool, left: str) -> None:
    work = Path(pool.take("first").folder, "work")
    (work / left).parent.mkdir(exist_ok=True)
    (work / left).write_bytes(b"x" * (2 << 20 if left == "large" else 1))
    for number in range(17 if left == "many" else 0):
        (work / str(number)).touch()
    pool.give_back("first")
    assert pool.remover


def test_a_folder_in_which_many_names_were_is_removed_by_a_process_although_it_is_empty(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Path(pool.take("first").folder)
    monkeypatch.setattr(small_folders, "_FOLDER_BYTES", taken.stat().st_size - 1)
    (taken / "work" / "file").touch()
    pool.give_back("first")
    assert pool.remover


def test_used_folders_are_removed_by_few_processes(tmp_path: Path) -> None:
    def act() -> None:
        (tmp_path / "tasks").mkdir()
        pool = Pool(tmp_path / "tasks")
        pool.open(set())
        for number in range(100):
            work = Path(pool.take(str(number)).folder, "work")
            (work / "closed").mkdir()
            (work / "closed" / "file").touch()
            (work / "closed").chmod(0)
        for number in range(100):
            pool.give_back(str(number))
        processes = 0
        while pool.remover:
            os.waitpid(pool.remover, 0)
            processes += 1
            pool.removed()
        assert processes == 3
        assert list((tmp_path / "tasks" / "trash").iterdir()) == []

    in_own_process(act)


def _opened() -> set[int]:
    return {number for number in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]) if _is_open(number)}


def _is_open(number: int) -> bool:
    with suppress(OSError):
        os.fstat(number)
        return True
    return False


def _free_descriptors() -> tuple[int, int]:
    """Return the two lowest numbers that a file can be opened as."""
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    return reader, writer


@pytest.fixture(autouse=True)
def clock_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the wall clock ahead of the times that the kernel gives to changes of files."""
    of_the_system = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: of_the_system() + _AGE_NS)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """Return a pool with one prepared folder."""
    (tmp_path / "tasks").mkdir()
    pool = opened(tmp_path / "tasks")
    yield pool
    with suppress(ChildProcessError):
        if pool.remover:
            os.waitpid(pool.remover, 0)


def opened(root: Path, *, account: int | None = None, is_open_to_tasks: bool = False) -> Pool:
    """Open a pool with one prepared folder; every change of a file from now on bears a later time."""
    pool = Pool(root, is_open_to_tasks=is_open_to_tasks)
    pool.open(set())
    if account is not None:
        pool.expect(account)
    pool.prepare_one()
    probe = root / "probe"
    probe.touch()
    prepared_ns = probe.stat().st_ctime_ns
    # The kernel's clock for the times of files moves by ticks of some milliseconds.
    while probe.stat().st_ctime_ns == prepared_ns:
        probe.touch()
    probe.unlink()
    return pool


def used(pool: Pool, change: Callable[[Path], None], *, account: int | None = None) -> Path:
    """Use a folder for an attempt that changes it; give its open work folder."""
    name = "first"
    taken = pool.take(name, account)
    os.close(taken.stdout)
    os.close(taken.stderr)
    descriptor = os.open(f"{taken.folder}/work", os.O_RDONLY)
    change(Path(taken.folder))
    pool.note_alone(name)
    pool.give_back(name)
    return Path(f"/proc/self/fd/{descriptor}")


@contextmanager
def held_inode(folder: Path) -> Iterator[int]:
    """Return the number of a folder's work folder, which no other gets meanwhile."""
    descriptor = os.open(folder if folder.parent.name == "fd" else folder / "work", os.O_RDONLY)
    try:
        yield os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)
