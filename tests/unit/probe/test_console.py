"""Use of the console as terminals show it, in a namespace without other terminals."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

ONE_TERMINAL = (
    "mount -t tmpfs none /dev && mkdir /dev/pts && mount -t devpts -o newinstance,ptmxmode=0666 none /dev/pts"
    ' && ln -s pts/ptmx /dev/ptmx && exec "$@"'
)


def alone(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where there are no terminals except its own."""
    as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    arguments = ["unshare", *as_root, "--mount", "sh", "-c", ONE_TERMINAL, "sh", *command]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=300)


def test_only_a_terminal_that_was_read_says_when_the_console_was_used() -> None:
    tried = alone("true")
    if tried.returncode != 0:
        pytest.skip(f"no name space for terminals: {tried.stderr.strip()}")
    done = alone(sys.executable, "-m", "tests.unit.probe.typing_alone")
    assert done.returncode == 0, done.stderr
    without, unread, typed = json.loads(done.stdout)
    assert (without, unread) == (None, None)
    assert typed in range(60)
