"""What the kernel keeps in memory of files with holes."""

import ctypes
import mmap
from pathlib import Path


def resident_pages(path: Path, size_bytes: int) -> int:
    """Count the pages of the beginning of a file that are in memory; whole pages of it are there."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size_bytes) as mapped:
        pages = (ctypes.c_ubyte * (size_bytes // mmap.PAGESIZE))()
        begin = ctypes.c_ubyte.from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(begin), ctypes.c_size_t(size_bytes), pages)
        # The mapping cannot be closed while somebody has its address.
        del begin
        assert failed == 0, "the kernel tells nothing of this file"
        return sum(page & 1 for page in pages)
