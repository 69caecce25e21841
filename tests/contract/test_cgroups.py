"""Control groups of the kernel, of both versions: processes are born into them and end with them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.model.task_limits import TaskLimits
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import Held
from messiahs.executor.linux.cgroups.contract import Group, GroupLimits
from messiahs.executor.linux.cgroups.finding import find_place
from messiahs.executor.linux.cgroups.version1 import GroupV1
from messiahs.executor.linux.cgroups.version2 import GroupV2
from messiahs.executor.starter.task_groups import TaskGroups
from tests.contract.executor_rig import CLAIM, attempt_id
from tests.waiting import eventually

pytestmark = pytest.mark.processes

MIB = 1 << 20
BEGIN = """
import os, sys
from messiahs.executor.linux.cgroups.finding import find_place
from messiahs.executor.linux.kernel import keep_capabilities
from messiahs.executor.starter.capabilities import CHOWN, DAC_OVERRIDE, FOWNER, Capabilities
from messiahs.executor.starter.task_groups import TaskGroups

os.umask(0o077)
place, capabilities, uid = find_place(), None, int(sys.argv[2])
if uid:
    keep_capabilities(keeps=True)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    capabilities = Capabilities((CHOWN, DAC_OVERRIDE, FOWNER))
groups = TaskGroups(place, sys.argv[1], capabilities=capabilities)
print(groups.degraded)
if sys.argv[3:]:
    groups.close()
"""
"""A starter of an account begins with its groups, and removes them if a third word says so."""


def unified() -> Path | None:
    """Return the mount point of version 2, which may have no controllers for tasks."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)


@pytest.fixture(params=["version 1", "version 2"])
def group(request: pytest.FixtureRequest) -> Iterator[Group]:
    """Return a group without processes, which is removed afterwards."""
    if os.geteuid() != 0:
        pytest.skip("only root may create control groups")
    name = f"messiahs-test-{os.getpid()}"
    made: Group | None = None
    if request.param == "version 1" and (place := find_place().version1):
        made = GroupV1({controller: f"{folder}/{name}" for controller, folder in place.items()})
    elif request.param == "version 2" and (mount := unified()) is not None:
        made = GroupV2(str(mount / name))
    if made is None:
        pytest.skip(f"there are no groups of {request.param} here")
    yield made
    eventually(made.kill)
    eventually(made.close)
    assert not any(Path(entry).parent.exists() for entry in made.entries)


def started_in(group: Group, *argv: str) -> subprocess.Popen[bytes]:
    """Start a process that enters the group before it becomes a command."""
    enters = "".join(f"echo 0 >{entry}; " for entry in group.entries)
    process = subprocess.Popen(["sh", "-c", f'{enters}echo; exec "$@"', "sh", *argv], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as said:
        said.readline()
    return process


def test_killing_a_group_ends_everything_that_was_born_in_it(group: Group) -> None:
    group.begin(GroupLimits())
    hides = "setsid env -i setsid sleep 60 & cd /; setsid sleep 61 & exec sleep 62"
    process = started_in(group, "sh", "-c", hides)
    eventually(group.kill)
    assert process.wait() == -9


def test_killing_a_group_ends_a_process_that_takes_a_new_number_all_the_time(group: Group) -> None:
    if isinstance(group, GroupV1):
        assert "processes" in group.limits, "the place for groups of version 1 has the controller that forbids new ones"
    group.begin(GroupLimits())
    # Who signals the processes of a list finds none of them: each has ended and left a child.
    hops = "import os\nwhile os.fork() == 0: pass\nos._exit(0)"
    process = started_in(group, sys.executable, "-c", hops)
    assert process.wait() == 0
    eventually(group.kill)
    assert group.kill()


def test_an_empty_group_has_nothing_to_kill(group: Group) -> None:
    assert group.kill()


def test_processor_time_is_counted_from_the_beginning_of_each_attempt(group: Group) -> None:
    group.begin(GroupLimits())
    process = started_in(group, "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    assert process.wait() == 0
    busy = group.used().cpu_ns
    group.begin(GroupLimits())
    idle = group.used().cpu_ns
    assert busy is not None
    assert idle is not None
    assert 0 <= idle < busy


def test_memory_is_limited_and_its_kills_are_counted_where_the_group_can(group: Group) -> None:
    if "memory" not in group.limits:
        pytest.skip("this hierarchy has no memory controller")
    group.begin(GroupLimits(memory_bytes=32 * MIB))
    assert started_in(group, "tail", "-n", "1", "/dev/zero").wait() == -9
    used = group.used()
    assert used.memory_kills == 1
    assert used.peak_memory_bytes is not None
    assert 24 * MIB < used.peak_memory_bytes <= 32 * MIB


def test_children_are_born_into_the_group_of_a_call_inside(group: Group) -> None:
    if not group.has_inside:
        pytest.skip("all threads of a process are in one group here")
    group.begin(GroupLimits())
    process = group.inside(lambda: subprocess.Popen(["sleep", "60"]))
    assert any("messiahs-test" in line for line in Path(f"/proc/{process.pid}/cgroup").read_text().splitlines())
    assert not any("messiahs-test" in line for line in Path("/proc/self/cgroup").read_text().splitlines())
    eventually(group.kill)
    assert process.wait() == -9


@pytest.fixture
def groups() -> Iterator[TaskGroups]:
    """Return the groups of a starter, which limit memory."""
    if os.geteuid() != 0 or find_place().problem:
        pytest.skip("only root may create control groups, where there are some")
    groups = TaskGroups(find_place(), f"messiahs-test-{os.getpid()}")
    if "memory" not in groups.limits:
        pytest.skip("there is no memory controller here")
    yield groups
    groups.close()


@pytest.fixture
def handed_out() -> Iterator[Path]:
    """Return the name of a file in memory."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        yield Path(file.name)


def held(number: int, *, memory_bytes: int | None = None, slot: int = -1) -> Held:
    start = Start(
        attempt=attempt_id(number),
        claim=CLAIM,
        argv=("true",),
        env=(),
        places=1,
        limit_ns=None,
        lease_until=0,
        limits=TaskLimits(memory_bytes=memory_bytes),
    )
    return Held(attempt=start.attempt, folder=str(number), start=start, slot=slot)


def fill(group: Group | None, file: Path, *, mebibytes: int = 48) -> None:
    """Let a process of a group have a file in memory, which stays after its end."""
    assert group is not None
    command = ("dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={mebibytes}", "status=none")
    assert started_in(group, *command).wait() == 0


@pytest.mark.parametrize("slot", [-1, 0])
@pytest.mark.parametrize("mebibytes", [8, 48, 120])
def test_memory_that_outlives_a_task_counts_neither_for_the_limit_nor_for_the_peak_of_the_next_one(
    groups: TaskGroups, handed_out: Path, slot: int, mebibytes: int
) -> None:
    first, second = (held(number, memory_bytes=128 * MIB, slot=slot) for number in (1, 2))
    fill(groups.begin(first), handed_out, mebibytes=mebibytes)
    groups.end(first)
    if slot >= 0:
        # Its sandbox is not used again, and a new one enters the group of its number.
        assert groups.entries(slot)
    group = groups.begin(second)
    assert group is not None
    assert group.used().peak_memory_bytes == 0
    # Beside 8 MiB of a former task, this takes more than 128 MiB.
    assert started_in(group, sys.executable, "-c", f"kept = b'x' * {112 * MIB}").wait() == 0
    assert not group.used().memory_kills
    groups.end(second)
    assert second.usage is not None
    assert 112 * MIB <= (second.usage.peak_memory_bytes or 0) <= 128 * MIB


def test_a_group_with_little_memory_left_is_used_again_and_one_with_much_is_removed(
    groups: TaskGroups, handed_out: Path
) -> None:
    little, much, last = (held(number, memory_bytes=128 * MIB) for number in (1, 2, 3))
    charged = groups.begin(little)
    fill(charged, handed_out, mebibytes=8)
    groups.end(little)
    assert groups.begin(much) is charged
    fill(charged, handed_out)
    groups.end(much)
    assert charged is not None
    assert not any(Path(entry).exists() for entry in charged.entries)
    assert groups.begin(last) is not charged
    groups.end(last)


def test_a_task_that_ends_for_the_memory_of_all_is_not_told_that_it_reached_its_limit(groups: TaskGroups) -> None:
    task, place = held(1, memory_bytes=1024 * MIB), find_place()
    group = groups.begin(task)
    name = "memory.max" if place.version2 else "memory.limit_in_bytes"
    stem = Path(place.version2 or place.version1["memory"], f"messiahs-test-{os.getpid()}")
    (stem / name).write_text(str(64 * MIB))
    assert group is not None
    assert started_in(group, "tail", "-n", "1", "/dev/zero").wait() == -9
    task.signal = 9
    text = groups.end(task)
    assert text.startswith("the memory for all tasks of the machine was exhausted; its peak was 6")
    assert text.endswith(" MiB, below its limit of 1024.0 MiB")


def test_a_starter_uses_no_group_in_which_an_earlier_one_left_much_memory(groups: TaskGroups, handed_out: Path) -> None:
    earlier = groups.begin(held(1))
    fill(earlier, handed_out)
    later = TaskGroups(find_place(), f"messiahs-test-{os.getpid()}")
    own = later.begin(held(2))
    assert earlier is not None
    assert own is not None
    assert own.entries != earlier.entries
    later.close()


def test_a_starter_whose_group_was_removed_has_another_one(groups: TaskGroups) -> None:
    first = groups.begin(held(1))
    groups.release(held(1))
    assert first is not None
    for entry in first.entries:
        Path(entry).parent.rmdir()
    second = groups.begin(held(2, memory_bytes=128 * MIB))
    assert second is not None
    assert started_in(second, "true").wait() == 0


def test_a_starter_keeps_no_limit_that_an_earlier_one_has_set(groups: TaskGroups, handed_out: Path) -> None:
    earlier = held(1, memory_bytes=32 * MIB)
    groups.begin(earlier)
    later = TaskGroups(find_place(), f"messiahs-test-{os.getpid()}")
    fill(later.begin(held(2)), handed_out)
    later.close()


def test_a_starter_takes_over_what_one_of_another_account_left() -> None:
    if os.geteuid() != 0 or find_place().problem:
        pytest.skip("only root may create control groups, where there are some")
    stem, nobody = f"messiahs-left-{os.getpid()}", "65534"
    for words in (("0",), (nobody,), ("0",), (nobody, "removes")):
        done = subprocess.run([sys.executable, "-c", BEGIN, stem, *words], check=True, capture_output=True, text=True)
        assert done.stdout == "\n"
