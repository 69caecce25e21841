"""Files with holes are read like others, and their holes stay out of memory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.config.disk import read_piece, read_sparsely
from tests.sparse_files import resident_pages

MIB = 1 << 20
MIDDLE = b"middle" * 1_000
HOLE_BYTES = 3 * MIB


@contextmanager
def sparse(path: Path) -> Iterator[int]:
    """Make a file with some bytes between two holes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.pwrite(descriptor, MIDDLE, HOLE_BYTES)
        os.ftruncate(descriptor, 2 * HOLE_BYTES)
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("limit", [1_000, 65_536, MIB, 5 * MIB])
def test_every_byte_of_a_file_with_holes_is_read(tmp_path: Path, limit: int) -> None:
    with sparse(tmp_path / "sparse") as descriptor:
        buffer, filled, pieces = memoryview(bytearray(b"x" * limit)), b"", b""
        while size := read_sparsely(descriptor, buffer, offset=len(filled)):
            filled += buffer[:size]
        while piece := read_piece(descriptor, offset=len(pieces), limit=limit):
            pieces += piece
        assert filled == pieces == (tmp_path / "sparse").read_bytes()
        assert len(filled) == 2 * HOLE_BYTES
        assert read_piece(descriptor, offset=HOLE_BYTES, limit=6) == b"middle"
        assert read_piece(descriptor, offset=9 * MIB, limit=limit) == b""


def test_what_is_appended_behind_a_hole_is_read(tmp_path: Path) -> None:
    with sparse(tmp_path / "sparse") as descriptor:
        os.pwrite(descriptor, b"appended", 2 * HOLE_BYTES)
        assert read_piece(descriptor, offset=2 * HOLE_BYTES, limit=MIB) == b"appended"
        assert read_piece(descriptor, offset=2 * HOLE_BYTES - 1, limit=2) == b"\0a"


def test_holes_that_are_read_stay_out_of_memory(tmp_path: Path) -> None:
    with sparse(tmp_path / "sparse") as descriptor:
        offset, buffer = 0, memoryview(bytearray(MIB))
        while size := read_sparsely(descriptor, buffer, offset=offset):
            offset += size
            read_piece(descriptor, offset=offset, limit=MIB)
        assert resident_pages(tmp_path / "sparse", HOLE_BYTES) == 0
