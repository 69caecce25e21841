"""Starters that are lost one after the other: each loss is noticed, and one renewal at a time replaces them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.executor.linux.processes import ProcessIdentity, is_alive, kill, wait_until_gone
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import recorded_identity
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
