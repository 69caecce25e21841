"""Which folders outside of state directories are removed: those of our own modules that are gone, and no other."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from messiahs.executor.protocol.layout import MODULE, Account, prepare_attempts_root, prepare_files_root
from messiahs.executor.protocol.left_folders import UNCHANGED_SECONDS, remove_left_folders

OTHER = Account(name="other", uid=54321, gid=54321)
LATER = time.time() + 1_000
"""Nothing that a test makes has changed since then."""


@pytest.fixture
def fallback(tmp_path: Path) -> Path:
    """Return the folder in which every account may create others."""
    (tmp_path / "fallback").mkdir()
    return tmp_path / "fallback"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Return the folder of a module that tasks cannot reach."""
    (tmp_path / "closed").mkdir(mode=0o700)
    return tmp_path / "closed"


@pytest.fixture
def root(module: Path, fallback: Path) -> Path:
    """Return the folder for the attempts of that module."""
    return prepare_attempts_root(module, OTHER, fallback=fallback)


def test_folders_of_a_module_that_is_gone_are_removed(module: Path, root: Path, fallback: Path) -> None:
    files = prepare_files_root(module, OTHER, fallback=fallback)
    (root / "pool").mkdir()
    (root / "pool" / "x").write_text("x")
    assert remove_left_folders(fallback, before=LATER) == []
    module.rmdir()
    assert remove_left_folders(fallback, before=LATER) == sorted((root, files))
    assert list(fallback.iterdir()) == []


def test_a_folder_stays_as_long_as_a_task_without_its_module_may_run(module: Path, root: Path, fallback: Path) -> None:
    module.rmdir()
    assert remove_left_folders(fallback) == []
    (root / "attempts").mkdir()
    long_ago = time.time() - UNCHANGED_SECONDS - 60
    os.utime(root, (long_ago, long_ago))
    os.utime(root / MODULE, (long_ago, long_ago), follow_symlinks=False)
    # Something in it has changed lately.
    assert remove_left_folders(fallback) == []
    os.utime(root / "attempts", (long_ago, long_ago))
    assert remove_left_folders(fallback) == [root]


def _of_another_module(root: Path) -> None:
    (root / MODULE).unlink()
    (root / MODULE).symlink_to("/nowhere")


def _of_no_module(root: Path) -> None:
    (root / MODULE).unlink()


def _open_to_all(root: Path) -> None:
    root.chmod(0o777)


def _of_another_kind(root: Path) -> None:
    root.rename(root.with_name("messiahs-demo-abc"))


def _a_link(root: Path) -> None:
    elsewhere = root.parent.parent / "elsewhere"
    shutil.move(root, elsewhere)
    root.symlink_to(elsewhere)


@pytest.mark.parametrize("change", [_of_another_module, _of_no_module, _open_to_all, _of_another_kind, _a_link])
def test_what_is_not_surely_ours_stays(
    change: Callable[[Path], None], module: Path, root: Path, fallback: Path
) -> None:
    module.rmdir()
    change(root)
    before = list(fallback.iterdir())
    assert remove_left_folders(fallback, before=LATER) == []
    assert list(fallback.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_folders_of_other_accounts_stay(module: Path, root: Path, fallback: Path) -> None:
    module.rmdir()
    os.chown(root, OTHER.uid, OTHER.gid)
    assert remove_left_folders(fallback, before=LATER) == []
