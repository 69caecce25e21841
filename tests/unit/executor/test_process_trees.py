"""Which processes are found below one while they start others and end."""

import subprocess
import sys

import pytest

from messiahs.executor.starter.process_trees import descendants_of

pytestmark = pytest.mark.processes

LOSES_PARENTS = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
adopts = os.getpid()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    if os.fork():
        os._exit(0)
    while os.getppid() != adopts:
        pass
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    os._exit(0)
os.wait()
os.wait()
"""
"""A process whose child, when it is told to, starts another one and ends."""


def test_a_process_that_loses_its_parent_while_others_are_looked_at_is_found() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LOSES_PARENTS], stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # At the end of its standard input, everything here ends.
        child = process.stdout.readline().strip()
        found = descendants_of(b"%d" % process.pid)
        assert next(found) == child
        process.stdin.write(b"\n")
        orphan = process.stdout.readline().strip()
        assert list(found) == [orphan]
        process.stdin.write(b"\n")
