"""The folder of a slot: who has left it alone leaves it to the next task, and nobody else does."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.sandbox.work_folder import WorkFolder
from tests.waiting import eventually

_COARSE_CLOCK = 5


def _folder(tmp_path: Path) -> WorkFolder:
    (tmp_path / "target").mkdir()
    work = WorkFolder(path=f"{tmp_path}/work", account=os.geteuid(), group=os.getegid())
    work.prepare()
    return work


def _begun(tmp_path: Path) -> WorkFolder:
    work = _folder(tmp_path)
    assert work.created is not None
    created_ns = work.created[1]
    eventually(lambda: time.clock_gettime_ns(_COARSE_CLOCK) > created_ns)
    work.begin()
    return work


def _inodes(tmp_path: Path) -> tuple[int, int]:
    return (tmp_path / "work").stat().st_ino, (tmp_path / "target").stat().st_ino


def _come_and_go(work: Path) -> None:
    (work / "file").touch()
    (work / "file").unlink()


def _change_mode_and_back(work: Path) -> None:
    work.chmod(0o777)
    work.chmod(0o700)


def _set_times(work: Path) -> None:
    os.utime(work, (1, 1))


def _set_attribute(work: Path) -> None:
    try:
        os.setxattr(work, "user.left", b"1")
    except OSError:
        pytest.skip("this file system has no attributes")


def test_a_task_that_changes_nothing_leaves_the_folder_to_the_next_one(tmp_path: Path) -> None:
    work = _begun(tmp_path)
    before = _inodes(tmp_path)
    for _ in range(3):
        work.end(f"{tmp_path}/target", is_alone=True)
        work.begin()
    assert _inodes(tmp_path) == before


@pytest.mark.parametrize("change", [_come_and_go, _change_mode_and_back, _set_times, _set_attribute])
def test_a_folder_that_its_task_changed_in_any_way_goes_with_it(tmp_path: Path, change: Callable[[Path], None]) -> None:
    work = _begun(tmp_path)
    used, _ = _inodes(tmp_path)
    change(tmp_path / "work")
    work.end(f"{tmp_path}/target", is_alone=True)
    fresh, target = _inodes(tmp_path)
    assert (target, fresh != used) == (used, True)


@pytest.mark.parametrize("changed_ns", [(1 << 62) + 1, 1_000_000_000], ids=["just now", "in whole seconds"])
def test_a_folder_whose_time_stamp_proves_nothing_goes_with_its_task(tmp_path: Path, changed_ns: int) -> None:
    work = _folder(tmp_path)
    used, _ = _inodes(tmp_path)
    work.created = used, changed_ns
    work.begin()
    work.end(f"{tmp_path}/target", is_alone=True)
    assert _inodes(tmp_path)[1] == used


def test_a_folder_that_its_task_may_have_handed_out_goes_with_it(tmp_path: Path) -> None:
    work = _begun(tmp_path)
    used, _ = _inodes(tmp_path)
    work.end(f"{tmp_path}/target", is_alone=False)
    assert _inodes(tmp_path)[1] == used


@pytest.mark.processes
def test_a_folder_that_nobody_takes_is_removed_before_the_next_task(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    pool = Pool(tmp_path / "tasks")
    pool.open(set())
    work = _begun(tmp_path)
    (tmp_path / "work" / "file").touch()
    with pytest.raises(FileNotFoundError):
        work.end(f"{tmp_path}/absent/target", is_alone=True)
    work.dispose(pool)
    os.waitpid(pool.remover, 0)
    work.begin()
    assert list((tmp_path / "work").iterdir()) == []
