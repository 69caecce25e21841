"""The limits of a task hold, where the machine has control groups: memory, processes, hidden descendants."""

import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt
from messiahs.core.model.task_limits import TaskLimits
from messiahs.executor.linux.cgroups.finding import find_place
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.layout import ATTEMPTS, TRASH, group_name
from tests.contract.executor_rig import BACK_ENDS, OFFSET_NS, Rig, attempt_id, play_scene, root_of
from tests.contract.task_files import ROOTS, Files, starter_files

pytestmark = pytest.mark.processes

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]

MIB = 1 << 20


in_images_too = pytest.mark.parametrize("files", ROOTS, indirect=True)


@pytest.fixture(params=BACK_ENDS)
def files(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Files]:
    """Return an executor whose starter has control groups, with a folder of inputs."""
    if problem := find_place(prepares=False).problem:
        pytest.skip(problem)
    with starter_files(tmp_path, kind=request.param) as files:
        yield files


@pytest.fixture
def settings(files: Files) -> StarterSettings:
    return files.settings


@pytest.fixture
def play(files: Files) -> Play:
    return files.play


@in_images_too
def test_a_task_that_takes_more_memory_than_it_stated_is_ended_and_told_its_peak(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "tail", "-n", "1", "/dev/zero", limits=TaskLimits(memory_bytes=64 * MIB))
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("memory_limit", 9)
        assert end.text.startswith("the task reached its memory limit of 64.0 MiB; its peak was 6")
        assert end.usage is not None
        assert end.usage.peak_memory_bytes is not None
        assert 60 * MIB <= end.usage.peak_memory_bytes <= 64 * MIB

    play(act)


_HALF = """
import pathlib, sys, time
kept = b"x" * (40 << 20)
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.02)
"""
"""A process that keeps its memory until another one has as much."""


def test_the_next_task_in_the_same_group_has_its_own_limit_and_its_own_counts(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "tail", "-n", "1", "/dev/zero", limits=TaskLimits(memory_bytes=64 * MIB))
        await rig.end_of(1)
        rig.run(2, "sh", "-c", "head -c 96M /dev/zero | tail -n 1 | wc -c", limits=TaskLimits(memory_bytes=256 * MIB))
        end = await rig.end_of(2)
        assert (end.cause, end.exit_code, rig.output(2)) == ("", 0, f"{96 * MIB}\n")
        rig.run(3, "true", limits=TaskLimits(memory_bytes=256 * MIB))
        end = await rig.end_of(3)
        assert end.usage is not None
        assert end.usage.peak_memory_bytes is not None
        assert end.usage.peak_memory_bytes < 32 * MIB

    play(act)


def test_memory_that_tasks_leave_on_the_machine_ends_no_later_task(play: Play, tmp_path: Path) -> None:
    limits = TaskLimits(memory_bytes=128 * MIB)
    files = [Path(f"/dev/shm/{tmp_path.parent.name}-{tmp_path.name}-{number}") for number in range(3)]

    async def act(rig: Rig) -> None:
        for number, file in enumerate(files):
            rig.run(2 * number, "sh", "-c", 'head -c 120M /dev/zero >"$0"', str(file), limits=limits)
            await rig.end_of(2 * number)
            rig.run(2 * number + 1, "python3", "-c", f"kept = bytearray(b'1') * {100 * MIB}", limits=limits)
            end = await rig.end_of(2 * number + 1)
            assert (end.cause, end.exit_code, end.text) == ("", 0, "")
            assert end.usage is not None
            assert 100 * MIB <= (end.usage.peak_memory_bytes or 0) < 128 * MIB
        # Groups that replaced others also end what hides in them.
        rig.run(10, "sh", "-c", "setsid env -i sleep 60 & exec true", limits=limits)
        assert (await rig.end_of(10)).exit_code == 0

    try:
        play(act)
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def test_the_memory_of_all_processes_of_a_task_counts_together(play: Play) -> None:
    async def act(rig: Rig) -> None:
        halves = 'python3 -c "$0" one other & python3 -c "$0" other one; wait'
        rig.run(1, "sh", "-c", halves, _HALF, limits=TaskLimits(memory_bytes=128 * MIB))
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == ("", 0)
        assert end.usage is not None
        assert end.usage.peak_memory_bytes is not None
        assert end.usage.peak_memory_bytes >= 64 * MIB

    play(act)


def test_all_tasks_together_leave_a_twentieth_of_the_memory(play: Play, settings: StarterSettings) -> None:
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    total_bytes = os.sysconf("SC_PHYS_PAGES") * page_bytes
    names = ("memory.max", "memory.limit_in_bytes")

    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60", limits=TaskLimits(memory_bytes=64 * MIB))
        await rig.start_of(1)
        limits = [
            int((folder / name).read_text())
            for folder in groups_of(settings)
            for name in names
            if (folder / name).exists()
        ]
        assert limits == [(total_bytes - total_bytes // 20) // page_bytes * page_bytes]

    play(act)


def test_a_task_cannot_have_more_processes_than_its_limit(play: Play) -> None:
    async def act(rig: Rig) -> None:
        script = "i=0; while [ $i -lt 4000 ]; do sleep 60 & i=$((i+1)); done"
        rig.run(1, "sh", "-c", script, limits=TaskLimits(memory_bytes=8_192 * MIB))
        end = await rig.end_of(1)
        assert end.exit_code == 2
        assert "fork" in rig.output(1, "stderr")
        rig.run(2, "sh", "-c", "sleep 0 & wait; echo still")
        assert (await rig.end_of(2)).exit_code == 0
        assert rig.output(2) == "still\n"

    play(act)


def test_a_task_of_one_processor_gets_about_one_for_its_two_busy_processes(play: Play) -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("with one processor, no task can have more")

    async def act(rig: Rig) -> None:
        busy = "timeout 3 sh -c 'while :; do :; done'"
        rig.run(1, "sh", "-c", f"{busy} & {busy} & wait", limits=TaskLimits(memory_bytes=256 * MIB))
        end = await rig.end_of(1)
        assert end.usage is not None
        assert end.usage.cpu_ns is not None
        # Two processors would be twice the time that passed.
        assert 0 < end.usage.cpu_ns < 1.3 * end.ran_ns

    play(act)


@in_images_too
def test_a_task_that_uses_more_disk_than_it_stated_is_ended(play: Play) -> None:
    async def act(rig: Rig) -> None:
        fills = "mkdir -p a/b; head -c 24M /dev/zero >a/b/c; exec sleep 60"
        rig.run(1, "sh", "-c", fills, limits=TaskLimits(disk_bytes=16 * MIB))
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert end.text.startswith("the task used 24.")
        assert end.text.endswith("more than its limit of 16.0 MiB: raise it with --disk SIZE")

    play(act)


KEEPS_DELETED = """
import ctypes, mmap, os, platform, threading, time
def goes_on_without_its_first_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
    # The call of this thread alone, of which the C library has none.
    ctypes.CDLL(None).syscall({{"x86_64": 60, "aarch64": 93}}[platform.machine()], 0)
def leaves_it_to_a_thread_with_its_own_table():
    has_own = threading.Event()
    def keep():
        ctypes.CDLL(None).unshare(0x400)
        has_own.set()
        time.sleep(600)
    threading.Thread(target=keep).start()
    has_own.wait()
{before}
with open("unseen", "w+b") as file:
    os.unlink("unseen")
    for _ in range(24):
        file.write(bytes(range(256)) * 4096)
    file.flush()
    {keeps}
time.sleep(600)
"""
"""A task that keeps 24 MiB without a name, in one of several ways."""


@pytest.mark.parametrize(
    ("before", "keeps"),
    [
        pytest.param("", "time.sleep(600)", id="open"),
        pytest.param("if os.fork(): time.sleep(600)", "time.sleep(600)", id="child"),
        # Not dumpable: no other process of the account may look into it.
        pytest.param("ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)", "time.sleep(600)", id="closed"),
        pytest.param("", "kept = mmap.mmap(file.fileno(), 0)", id="mapped"),
        pytest.param("", "goes_on_without_its_first_thread()", id="first-thread-ended"),
        pytest.param("", "leaves_it_to_a_thread_with_its_own_table()", id="own-table"),
    ],
)
def test_a_deleted_file_that_a_task_keeps_counts_as_its_disk(
    settings: StarterSettings, play: Play, before: str, keeps: str
) -> None:
    if settings.isolation != "sandbox" and (before.startswith("ctypes") or keeps.startswith("kept")):
        pytest.skip("only a starter that is root may look so deep")

    async def act(rig: Rig) -> None:
        script = KEEPS_DELETED.format(before=before, keeps=keeps)
        rig.run(1, "python3", "-c", script, limits=TaskLimits(disk_bytes=16 * MIB))
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert "more than its limit of 16.0 MiB" in end.text

    play(act)


NESTED = """
import os, time
for number in range({depth}):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
with open("big", "wb") as file:
    file.write(bytes(range(256)) * {mib} * 4096)
    os.fsync(file.fileno())
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("depth", "problem"),
    [(20, "the task used "), (300, "the disk that the task uses cannot be measured: its folders are nested")],
)
def test_nothing_is_hidden_below_a_path_that_is_too_long_to_name_and_all_of_it_is_removed(
    settings: StarterSettings, play: Play, depth: int, problem: str
) -> None:
    async def act(rig: Rig) -> None:
        script = NESTED.format(depth=depth, mib=24)
        rig.run(1, "python3", "-c", script, limits=TaskLimits(disk_bytes=16 * MIB))
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("disk_limit", 9)
        assert end.text.startswith(problem)
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        root = root_of(settings)
        await rig.until(lambda: not any((root / ATTEMPTS).iterdir()) and not any((root / TRASH).iterdir()))

    play(act)


def test_an_empty_file_counts_as_a_little_disk(play: Play) -> None:
    makes = "mkdir a; i=0; while [ $i -lt 600 ]; do : >a/$i; i=$((i+1)); done; exec sleep 600"

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", makes, limits=TaskLimits(disk_bytes=2 * MIB))
        end = await rig.end_of(1)
        assert end.cause == "disk_limit"
        assert end.text.endswith("more than its limit of 2.0 MiB: raise it with --disk SIZE")

    play(act)


def test_a_task_that_states_nothing_is_told_that_a_limit_is_the_machines(play: Play) -> None:
    limits = TaskLimits(memory_bytes=64 * MIB, disk_bytes=16 * MIB, of_site=("mem", "disk"))

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 24M /dev/zero >a; exec sleep 60", limits=limits)
        end = await rig.end_of(1)
        assert end.cause == "disk_limit"
        assert end.text.endswith(
            "more than this machine gives to one that states nothing, 16.0 MiB: state what it needs with --disk SIZE"
        )
        rig.run(2, "tail", "-n", "1", "/dev/zero", limits=limits)
        end = await rig.end_of(2)
        assert end.cause == "memory_limit"
        assert end.text.startswith(
            "the task reached what this machine gives to one that states nothing, 64.0 MiB of memory"
        )
        assert end.text.endswith("state what it needs with --mem SIZE")

    play(act)


def test_no_task_opens_more_files_than_the_site_allows(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -n 4096")
        assert (await rig.end_of(1)).exit_code != 0
        assert rig.output(1) == "1024\n2048\n"

    limited = replace(settings, open_files=1024, most_open_files=2048)
    play_scene(act, lambda: OsProcessExecutor(limited, boottime_offset_ns=OFFSET_NS))


def test_what_a_task_prints_counts_as_its_disk(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 24M /dev/zero; exec sleep 60", limits=TaskLimits(disk_bytes=16 * MIB))
        assert (await rig.end_of(1)).cause == "disk_limit"

    play(act)


def test_holes_in_files_and_further_names_use_no_disk(play: Play) -> None:
    async def act(rig: Rig) -> None:
        # It is looked at every second; the first task is ended after the second one was looked at, too.
        files = "truncate -s 1G hole; head -c 12M /dev/zero >a; ln a b; ln a c"
        rig.run(2, "sh", "-c", f"{files}; echo made; exec sleep 60", limits=TaskLimits(disk_bytes=16 * MIB))
        await rig.start_of(2)
        await rig.until(lambda: rig.output(2) == "made\n")
        for number in (3, 4):
            rig.run(number, "sh", "-c", "head -c 24M /dev/zero >a; exec sleep 60", limits=TaskLimits(disk_bytes=MIB))
            assert (await rig.end_of(number)).cause == "disk_limit"
        assert attempt_id(2) not in rig.ends()

    play(act)


def test_a_descendant_that_hides_everything_ends_with_its_task(play: Play) -> None:
    async def act(rig: Rig) -> None:
        limits = TaskLimits(memory_bytes=256 * MIB)
        rig.run(9, "sleep", "60", limits=limits)
        await rig.start_of(9)
        # Others may run this test on the same machine.
        seconds = str(1_000_000 + os.getpid())
        hides = f"prlimit --locks=7 --pid $$; cd /; exec env -i setsid setsid sleep {seconds}"
        rig.run(1, "sh", "-c", f"(setsid sh -c '{hides}' &) ; sleep 0.2", limits=limits)
        assert (await rig.end_of(1)).exit_code == 0
        assert seconds not in commands()

    play(act)


def commands() -> str:
    texts = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                texts.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
    return "\n".join(text for text in texts if text.startswith("sleep"))


def groups_of(settings: StarterSettings) -> list[Path]:
    """Return the control groups that a starter has in all hierarchies."""
    place = find_place(prepares=False)
    folders = filter(None, (place.version2, *place.version1.values()))
    return [found for folder in folders if (found := Path(folder) / group_name(settings.directory)).exists()]


def test_an_executor_that_ends_its_tasks_leaves_no_control_group(play: Play, settings: StarterSettings) -> None:
    had_groups: list[bool] = []

    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60")
        await rig.start_of(1)
        had_groups.append(bool(groups_of(settings)))

    play(act)
    assert had_groups == [True]
    assert groups_of(settings) == []
