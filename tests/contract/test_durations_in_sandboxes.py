"""How long tasks in sandboxes have run: at least from their own first line to their last one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.escape_rig import MAKES, contained, executor_of, image_for
from tests.contract.executor_rig import Rig, play_scene

pytestmark = pytest.mark.processes

_TASKS = range(1, 6)
_FIRST_AND_LAST = "cut -d' ' -f1 /proc/uptime; sleep 0.1; cut -d' ' -f1 /proc/uptime"
_UPTIME_STEP_NS = 10_000_000
_UNIT_NS = 1_000_000_000


@pytest.fixture(params=MAKES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


def test_a_task_has_run_at_least_from_its_first_line_to_its_last_one(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        for number in _TASKS:
            rig.run(number, "sh", "-c", _FIRST_AND_LAST)
            end = await rig.end_of(number)
            assert (end.exit_code, end.text) == (0, "")
            first, last = (float(line) for line in rig.output(number).splitlines())
            assert end.ran_ns >= (last - first) * _UNIT_NS - _UPTIME_STEP_NS

    play_scene(act, lambda: executor_of(settings), image=image_for(settings))
