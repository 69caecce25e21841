"""The slots in which tasks run in sandboxes: who waits for one, and what becomes of one that is killed."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.layout import VIEW
from tests.contract.escape_rig import executor_of, parent_of
from tests.contract.executor_rig import Rig, attempt_id, play_scene, processes_of, root_of, starter_settings

pytestmark = pytest.mark.processes


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path, kind="sandbox") as settings:
        yield settings


def test_attempts_wait_while_all_accounts_are_in_use(settings: StarterSettings) -> None:
    first = settings.task_uids[0]

    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "600")
        await rig.start_of(1)
        rig.run(2, "true")
        await rig.executor.running()
        assert attempt_id(2) not in rig.ends()
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=SECOND, cause=Cause.KILLED))
        assert (await rig.end_of(2)).exit_code == 0

    play_scene(act, lambda: executor_of(replace(settings, task_uids=(first, first))))


def test_a_sandbox_that_cannot_be_set_up_ends_the_attempt_with_the_reason_and_the_next_one_can(
    settings: StarterSettings,
) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "600")
        rig.run(2, "sleep", "600")
        await rig.start_of(2)
        view = root_of(settings) / VIEW
        view.rmdir()
        for number in (3, 4):
            rig.run(number, "true")
            end = await rig.end_of(number)
            problem = f"its sandbox cannot be set up: mount {view}: No such file or directory"
            assert (end.cause, end.exit_code, end.text) == (Cause.SPAWN_FAILED, None, problem)
        view.mkdir()
        rig.run(5, "true")
        assert (await rig.end_of(5)).exit_code == 0

    play_scene(act, lambda: executor_of(settings))


def test_a_zygote_that_was_killed_loses_its_task_only(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "600")
        await rig.start_of(1)
        await rig.until(lambda: len(processes_of(settings, 1)) == 1)
        (process,) = processes_of(settings, 1)
        rig.run(2, "sleep", "600")
        await rig.start_of(2)
        os.kill(parent_of(process), signal.SIGKILL)
        end = await rig.end_of(1)
        assert (end.cause, end.text) == (Cause.LOST, "the sandbox of the task ended")
        assert rig.losses == []
        rig.run(3, "true")
        assert (await rig.end_of(3)).exit_code == 0
        assert attempt_id(2) not in rig.ends()

    play_scene(act, lambda: executor_of(settings))
