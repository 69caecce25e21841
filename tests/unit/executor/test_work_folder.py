"""The folder of a slot: each task has its own."""

import os
from pathlib import Path

import pytest

from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.sandbox.work_folder import WorkFolder


def _begun(tmp_path: Path) -> WorkFolder:
    (tmp_path / "target").mkdir()
    work = WorkFolder(path=f"{tmp_path}/work", account=os.geteuid(), group=os.getegid())
    work.prepare()
    return work


def test_a_folder_goes_with_its_task_also_if_that_has_changed_nothing_in_it(tmp_path: Path) -> None:
    work = _begun(tmp_path)
    used = (tmp_path / "work").stat().st_ino
    work.end(f"{tmp_path}/target")
    work.prepare()
    assert (tmp_path / "target").stat().st_ino == used
    assert (tmp_path / "work").stat().st_ino != used


@pytest.mark.processes
def test_a_folder_that_nobody_takes_is_removed_before_the_next_task(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    pool = Pool(tmp_path / "tasks")
    pool.open(set())
    work = _begun(tmp_path)
    (tmp_path / "work" / "file").touch()
    with pytest.raises(FileNotFoundError):
        work.end(f"{tmp_path}/absent/target")
    work.dispose(pool)
    os.waitpid(pool.remover, 0)
    work.prepare()
    assert list((tmp_path / "work").iterdir()) == []
