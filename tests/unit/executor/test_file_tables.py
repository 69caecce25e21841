"""What processes have open is looked at once for each table of files, whichever threads share it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.executor.linux.deleted_files import deleted_sizes
from messiahs.executor.linux.namespaces import NEW_PROCESSES, unshare
from messiahs.executor.linux.seccomp import install
from messiahs.executor.linux.strays import Children
from tests.unit.executor.apart import in_own_process

pytestmark = pytest.mark.processes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone can make a process namespace")

THREADS, FILES, MIB = 50, 200, 1 << 20

HOLDS = """
import ctypes, os, platform, sys, threading
call = ctypes.CDLL(None).syscall
begun, ends = threading.Barrier({threads} + 1, timeout=60), threading.Event()
def wait():
    begun.wait()
    ends.wait()
def wait_with_own_table():
    ctypes.CDLL(None).unshare(0x400)
    keep(str(threading.get_native_id()))
    wait()
def keep(name):
    with open(name, "wb") as file:
        file.write(bytes(range(256)) * 4096)
    os.open(name, os.O_RDONLY)
    os.unlink(name)
keep("shared")
for _ in range({files}):
    os.open(os.devnull, os.O_RDONLY)
for number in range({threads}):
    threading.Thread(target=[wait, wait_with_own_table][number < {own}], daemon=True).start()
begun.wait()
print("begun", flush=True)
if {ends}:
    # The call of the first thread alone, of which the C library has none.
    call({{"x86_64": 60, "aarch64": 93}}[platform.machine()], 0)
ends.wait()
"""
"""Keeps 1 MiB without a name, and as much for each thread with a table of its own."""


@contextmanager
def _holder(folder: Path, *, own: int = 0, ends: bool = False) -> Iterator[int]:
    script = HOLDS.format(threads=THREADS, files=FILES, own=own, ends=int(ends))
    with subprocess.Popen([sys.executable, "-c", script], cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            yield process.pid
        finally:
            process.kill()


def _looked_at(folder: Path, name: bytes) -> tuple[int, int]:
    """Return how much was looked at, and the bytes of files without a name."""
    sizes = list(deleted_sizes([name], {folder.stat().st_dev}))
    return len(sizes), sum(sizes)


@pytest.mark.parametrize("ends", [False, True])
def test_a_table_that_many_threads_share_is_looked_at_once(tmp_path: Path, *, ends: bool) -> None:
    with _holder(tmp_path, ends=ends) as process:
        looked_at, used_bytes = _looked_at(tmp_path, b"%d" % process)
        # Some are those of the interpreter.
        assert FILES < looked_at < 3 * FILES
        assert used_bytes == MIB


@pytest.mark.parametrize("ends", [False, True])
def test_threads_with_tables_of_their_own_count(tmp_path: Path, *, ends: bool) -> None:
    with _holder(tmp_path, own=3, ends=ends) as process:
        looked_at, used_bytes = _looked_at(tmp_path, b"%d" % process)
        assert 4 * FILES < looked_at < 6 * FILES
        assert used_bytes == 4 * MIB


def test_every_thread_is_looked_at_where_tables_cannot_be_compared(tmp_path: Path) -> None:
    with _holder(tmp_path, own=3) as process:

        def act() -> None:
            install()
            looked_at, used_bytes = _looked_at(tmp_path, b"%d" % process)
            assert looked_at > THREADS * FILES
            assert used_bytes == 4 * MIB

        in_own_process(act)


@needs_root
def test_tables_are_compared_from_a_process_namespace_that_proc_does_not_show(tmp_path: Path) -> None:
    def act() -> None:
        children = Children()
        with _holder(tmp_path, own=3) as process:
            name = children.name_of(process)
            assert name is not None
            assert name != b"%d" % process
            looked_at, used_bytes = _looked_at(tmp_path, name)
            assert 4 * FILES < looked_at < 6 * FILES
            assert used_bytes == 4 * MIB

    def enter() -> None:
        unshare(NEW_PROCESSES)
        in_own_process(act)

    in_own_process(enter)
