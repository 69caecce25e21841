"""The last twentieth of a disk, as everything that keeps away from it sees it."""

import os
from pathlib import Path

import pytest

from messiahs.config.disk import free_bytes, free_files, has_room, is_last_part_reached, spare_bytes
from tests.live.disks import fill, mounted

pytestmark = pytest.mark.processes

MIB = 1 << 20


def test_the_last_twentieth_is_reached_where_nothing_else_is_free(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=40m,nr_inodes=100", "tmpfs"):
        assert is_last_part_reached(tmp_path) == (False, False)
        assert is_last_part_reached(tmp_path, more_bytes=39 * MIB) == (True, False)
        fill(tmp_path, leave_bytes=2 * MIB)
        assert (is_last_part_reached(tmp_path)[0], free_bytes(tmp_path)) == (False, 0)
        (tmp_path / "one more").write_bytes(b"x")
        assert (is_last_part_reached(tmp_path)[0], free_bytes(tmp_path)) == (True, 0)


def test_files_have_a_last_twentieth_too(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=40m,nr_inodes=100", "tmpfs"):
        for number in range(os.statvfs(tmp_path).f_favail - 5):
            (tmp_path / str(number)).touch()
        assert (is_last_part_reached(tmp_path), free_files(tmp_path)) == ((False, False), 0)
        (tmp_path / "one more").touch()
        assert is_last_part_reached(tmp_path) == (False, True)


def test_a_disk_that_makes_files_as_they_are_needed_has_no_number_of_them(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=40m,nr_inodes=0", "tmpfs"):
        assert free_files(tmp_path) is None


@pytest.mark.parametrize(("size_mib", "kept_mib"), [(40, 10), (200, 16), (400, 20)])
def test_inputs_leave_more_of_a_small_disk_than_new_work_needs(tmp_path: Path, size_mib: int, kept_mib: int) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs"):
        assert spare_bytes(tmp_path) == (size_mib - kept_mib) * MIB
        fill(tmp_path, leave_bytes=kept_mib * MIB)
        assert (spare_bytes(tmp_path), has_room(tmp_path)) == (0, True)
        fill(tmp_path, leave_bytes=8 * MIB - 4_096, name="more")
        assert (spare_bytes(tmp_path), has_room(tmp_path)) == ((8 - kept_mib) * MIB - 4_096, False)
