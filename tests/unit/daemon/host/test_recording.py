"""Starting and stopping a recording, and continuing it after a restart."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.recovery import Remains
from messiahs.daemon.host.recording import Tracing
from messiahs.daemon.storage.clock import Clock
from messiahs.errors import TraceError
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.record.recorder import RecordedModule
from messiahs.trace.replay.replay import replay
from messiahs.trace.show.reader import read_segments, segment_files
from tests.unit.core.rig import START, make_module

MIB = 1 << 20


class Process:
    """A module in a process, with its switch (mutable)."""

    def __init__(self, folder: Path) -> None:
        self.module = RecordedModule(make_module(policy=OpenPolicy()))
        self.tracing = Tracing(self.module, Clock(START), folder=folder)

    def resume(self) -> None:
        """Start as a daemon does."""
        self.tracing.go_on()
        self.module.resume(Remains(), START)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    """Return a process whose recording has ended when the test has."""
    made = Process(tmp_path / "trace")
    yield made
    made.tracing.stop()


def _events(folder: Path) -> int:
    done = replay(read_segments(segment_files([folder])))
    assert done.differences == []
    return done.events


def test_nothing_is_recorded_before_somebody_asks_for_it(process: Process, tmp_path: Path) -> None:
    process.resume()
    assert not process.tracing.is_on
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_was_recorded_is_so_from_its_first_step_after_a_restart(process: Process, tmp_path: Path) -> None:
    process.tracing.start(MIB)
    process.module.end_recording()
    again = Process(tmp_path / "trace")
    again.resume()
    assert again.tracing.is_on
    again.tracing.stop()
    assert _events(tmp_path / "trace") == 1
    third = Process(tmp_path / "trace")
    third.resume()
    assert not third.tracing.is_on


def test_a_ring_that_is_too_small_is_refused_and_nothing_is_recorded(process: Process) -> None:
    with pytest.raises(TraceError, match="at least 1MiB"):
        process.tracing.start(512)
    assert not process.tracing.is_on
    process.resume()
    assert not process.tracing.is_on


def test_a_setting_that_cannot_be_read_is_logged_and_keeps_nobody_from_starting(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    process.tracing.folder.mkdir()
    (process.tracing.folder / "size_bytes").write_text("much")
    with caplog.at_level(logging.ERROR):
        process.resume()
    assert not process.tracing.is_on
    assert "recording has ended: " in caplog.text
