"""Changes of one task to the starter's folders affect no later task, lose no other task, and stop no module."""

import os
import pwd
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.layout import task_account
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, starter_settings

pytestmark = pytest.mark.processes

LATER = range(10, 90)
"""More tasks than there are folders in the pool."""
_POISON = """
for work in ../../../pool/*/work ../../../pool ../../../attempts/*/work ../../../trash/*/work ..; do
    echo "raise SystemExit('poisoned')" >"$work/json.py"
    echo "exit 99" >"$work/.profile"
done 2>/dev/null
ls ../../../pool; true
"""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path) as settings:
        yield settings


def executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


def test_nothing_that_a_task_writes_to_the_pool_is_visible_to_a_later_one(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", _POISON)
        await rig.end_of(1)
        if task_account(settings.task_uids).uid != os.geteuid():
            assert rig.output(1) == ""
        for number in LATER:
            rig.run(number, "ls", "-A")
        for number in LATER:
            await rig.end_of(number)
            assert rig.output(number) == ""

    play_scene(act, lambda: executor_of(settings))


@pytest.mark.parametrize("mode", ["777", "0"])
def test_no_change_of_mode_by_a_task_loses_others_or_keeps_the_starter_from_starting(
    settings: StarterSettings, mode: str
) -> None:
    folders = "../../../pool ../../../trash ../.. ../../.."

    async def first(rig: Rig) -> None:
        rig.run(1, "echo", "kept")
        await rig.end_of(1)
        rig.run(2, "sh", "-c", f"for one in {folders}; do chmod {mode} $one; done 2>/dev/null")
        await rig.end_of(2)
        assert rig.output(1) == "kept\n"
        for number in LATER:
            rig.run(number, "echo", "well")
        for number in LATER:
            assert (await rig.end_of(number)).exit_code == 0
            assert rig.output(number) == "well\n"
        rig.run(3, "sh", "-c", f"for one in {folders}; do chmod {mode} $one; done 2>/dev/null")
        await rig.end_of(3)

    async def second(rig: Rig) -> None:
        assert rig.output(1) == "kept\n"
        rig.run(4, "echo", "well")
        assert (await rig.end_of(4)).exit_code == 0

    play_scene(first, lambda: executor_of(settings))
    play_scene(second, lambda: executor_of(settings))


def test_folders_that_an_earlier_release_gave_to_the_account_of_tasks_are_taken_over(settings: StarterSettings) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, whose tasks had another account")
    account = pwd.getpwnam("nobody")
    settings = replace(settings, directory=settings.fallback / "starter")
    settings.directory.mkdir()
    root = settings.directory / "tasks"
    for name in ("", "attempts", "pool", "pool/7", "pool/7/work", "trash"):
        (root / name).mkdir(mode=0o700)
        os.chown(root / name, account.pw_uid, account.pw_gid)
    (root / "pool/7/work/json.py").touch()

    async def act(rig: Rig) -> None:
        rig.run(1, "ls", "-A")
        assert (await rig.end_of(1)).exit_code == 0
        assert rig.output(1) == ""
        for name in ("", "attempts", "pool", "trash"):
            assert (root / name).stat().st_uid == 0
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        await rig.until(lambda: not (root / "pool/7").exists() and not list((root / "trash").iterdir()))

    play_scene(act, lambda: executor_of(settings))
