"""What an attempt used is measured, and reported with its end."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from messiahs.core.interface.actions import EndAttempt, ResumeAttempt, SuspendAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.usage import Usage
from messiahs.executor.contract import AttemptState
from tests.contract.executor_rig import Rig, attempt_id
from tests.contract.task_files import ROOTS, starter_files

pytestmark = pytest.mark.processes

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]

MIB = 1 << 20
_BUSY = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"


@pytest.fixture(params=ROOTS)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    with starter_files(tmp_path, kind=request.param) as files:
        yield files.play


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
        rig.run(1, "sh", "-c", "echo ready; exec sleep 60")
        await rig.until(lambda: rig.output(1) == "ready\n")
        rig.executor.perform(SuspendAttempt(attempt=attempt_id(1)))
        (known,) = await rig.executor.running()
        assert known.state is AttemptState.SUSPENDED
        rig.executor.perform(ResumeAttempt(attempt=attempt_id(1)))
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        suspended_ns = (await usage_of(rig, 1)).suspended_ns
        assert suspended_ns is not None
        assert suspended_ns > 0

    play(act)


def test_a_task_that_never_started_used_nothing(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "/nowhere/to/be/found")
        assert (await rig.end_of(1)).usage is None

    play(act)
