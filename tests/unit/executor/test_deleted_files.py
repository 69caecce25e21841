"""Files without a name that a process keeps: each counts once, and only on the disks that are asked for."""

import mmap
import os
from pathlib import Path

import pytest

from messiahs.executor.linux.deleted_files import deleted_sizes

OWN = (str(os.getpid()).encode(),)
_MIB = 1 << 20


def _kept(folder: Path) -> int:
    """Return a descriptor of a file of 1 MiB that has no name any more."""
    path = folder / "kept"
    path.write_bytes(bytes(_MIB))
    descriptor = os.open(path, os.O_RDWR)
    path.unlink()
    return descriptor


def _sizes(folder: Path) -> list[int]:
    return [size for size in deleted_sizes(OWN, {folder.stat().st_dev}) if size >= _MIB]


def test_an_open_file_without_a_name_counts_once_however_often_it_is_open(tmp_path: Path) -> None:
    kept = [_kept(tmp_path)]
    kept.append(os.dup(kept[0]))
    try:
        assert len(_sizes(tmp_path)) == 1
        assert not any(deleted_sizes(OWN, ()))
    finally:
        for descriptor in kept:
            os.close(descriptor)
    assert _sizes(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may look at mapped files")
def test_a_mapped_file_without_a_name_counts_among_many_that_have_one(tmp_path: Path) -> None:
    descriptor = _kept(tmp_path)
    (tmp_path / "named").write_bytes(bytes(mmap.PAGESIZE))
    with (tmp_path / "named").open("r+b") as named, mmap.mmap(descriptor, _MIB):
        os.close(descriptor)
        # Neighbors with other rights do not become one mapping.
        others = [mmap.mmap(named.fileno(), mmap.PAGESIZE, prot=1 + number % 2 * 2) for number in range(2_000)]
        assert len(_sizes(tmp_path)) == 1
        for other in others:
            other.close()
    assert _sizes(tmp_path) == []


def test_a_process_that_has_ended_has_no_files() -> None:
    assert list(deleted_sizes((b"0",), {1})) == []
