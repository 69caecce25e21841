"""The watchdog: tasks end with their lease, even if neither the daemon nor the starter runs."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import ExtendLease
from messiahs.core.model.ids import ClaimId, Epoch, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.processes import identity_of, is_alive, kill, wait_until_gone
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import recorded_identity
from messiahs.executor.starter.watchdog import GRACE_NS
from tests.contract.executor_rig import (
    CLAIM,
    KINDS,
    OFFSET_NS,
    Rig,
    attempt_id,
    now,
    play_scene,
    start_of,
    starter_settings,
)

pytestmark = pytest.mark.processes

SHORT_S = 1
OTHER_CLAIM = ClaimId(SystemId("leonardo"), Epoch(7), 2)


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    """Return the settings of each kind of starter."""
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield settings


def executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


def test_a_stopped_starter_without_a_daemon_is_ended_with_its_tasks_soon_after_the_lease(
    settings: StarterSettings,
) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=SHORT_S)
        await rig.start_of(1)
        ends_at = boottime_ns() + SHORT_S * SECOND
        starter = starter_of(settings)
        tasks = below(starter)
        assert tasks
        await rig.executor.stop(end_tasks=False)
        with stopped(starter):
            # They are killed together, and each is gone a moment later.
            await rig.until(lambda: not any(is_running(process) for process in (starter, *tasks)))
        assert boottime_ns() >= ends_at

    play_scene(act, lambda: executor_of(settings), seconds=60)


def test_a_shorter_lease_wakes_a_watchdog_that_sleeps_for_a_longer_one(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=600)
        await rig.start_of(1)
        rig.executor.perform(replace(start_of(2, seconds=60, lease_ns=SHORT_S * SECOND), claim=OTHER_CLAIM))
        await rig.start_of(2)
        starter = starter_of(settings)
        await rig.executor.stop(end_tasks=False)
        with stopped(starter):
            await rig.until(lambda: below(starter) == [] and not is_running(starter))

    play_scene(act, lambda: executor_of(settings), seconds=60)


def test_nothing_is_ended_at_the_end_of_a_lease_that_was_extended(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=SHORT_S)
        await rig.start_of(1)
        rig.executor.perform(ExtendLease(claim=CLAIM, until=Instant(now() + 600 * SECOND)))
        await rig.executor.running()
        starter = starter_of(settings)
        before = below(starter)
        with stopped(starter):
            await rig.until(after(SHORT_S))
            # A sandbox may have started its task meanwhile.
            assert set(below(starter)) >= set(before) != set()

    play_scene(act, lambda: executor_of(settings), seconds=60)


def test_a_starter_that_ends_an_attempt_itself_continues_with_the_others(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.executor.perform(replace(start_of(2, seconds=60), claim=OTHER_CLAIM))
        await rig.start_of(2)
        rig.start(1, lease_s=SHORT_S)
        assert (await rig.end_of(1)).cause == "lease_expired"
        await rig.until(after(SHORT_S))
        assert rig.losses == []
        assert attempt_id(2) not in rig.ends()

    play_scene(act, lambda: executor_of(settings), seconds=60)


@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_starter_and_its_watchdog_end_together(settings: StarterSettings, inherited: signal.Handlers) -> None:
    # With the ends of children ignored, an exit code can be read only by a process that undoes it.
    before = signal.signal(signal.SIGCHLD, inherited)
    try:
        _end_together(settings)
    finally:
        signal.signal(signal.SIGCHLD, before)


def _end_together(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        starter = starter_of(settings)
        watchdog = identity_of(parent_of(starter))
        assert watchdog is not None
        assert name_of(watchdog.pid) == "messiahs-watch"
        os.kill(watchdog.pid, signal.SIGTERM)
        noted = recorded_identity(settings.directory)
        assert noted is not None
        kill(noted)
        assert wait_until_gone(watchdog, 10 * SECOND)
        assert (await rig.end_of(1)).cause == "lost"
        second = identity_of(parent_of(starter_of(settings)))
        assert second is not None
        await rig.executor.stop(end_tasks=True)
        assert wait_until_gone(second, 10 * SECOND)

    play_scene(act, lambda: executor_of(settings), seconds=60)


def test_tasks_do_not_outlive_a_watchdog_that_was_killed(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        if rig.executor.degraded:
            pytest.skip(rig.executor.degraded)
        rig.start(1)
        await rig.start_of(1)
        starter = starter_of(place)
        tasks = below(starter)
        os.kill(parent_of(starter), signal.SIGKILL)
        assert (await rig.end_of(1)).cause == "lost"
        await rig.until(lambda: not any(is_running(process) for process in (starter, *tasks)))

    with starter_settings(tmp_path) as place:
        play_scene(act, lambda: executor_of(place), seconds=60)


def test_without_a_namespace_nothing_of_a_task_outlives_its_starter(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "cd /; env -i setsid sleep 600 & sleep 600")
        await rig.start_of(1)
        starter = starter_of(place)
        await rig.until(lambda: len(below(starter)) == 3)
        tasks = below(starter)
        noted = recorded_identity(place.directory)
        assert noted is not None
        kill(noted)
        await rig.until(lambda: not any(is_running(task) for task in tasks))

    with starter_settings(tmp_path, kind="degraded") as place:
        play_scene(act, lambda: executor_of(place))


def after(lease_s: int) -> "Passed":
    """Return a condition that becomes true after a watchdog with a lease from now on would have acted."""
    return Passed(boottime_ns() + lease_s * SECOND + 2 * GRACE_NS)


class Passed:
    """Whether an instant has passed."""

    def __init__(self, instant: int) -> None:
        self._instant = instant

    def __call__(self) -> bool:
        """Look at the clock."""
        return boottime_ns() > self._instant


def starter_of(settings: StarterSettings) -> int:
    noted = recorded_identity(settings.directory)
    assert noted is not None
    assert is_alive(noted)
    return noted.pid


def is_running(process: int) -> bool:
    return identity_of(process) is not None


def parent_of(process: int) -> int:
    text = Path(f"/proc/{process}/stat").read_text()
    return int(text.rpartition(")")[2].split()[1])


def name_of(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


def below(process: int) -> list[int]:
    """Return the descendants of a process."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and parent_of(int(entry.name)) == process:
                found += [int(entry.name), *below(int(entry.name))]
        except OSError:
            continue
    return found


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """Stop a process, and continue it afterwards if it still exists."""
    identity = identity_of(process)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        if identity is not None and is_alive(identity):
            os.kill(process, signal.SIGCONT)
