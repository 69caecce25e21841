"""How tasks are contained: what was chosen, without a choice what works here, and what is said where it does not."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.escape_rig import executor_of, output_of
from tests.contract.executor_rig import Rig, play_scene, starter_settings

pytestmark = pytest.mark.processes
SAY = """
import sys
from dataclasses import replace
from pathlib import Path
from messiahs.errors import ExecutorError
from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import OFFSET_NS, Rig, play_scene, starter_settings

async def act(rig: Rig) -> None:
    print(f"{rig.executor.isolation}: {rig.executor.degraded}")

with starter_settings(Path(sys.argv[1])) as settings:
    settings = replace(settings, isolation=sys.argv[2], network=(*sys.argv[3:], settings.network)[0])
    try:
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))
    except ExecutorError as error:
        print(f"refused: {error}")
"""

FIND = """
import sys
from dataclasses import replace
from pathlib import Path
from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import OFFSET_NS, Rig, play_scene, starter_settings

async def act(rig: Rig) -> None:
    rig.run(1, "sh", "-c", "read -r n rest </proc/self/stat; echo $n $$; cat /proc/$$/comm")
    assert (await rig.end_of(1)).exit_code == 0
    print(rig.executor.isolation, rig.output(1))

with starter_settings(Path(sys.argv[1])) as settings:
    settings = replace(settings, isolation=sys.argv[2])
    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))
"""
OLD = """
import os, sys
from tests.old_linux import be_on_old_linux
be_on_old_linux()
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path, kind="sandbox") as settings:
        yield settings


@pytest.mark.parametrize(
    ("isolation", "lacking", "said"),
    [
        ("sandbox", "sys_admin", "refused: tasks cannot be run in sandboxes here: unshare: Operation not permitted"),
        ("", "sys_admin", "process: (.*; )?no sandboxes: unshare: Operation not permitted"),
        # The first sandbox was begun, and left nothing that its successors cannot use.
        ("", "setpcap", "process: no sandboxes: bounding set: Operation not permitted"),
        ("", "net_admin", "process: no sandboxes: loopback: Operation not permitted"),
    ],
)
def test_where_sandboxes_do_not_work_the_starter_says_why(
    tmp_path: Path, isolation: str, lacking: str, said: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    without = ("setpriv", f"--bounding-set=-{lacking}", f"--inh-caps=-{lacking}")
    command = [*without, sys.executable, "-c", SAY, str(tmp_path), isolation]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert re.fullmatch(said, told), told


@pytest.mark.parametrize(
    ("isolation", "said"),
    [
        ("sandbox", "refused: tasks cannot be run in sandboxes here: {why}"),
        ("", "process: (.*; )?no sandboxes: {why}"),
        ("process", "process:.*"),
    ],
)
def test_where_linux_is_too_old_for_sandboxes_the_starter_says_so(tmp_path: Path, isolation: str, said: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    command = [sys.executable, "-c", OLD, sys.executable, "-c", SAY, str(tmp_path), isolation]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    why = "they need openat2 .Linux 5[.]6., which Linux .* does not have, or does not let this process use"
    assert re.fullmatch(said.format(why=why), told), told


def test_a_task_finds_itself_in_proc_also_where_there_are_no_sandboxes_although_nobody_chose_that(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, for whom sandboxes are the default")
    command = [sys.executable, "-c", OLD, sys.executable, "-c", FIND, str(tmp_path), ""]
    isolation, shown, number, name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert (isolation, name) == ("process", "sh")
    assert shown == number


def test_without_a_choice_tasks_run_in_sandboxes_if_they_can(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        assert rig.executor.degraded == ""
        first, last = settings.task_uids
        assert first <= int(await output_of(rig, 1, "id -u")) <= last

    play_scene(act, lambda: executor_of(replace(settings, isolation="")))


@pytest.mark.parametrize("chosen", ["sandbox", ""])
def test_a_starter_that_was_there_before_a_choice_says_that_it_has_to_end(
    settings: StarterSettings, chosen: str
) -> None:
    async def act(rig: Rig) -> None:
        await rig.executor.stop(end_tasks=False)
        later = await Rig(executor_of(replace(settings, isolation=chosen))).started()
        try:
            assert later.executor.isolation == "process"
            assert "earlier daemon still isolates tasks as `process`" in later.executor.degraded
        finally:
            await later.executor.stop(end_tasks=True)

    play_scene(act, lambda: executor_of(replace(settings, isolation="process")))
