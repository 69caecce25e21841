"""Starters that are lost: one renewal at a time replaces them, also where the first attempts fail."""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.executor.linux.processes import ProcessIdentity, is_alive, kill, wait_until_gone
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import LOG_FILE, recorded_identity
from tests.contract.executor_rig import OFFSET_NS, Rig, play_scene, starter_settings

pytestmark = pytest.mark.processes


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path) as settings:
        yield settings


def _renewals() -> int:
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return sum(name == "OsProcessExecutor._renew" for name in names)


def test_one_renewal_at_a_time_replaces_successively_lost_starters(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        most = 0
        rig.run(1, "sleep", "60")
        await rig.start_of(1)
        starter = recorded_identity(settings.directory)

        def is_renewed(before: ProcessIdentity) -> bool:
            nonlocal most, starter
            most = max(most, _renewals())
            starter = recorded_identity(settings.directory)
            return starter is not None and starter != before and is_alive(starter)

        for number in range(2, 7):
            assert starter is not None
            before = starter
            kill(before)
            assert wait_until_gone(before, 10 * SECOND)
            # It is killed again as soon as it can be seen, before or after it has answered.
            await rig.until(lambda before=before: is_renewed(before))  # type: ignore[misc]
            rig.run(number, "sleep", "60")
        rig.run(7, "true")
        assert (await rig.end_of(7)).exit_code == 0
        assert (await rig.end_of(1)).cause is Cause.LOST
        assert most == 1

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_starter_that_cannot_be_started_for_lack_of_its_log_is_started_once_it_can(settings: StarterSettings) -> None:
    log = settings.directory / LOG_FILE

    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60")
        await rig.start_of(1)
        starter = recorded_identity(settings.directory)
        assert starter is not None
        log.unlink()
        log.mkdir()
        kill(starter)
        await rig.until(lambda: any("directory" in loss for loss in rig.losses))
        log.rmdir()
        assert (await rig.end_of(1)).cause is Cause.LOST
        rig.run(2, "true")
        assert (await rig.end_of(2)).exit_code == 0

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_starter_that_reads_nothing_is_replaced_although_commands_wait_for_it(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60")
        await rig.start_of(1)
        starter = recorded_identity(settings.directory)
        assert starter is not None
        os.kill(starter.pid, signal.SIGSTOP)
        for number in range(2, 102):
            rig.run(number, "true", env=(("LARGE", "x" * 100_000),))
        assert (await rig.end_of(1)).cause is Cause.LOST
        assert not is_alive(starter)
        rig.run(102, "true")
        assert (await rig.end_of(102)).exit_code == 0

    short = replace(settings, silence_ns=SECOND // 2)
    play_scene(act, lambda: OsProcessExecutor(short, boottime_offset_ns=OFFSET_NS))
