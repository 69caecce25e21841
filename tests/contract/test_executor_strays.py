"""Processes that a task leaves behind end with it, however they hide, and no other process does."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import KINDS, OFFSET_NS, Rig, attempt_id, play_scene, starter_settings

pytestmark = pytest.mark.processes

LONG_NAP = str(10_000_000 + os.getpid())
"""A number of seconds for which no other process sleeps."""

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]


_SAY_DEGRADED = """
import sys
from pathlib import Path
from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import OFFSET_NS, Rig, play_scene, starter_settings

async def act(rig: Rig) -> None:
    print(rig.executor.degraded)

with starter_settings(Path(sys.argv[1]), kind=sys.argv[2]) as settings:
    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))
"""


@pytest.fixture(params=KINDS)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Play a scene with a fresh executor of each kind of starter."""
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield lambda act: play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


@pytest.mark.parametrize(
    "leaving",
    [
        "setsid sleep $0 & sleep 0.05",
        "cd /; setsid env -i sleep $0 & sleep 0.05",
        "cd /; exec env -i sh -c 'setsid sh -c \"sleep $0 & wait\" & sleep 0.05' $0",
        "cd /; prlimit --locks=123456789: setsid env -i setsid sleep $0 & sleep 0.05",
    ],
)
def test_processes_left_by_a_task_end_with_it_while_another_runs(play: Play, leaving: str) -> None:
    async def act(rig: Rig) -> None:
        await leave_behind(rig, leaving)

    play(act)


@pytest.mark.parametrize(
    "leaving",
    [
        "setsid unshare -Urfp setsid sleep $0 & sleep 0.1; kill -9 $!",
        "unshare -Urfp setsid sh -c 'setsid sleep $0 & sleep $0' $0 & sleep 0.1; kill -9 $!",
    ],
)
def test_a_stray_in_a_process_namespace_of_its_own_is_ended_and_nothing_else(play: Play, leaving: str) -> None:
    async def act(rig: Rig) -> None:
        await leave_behind(rig, leaving)
        assert rig.losses == []

    play(act)


async def leave_behind(rig: Rig, leaving: str) -> None:
    """Let a task leave a process behind while another runs; check that only that process ends with the task."""
    rig.run(1, "sleep", "60")
    await rig.start_of(1)
    rig.run(2, "sh", "-c", leaving, LONG_NAP)
    end = await rig.end_of(2)
    assert (end.cause, end.text) == ("", "")
    assert nappers() == []
    assert attempt_id(1) not in rig.ends()


def nappers() -> list[Path]:
    """Return the processes of this machine that sleep for that time."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and (entry / "cmdline").read_bytes() == f"sleep\0{LONG_NAP}\0".encode():
                found.append(entry)
    return found


@pytest.mark.parametrize("kind", ["namespace", "degraded"])
def test_a_starter_reports_that_it_cannot_mark_processes(tmp_path: Path, *, kind: str) -> None:
    command = ["prlimit", "--locks=0:0", sys.executable, "-c", _SAY_DEGRADED, str(tmp_path), kind]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.count("the hard limit on file locks is 0") == 1
    assert kind == "namespace" or said.startswith("switched off: ")
