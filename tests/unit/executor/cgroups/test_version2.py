"""Groups of version 2 in a fake tree: memory, processors and processes have not been run on a kernel in this suite."""

from pathlib import Path

import pytest

from messiahs.executor.linux.cgroups.contract import KEPT_BYTES, GroupLimits, GroupUsage
from messiahs.executor.linux.cgroups.version2 import GroupV2

MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a group of a kernel that has every controller, before anything ran in it."""
    folder = tmp_path / "3"
    folder.mkdir()
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "cpu.weight", "pids.max"):
        (folder / name).write_text("")
    for name in ("cgroup.procs", "cgroup.kill"):
        (folder / name).write_text("")
    count(folder, peak_bytes=0, kills=0, cpu_us=0)
    return folder


def count(folder: Path, *, peak_bytes: int, kills: int, cpu_us: int) -> None:
    (folder / "memory.peak").write_text(f"{peak_bytes}\n")
    (folder / "memory.events").write_text(f"low 0\nhigh 0\nmax 7\noom {kills}\noom_kill {kills}\noom_group_kill 0\n")
    (folder / "cpu.stat").write_text(f"usage_usec {cpu_us}\nuser_usec 1\nsystem_usec 2\n")


def test_limits_are_written_in_the_words_of_the_kernel(folder: Path) -> None:
    group = GroupV2(str(folder))
    assert group.limits == "memory, processes, processors"
    group.begin(GroupLimits(memory_bytes=64 * MIB, processors=2, processes=100))
    texts = {name: (folder / name).read_text() for name in ("memory.max", "memory.swap.max", "cpu.max", "cpu.weight")}
    assert texts == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "cpu.max": "200000 100000",
        "cpu.weight": "200",
    }
    assert ((folder / "pids.max").read_text(), (folder / "memory.oom.group").read_text()) == ("101", "1")


def test_without_limits_the_files_say_max(folder: Path) -> None:
    GroupV2(str(folder)).begin(GroupLimits())
    assert (folder / "memory.max").read_text() == "max"
    assert (folder / "pids.max").read_text() == "max"
    assert (folder / "cpu.max").read_text() == "max 100000"


def test_usage_is_what_was_added_since_the_attempt_began(folder: Path) -> None:
    count(folder, peak_bytes=10 * MIB, kills=2, cpu_us=5_000)
    group = GroupV2(str(folder))
    group.begin(GroupLimits())
    count(folder, peak_bytes=30 * MIB, kills=3, cpu_us=7_000)
    assert group.used() == GroupUsage(2_000_000, 30 * MIB, 1)


def test_memory_that_was_charged_before_counts_neither_for_the_limit_nor_for_the_peak(folder: Path) -> None:
    (folder / "memory.current").write_text(f"{10 * MIB}\n")
    (folder / "memory.swap.current").write_text(f"{3 * MIB}\n")
    group = GroupV2(str(folder))
    assert group.left_bytes() == 13 * MIB
    group.begin(GroupLimits(memory_bytes=64 * MIB))
    assert (folder / "memory.max").read_text() == str(74 * MIB)
    count(folder, peak_bytes=30 * MIB, kills=0, cpu_us=0)
    assert group.used().peak_memory_bytes == 20 * MIB


def test_more_memory_than_may_stay_in_a_group_adds_nothing_to_the_limit_of_a_task(folder: Path) -> None:
    (folder / "memory.current").write_text(f"{500 * MIB}\n")
    GroupV2(str(folder)).begin(GroupLimits(memory_bytes=64 * MIB))
    assert (folder / "memory.max").read_text() == str(64 * MIB + KEPT_BYTES)


def test_a_group_is_removed_once_no_process_is_in_it(tmp_path: Path) -> None:
    group = GroupV2(str(tmp_path / "5"))
    below = tmp_path / "5" / "process"
    below.mkdir()
    assert not group.close()
    below.rmdir()
    assert group.close()
    assert group.close()


def test_a_group_without_controllers_limits_nothing_and_still_kills(tmp_path: Path) -> None:
    folder = tmp_path / "4"
    folder.mkdir()
    (folder / "cgroup.kill").write_text("")
    (folder / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    (folder / "cpu.stat").write_text("usage_usec 0\n")
    group = GroupV2(str(folder))
    group.begin(GroupLimits(memory_bytes=MIB))
    assert (group.limits, group.kill()) == ("", False)
    assert (folder / "cgroup.kill").read_text() == "1"
    (folder / "cgroup.events").write_text("populated 0\nfrozen 0\n")
    assert group.kill()


def test_only_whole_processes_enter(folder: Path) -> None:
    group = GroupV2(str(folder))
    group.enter()
    assert (folder / "cgroup.procs").read_text() == "0"
    assert group.entries == (f"{folder}/cgroup.procs",)
    assert not group.has_inside
    with pytest.raises(NotImplementedError):
        group.inside(lambda: None)


def test_the_group_around_the_others_gives_them_its_controllers(folder: Path) -> None:
    (folder / "cgroup.controllers").write_text("cpu io memory\n")
    (folder / "cgroup.subtree_control").write_text("")
    GroupV2(str(folder), divides=True)
    assert (folder / "cgroup.subtree_control").read_text() == "+memory"
