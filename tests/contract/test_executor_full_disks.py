"""The last twentieth of a disk, of bytes and of inodes, is not for tasks: whichever grows there is ended."""

import re
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt
from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import BACK_ENDS, OFFSET_NS, Rig, attempt_id, play_scene, starter_settings
from tests.live.disks import fill, mounted

pytestmark = pytest.mark.processes

MIB = 1 << 20


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_task_that_grows_on_the_last_twentieth_is_ended_and_a_small_one_is_not(tmp_path: Path, kind: str) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 8M /dev/zero >small; echo there; exec sleep 600")
        await rig.until(lambda: rig.output(1) == "there\n")
        rig.run(2, "sh", "-c", "head -c 78M /dev/zero >large; sleep 2; head -c 12M /dev/zero >>large; exec sleep 600")
        end = await rig.end_of(2)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        # It is ended as soon as it is seen there, which may be before it has written all. The starter reads its size
        # first and the free space then, so the task pauses at a size that still leaves enough.
        found = re.fullmatch(
            r"the task used (\d+)\.\d MiB of disk, and the last twentieth of it is not for tasks", end.text
        )
        assert (found is not None and 78 <= int(found[1]) <= 90, len(rig.ends())) == (True, 1), end.text

    # Closed to the tasks' account, so that their folders are on the disk.
    tmp_path.chmod(0o700)
    disk = ("-t", "tmpfs", "-o", "size=256m,mode=711", "tmpfs")
    with starter_settings(tmp_path, kind=kind) as settings, mounted(settings.fallback, *disk):
        fill(settings.fallback, leave_bytes=100 * MIB)
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_task_that_fills_a_disk_with_a_deleted_file_is_ended_before_it_is_full(tmp_path: Path, kind: str) -> None:
    # From the last twentieth on, it grows at every look, and by so little that dozens of looks come before the end.
    fills = (
        "exec 3>gone; rm gone; "
        "while [ $(($(stat -f -c '%a*%S/1048576' .))) -ge 12 ]; do head -c 1M /dev/zero >&3; done; "
        "while head -c 16K /dev/zero >&3; do sleep 0.05; done; echo full; exec sleep 600"
    )

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", fills)
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert rig.output(1) == ""

    tmp_path.chmod(0o700)
    disk = ("-t", "tmpfs", "-o", "size=256m,mode=711", "tmpfs")
    with starter_settings(tmp_path, kind=kind) as settings, mounted(settings.fallback, *disk):
        fill(settings.fallback, leave_bytes=90 * MIB)
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_task_of_one_user_that_fills_a_disk_and_stops_is_ended_and_the_next_that_grows_is_not(
    tmp_path: Path, kind: str
) -> None:
    grows = (
        "head -c 95M /dev/zero >mine; sync mine; "
        "until [ $(($(stat -f -c '%a*%S/1048576' .))) -gt 100 ]; do sleep 0.1; done; echo room"
    )

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 150M /dev/zero >most; echo there; exec sleep 600")
        await rig.until(lambda: rig.output(1) == "there\n")
        rig.run(2, "sh", "-c", grows)
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert end.text.startswith("the task used 150.")
        assert end.text.endswith("and the last twentieth of it is not for tasks")
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        assert (await rig.end_of(2)).exit_code == 0
        assert rig.output(2) == "room\n"

    tmp_path.chmod(0o700)
    disk = ("-t", "tmpfs", "-o", "size=256m,mode=711", "tmpfs")
    with starter_settings(tmp_path, kind=kind) as settings, mounted(settings.fallback, *disk):
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_task_that_fills_a_small_disk_is_ended_before_it_has_64_mebibytes(tmp_path: Path, kind: str) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 1M /dev/zero >small; exec sleep 600")
        rig.run(2, "sh", "-c", "head -c 40M /dev/zero >large; exec sleep 600")
        end = await rig.end_of(2)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert end.text.endswith("MiB of disk, and the last twentieth of it is not for tasks")
        assert len(rig.ends()) == 1

    tmp_path.chmod(0o700)
    disk = ("-t", "tmpfs", "-o", "size=24m,mode=711", "tmpfs")
    with starter_settings(tmp_path, kind=kind) as settings, mounted(settings.fallback, *disk):
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_task_that_ends_by_itself_on_a_full_disk_says_so(tmp_path: Path, kind: str) -> None:
    remark = "the disk of its folder was full when it ended: what it wrote may be missing"

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "echo lost; exit 3")
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause, end.text) == (3, "", remark)
        assert rig.output(1) == ""
        filler.unlink()
        rig.run(2, "echo", "there")
        end = await rig.end_of(2)
        assert (end.exit_code, end.text, rig.output(2)) == (0, "", "there\n")

    tmp_path.chmod(0o700)
    disk = ("-t", "tmpfs", "-o", "size=24m,mode=711", "tmpfs")
    with starter_settings(tmp_path, kind=kind) as settings, mounted(settings.fallback, *disk):
        filler = fill(settings.fallback)
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_task_that_takes_the_last_inodes_is_ended_and_the_next_one_runs(tmp_path: Path, kind: str) -> None:
    makes = "(i=0; while : >$i; do i=$((i+1)); done); exec sleep 600"

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", makes)
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert end.text.endswith("the last twentieth of what its disk can have is not for tasks")
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        rig.run(2, "sh", "-c", "until mkdir found 2>/dev/null; do sleep 0.1; done; echo found")
        assert (await rig.end_of(2)).exit_code == 0

    tmp_path.chmod(0o700)
    disk = ("-t", "tmpfs", "-o", "size=256m,mode=711,nr_inodes=3000", "tmpfs")
    with starter_settings(tmp_path, kind=kind) as settings, mounted(settings.fallback, *disk):
        play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))
