"""Outputs with holes: a task makes terabytes of zeros in an instant, and the kernel must not keep them in memory."""

import os
from pathlib import Path

from messiahs.executor.attempt_values import folder_name
from messiahs.executor.os_process.outputs import Outputs
from messiahs.executor.protocol.layout import ATTEMPTS, WORK
from tests.contract.executor_rig import attempt_id
from tests.sparse_files import resident_pages

MIB = 1 << 20
SIZE_BYTES = 4 * MIB


def test_the_holes_of_an_output_are_read_as_zeros_without_the_kernels_memory(tmp_path: Path) -> None:
    work = tmp_path / ATTEMPTS / folder_name(attempt_id(1)) / WORK
    work.mkdir(parents=True)
    with (work / "out").open("wb") as file:
        file.truncate(SIZE_BYTES)
    outputs = Outputs(root=tmp_path, accounts=((os.getuid(), os.getuid()),))
    buffer, read_bytes = memoryview(bytearray(b"x" * MIB)), 0
    while size := outputs.read_into(attempt_id(1), f"{WORK}/out", buffer, offset=read_bytes):
        assert buffer[:size] == bytes(size)
        read_bytes += size
    assert read_bytes == SIZE_BYTES
    assert resident_pages(work / "out", SIZE_BYTES) == 0
