"""Attempts that a machine could not start are in its log with the reason."""

import pytest

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.host.failed_starts import FailedStarts

_ATTEMPT = AttemptId(TaskId(SystemId("home"), Epoch(1), 7), 2)


def test_only_attempts_that_could_not_be_started_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    watcher = FailedStarts()
    for cause in Cause:
        watcher.on_step(AttemptEnded(attempt=_ATTEMPT, cause=cause, text="no sandbox"), (), Instant(0))
    watcher.on_step(None, (), Instant(0))
    assert caplog.messages == ["a task could not be started: no sandbox (attempt home.7#2)"]
