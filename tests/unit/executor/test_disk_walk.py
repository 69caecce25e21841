"""What a walk finds although a task takes permissions away, and what it says of what it could not look at."""

import errno
import os
import resource
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from messiahs.executor.starter.disk_walk import Walk
from tests.unit.executor.apart import as_ordinary_user, in_own_process

pytestmark = pytest.mark.processes

_MIB = 1 << 20
_PIECE = 256


def _end(walk: Walk) -> Walk:
    while not walk.go_on(_PIECE):
        pass
    return walk


def _fill(folder: Path) -> None:
    inner = folder / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "big").write_bytes(bytes(range(256)) * (_MIB // 256))


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100, 0o200])
@pytest.mark.parametrize("name", [".", "outer", "outer/inner"])
def test_what_is_in_a_folder_counts_whatever_its_owner_may_do_there(public: Path, mode: int, name: str) -> None:
    folder = public / "tasks"
    _fill(folder)

    def act() -> None:
        before = _end(Walk(str(folder)))
        (folder / name).chmod(mode)
        walk = _end(Walk(str(folder)))
        assert (walk.used_bytes, walk.files) == (before.used_bytes, before.files)
        assert walk.used_bytes > _MIB
        assert (walk.problem, walk.missed) == ("", "")

    as_ordinary_user(act, public)


def test_a_folder_that_is_closed_between_two_pieces_is_counted_whole(public: Path) -> None:
    folder = public / "tasks"
    _fill(folder)
    for number in range(16):
        (folder / "outer" / str(number)).mkdir()

    def act() -> None:
        before = _end(Walk(str(folder)))
        walk = Walk(str(folder))
        ended = False
        while not ended:
            (folder / "outer").chmod(0)
            ended = walk.go_on(1)
        assert (walk.used_bytes, walk.files, walk.problem) == (before.used_bytes, before.files, "")

    as_ordinary_user(act, public)


def test_a_folder_of_another_account_counts_as_itself(public: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, who can make a folder of another account")
    with TemporaryDirectory() as name:
        of_root = Path(name)
        _fill(of_root)
        (of_root / "outer").chmod(0o700)
        of_root.chmod(0o755)

        def act() -> None:
            walk = _end(Walk(name))
            assert (walk.files, walk.problem) == (1, "")

        as_ordinary_user(act, public)


def test_a_walk_says_that_descriptors_ran_out_and_ends(tmp_path: Path) -> None:
    _fill(tmp_path)

    def act() -> None:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 2, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        walk = _end(Walk(str(tmp_path)))
        assert walk.missed == os.strerror(errno.EMFILE)
        assert walk.problem == ""

    in_own_process(act)


def test_what_was_removed_meanwhile_is_not_missed(tmp_path: Path) -> None:
    _fill(tmp_path)
    walk = Walk(str(tmp_path), str(tmp_path / "never there"))
    assert not walk.go_on(1)
    (tmp_path / "outer" / "inner" / "big").unlink()
    (tmp_path / "outer" / "inner").rmdir()
    (tmp_path / "outer").rmdir()
    assert (_end(walk).files, walk.problem, walk.missed) == (1, "", "")
