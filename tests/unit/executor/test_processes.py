"""Processes are signalled only while they are the intended ones."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.executor.linux.processes import identity_of, signal_if, standing_of

pytestmark = pytest.mark.processes


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_process_is_signalled_if_it_is_the_one_that_was_meant(sleeper: subprocess.Popen[bytes]) -> None:
    signal_if(sleeper.pid, signal.SIGTERM, lambda: True)
    assert sleeper.wait(20) == -signal.SIGTERM


def test_a_process_that_is_not_the_one_that_was_meant_is_spared(sleeper: subprocess.Popen[bytes]) -> None:
    signal_if(sleeper.pid, signal.SIGTERM, lambda: False)
    sleeper.send_signal(signal.SIGINT)
    assert sleeper.wait(20) == -signal.SIGINT


def test_what_is_meant_is_asked_when_the_number_cannot_mean_another_process_any_more(
    sleeper: subprocess.Popen[bytes],
) -> None:
    asked = []

    def ends_meanwhile() -> bool:
        asked.append(sleeper.pid)
        sleeper.kill()
        sleeper.wait(20)
        return True

    signal_if(sleeper.pid, signal.SIGTERM, ends_meanwhile)
    # The number is free now: nobody is asked whether he is meant.
    signal_if(sleeper.pid, signal.SIGTERM, ends_meanwhile)
    assert asked == [sleeper.pid]


def test_a_process_whose_name_ends_within_a_letter_can_be_identified(tmp_path: Path) -> None:
    """The kernel keeps 15 bytes of it."""
    program = tmp_path / "ääääääää"
    found = shutil.which("sleep")
    assert found is not None
    shutil.copy(found, program)
    with subprocess.Popen([program, "600"]) as process:
        try:
            identity = identity_of(process.pid)
            assert identity is not None
            assert identity.pid == process.pid
        finally:
            process.kill()


def test_a_dead_process_that_was_not_reaped_stands_somewhere_and_has_no_identity(
    sleeper: subprocess.Popen[bytes],
) -> None:
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    standing = standing_of(b"%d" % sleeper.pid)
    assert standing is not None
    assert standing.state == b"Z"
    assert identity_of(sleeper.pid) is None
    sleeper.wait(20)
    assert standing_of(b"%d" % sleeper.pid) is None
