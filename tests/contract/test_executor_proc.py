"""What a task of each back end finds of itself in /proc, from which programs such as psutil read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.executor_rig import KINDS, OFFSET_NS, Rig, play_scene, starter_settings

pytestmark = pytest.mark.processes

MOST_PROCESSES = 6
"""More than a task can see that has a namespace of processes: itself, the starter or what keeps the sandbox."""
SCRIPT = "read -r n rest </proc/self/stat; echo $n; echo $$; tr '\\0' ' ' </proc/$$/cmdline; echo; ls /proc"


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    """Return the settings of each kind of starter."""
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield settings


def test_a_task_finds_itself_and_no_other_process_under_its_number(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", SCRIPT)
        assert (await rig.end_of(1)).exit_code == 0
        shown, number, arguments, *listed = rig.output(1).splitlines()
        assert shown == number
        assert arguments.startswith("sh -c ")
        assert number in listed
        # Without a namespace, those of the machine are there.
        assert settings.uses_namespace == (len([name for name in listed if name.isdecimal()]) < MOST_PROCESSES)

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))
