"""What an attempt used is measured, and reported with its end."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from messiahs.core.interface.actions import ResumeAttempt, SuspendAttempt
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.usage import Usage
from messiahs.executor.contract import AttemptState
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.executor_rig import BACK_ENDS, OFFSET_NS, Rig, attempt_id, play_scene, starter_settings

pytestmark = pytest.mark.processes

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]

MIB = 1 << 20
_BUSY = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"


@pytest.fixture(params=BACK_ENDS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield settings


@pytest.fixture
def play(settings: StarterSettings) -> Play:
    return lambda act: play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


async def usage_of(rig: Rig, number: int) -> Usage:
    usage = (await rig.end_of(number)).usage
    assert usage is not None
    return usage


def test_the_processor_time_of_all_processes_of_a_task_is_counted(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", f"({_BUSY}) & ({_BUSY}); wait; times")
        busy = await usage_of(rig, 1)
        assert busy.cpu_ns is not None
        # The second line of `times` has what the children of the shell used.
        minutes, seconds = rig.output(1).splitlines()[1].split()[0].removesuffix("s").split("m")
        assert busy.cpu_ns >= (int(minutes) * 60 + float(seconds) - 0.02) * SECOND
        assert busy.cpu_ns >= 20 * MILLISECOND

    play(act)


def test_the_peak_of_the_memory_of_a_task_is_known_after_it_has_freed_it(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 128M /dev/zero | tail -n 1 | wc -c")
        peak = (await usage_of(rig, 1)).peak_memory_bytes
        assert peak is not None
        assert 128 * MIB <= peak < 256 * MIB

    play(act)


def test_what_a_task_wrote_is_counted(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 8M /dev/zero >a")
        written = (await usage_of(rig, 1)).written_bytes
        assert written is not None
        assert written >= 8 * MIB

    play(act)


def test_the_time_for_which_a_task_was_suspended_is_counted(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "0.2")
        await rig.start_of(1)
        rig.executor.perform(SuspendAttempt(attempt=attempt_id(1)))
        (known,) = await rig.executor.running()
        assert known.state is AttemptState.SUSPENDED
        rig.executor.perform(ResumeAttempt(attempt=attempt_id(1)))
        suspended_ns = (await usage_of(rig, 1)).suspended_ns
        assert suspended_ns is not None
        assert suspended_ns > 0

    play(act)


def test_a_task_that_never_started_used_nothing(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "/nowhere/to/be/found")
        assert (await rig.end_of(1)).usage is None

    play(act)
