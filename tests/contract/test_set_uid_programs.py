"""Set-uid programs that a task leaves in its folder: nobody else on the host reaches them, and becomes its account."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.escape_rig import contained, executor_of
from tests.contract.executor_rig import Rig, play_scene, root_of

pytestmark = pytest.mark.processes
_STRANGER = 64_321
_LEAVE = """
cp /bin/true program && chmod 6755 program && chmod 755 . && mv program set-uid
while [ -e set-uid ]; do sleep 0.05; done
"""


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


@pytest.mark.skipif(os.geteuid() != 0, reason="only tasks of root's modules have an account of their own")
@pytest.mark.parametrize("settings", ["process", "bubblewrap", "sandbox"], indirect=True)
def test_no_other_account_runs_a_set_uid_program_that_a_task_left(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", _LEAVE)
        await rig.until(lambda: any(_left(settings)))
        (program,) = _left(settings)
        assert program.stat().st_mode & 0o6000 == 0o6000
        with pytest.raises(PermissionError):
            _run_as_stranger(program)
        program.unlink()
        assert (await rig.end_of(1)).exit_code == 0, rig.output(1, "stderr")

    play_scene(act, lambda: executor_of(settings))


def _left(settings: StarterSettings) -> list[Path]:
    return list(root_of(settings).glob("*/*/work/set-uid"))


def _run_as_stranger(program: Path) -> None:
    subprocess.run([program], user=_STRANGER, group=_STRANGER, extra_groups=[], check=False)
