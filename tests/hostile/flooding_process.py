"""The flooder as a process of its own, which goes on while others are served."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.commands import Command


@contextmanager
def flooding(settings_file: Path, kind: str) -> Iterator[Command[str]]:
    """Send a flood of one kind from the first message of the block until its end."""
    words = [sys.executable, "-m", "tests.hostile.flooder", str(settings_file), kind]
    with Command(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flooder:
        assert flooder.stdout is not None
        assert flooder.stdin is not None
        flooder.stdout.readline()
        try:
            yield flooder
        finally:
            flooder.stdin.close()
            flooder.wait()
