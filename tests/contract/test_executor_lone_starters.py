"""A starter whose daemon is gone: its tasks end with their leases, then it ends, and the next one knows their ends."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.executor.contract import AttemptState
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.processes import ProcessIdentity, is_alive
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import recorded_identity
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, starter_settings

pytestmark = pytest.mark.processes
_ALONE_NS = 4 * SECOND
_LEASE_S = 6


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path) as settings:
        yield replace(settings, alone_ns=_ALONE_NS)


def _starter_of(settings: StarterSettings) -> ProcessIdentity:
    starter = recorded_identity(settings.directory)
    assert starter is not None
    return starter


def _executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


def test_a_starter_whose_folder_was_moved_away_ends_after_its_last_task(
    settings: StarterSettings, tmp_path: Path
) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=_LEASE_S)
        await rig.start_of(1)
        lease_until = boottime_ns() + _LEASE_S * SECOND
        starter = _starter_of(settings)
        await rig.executor.stop(end_tasks=False)
        settings.directory.rename(tmp_path / "moved")
        # The task runs longer than a starter without tasks and without a daemon is to live.
        await rig.until(lambda: not is_alive(starter))
        assert boottime_ns() > lease_until
        (tmp_path / "moved").rename(settings.directory)

    play_scene(act, lambda: _executor_of(settings), seconds=60)


def test_the_next_starter_knows_the_ends_of_a_lone_one(settings: StarterSettings) -> None:
    async def scene() -> None:
        rig = await Rig(_executor_of(settings), seconds=60).started()
        rig.start(1, lease_s=1)
        await rig.start_of(1)
        starter = _starter_of(settings)
        await rig.executor.stop(end_tasks=False)
        await rig.until(lambda: not is_alive(starter))
        executor = _executor_of(settings)
        await executor.start(rig.events.append, rig.losses.append)
        (known,) = await executor.running()
        assert (known.attempt, known.state) == (attempt_id(1), AttemptState.ENDED)
        assert known.ended is not None
        assert known.ended.cause is Cause.LEASE_EXPIRED
        assert _starter_of(settings) != starter
        await executor.stop(end_tasks=True)

    asyncio.run(scene())


def test_a_starter_with_a_daemon_stays_without_tasks(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        starter = _starter_of(settings)
        began = boottime_ns()
        await rig.until(lambda: boottime_ns() > began + 2 * _ALONE_NS)
        rig.run(1, "true")
        assert (await rig.end_of(1)).exit_code == 0
        assert (_starter_of(settings), rig.losses) == (starter, [])

    play_scene(act, lambda: _executor_of(settings))
