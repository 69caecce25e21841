"""What a task in a sandbox can try, and what comes of it: each test is one way out that is closed, for both makes.

The same holds for a task that runs in an image.
"""

import platform
import signal
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt, EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.executor.linux.seccomp import FORBIDDEN
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import recorded_identity
from messiahs.executor.protocol.layout import ATTEMPTS, SLOTS
from tests.contract.escape_rig import MAKES, contained, executor_of, image_for, output_of
from tests.contract.executor_rig import Rig, attempt_id, play_scene, processes_of, root_of

pytestmark = pytest.mark.processes

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]

_COLUMN = {"x86_64": 0, "aarch64": 1}
_CALL = """
import ctypes, os, sys
library = ctypes.CDLL(None, use_errno=True)
for number in sys.argv[1:]:
    result = library.syscall(int(number), *[ctypes.c_long(-1)] * 6)
    print(number, result, os.strerror(ctypes.get_errno()))
"""
_FILTER = """
import ctypes, os, sys
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))
allowed = Program(length=1, instructions=bytes((6, 0, 0, 0, 0, 0, 255, 127)))
library = ctypes.CDLL(None, use_errno=True)
print(library.syscall(int(sys.argv[1]), 1, 8, ctypes.byref(allowed)), os.strerror(ctypes.get_errno()))
print(library.syscall(int(sys.argv[1]), 1, 0, ctypes.byref(allowed)))
"""
_NAMESPACES = """
import ctypes, os
library = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x20000, 0x40000000, 0x8000000, 0x20000000, 0x10000000 | 0x20000):
    print(library.unshare(flag), os.strerror(ctypes.get_errno()))
print(library.mount(b"none", b"/tmp", b"tmpfs", 0, None), os.strerror(ctypes.get_errno()))
print(library.umount2(b"/proc", 2), os.strerror(ctypes.get_errno()))
print(library.personality(0x0040000), os.strerror(ctypes.get_errno()))
"""


@pytest.fixture(params=MAKES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


only_own = pytest.mark.parametrize("settings", ["sandbox"], indirect=True)
"""For what bubblewrap does not have: an account and a process for each slot."""


@pytest.fixture
def play(settings: StarterSettings) -> Play:
    return lambda act: play_scene(act, lambda: executor_of(settings), image=image_for(settings))


def test_a_task_has_no_capability_and_can_gain_none(play: Play) -> None:
    async def act(rig: Rig) -> None:
        status = await output_of(rig, 1, "cat /proc/self/status")
        found = dict(line.split(":\t", 1) for line in status.splitlines())
        assert {int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
        assert [len(set(found[name].split())) for name in ("Uid", "Gid")] == [1, 1]

    play(act)


def test_every_forbidden_system_call_is_refused(play: Play) -> None:
    numbers = [str(both[_COLUMN[platform.machine()]]) for both in FORBIDDEN.values()]

    async def act(rig: Rig) -> None:
        rig.run(1, "python3", "-c", _CALL, *numbers)
        await rig.end_of(1)
        refused = [f"{number} -1 Operation not permitted" for number in numbers]
        assert rig.output(1).splitlines() == refused

    play(act)


def test_a_task_filters_its_own_calls_and_answers_none_of_others(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "python3", "-c", _FILTER, str((317, 277)[_COLUMN[platform.machine()]]))
        await rig.end_of(1)
        assert rig.output(1).splitlines() == ["-1 Operation not permitted", "0"]

    play(act)


def test_a_task_makes_no_namespaces_and_no_mounts(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "python3", "-c", _NAMESPACES)
        await rig.end_of(1)
        assert set(rig.output(1).splitlines()) == {"-1 Operation not permitted"}
        assert "not permitted" in await output_of(rig, 2, "unshare -Ur true")

    play(act)


def test_a_program_of_another_architecture_is_killed(play: Play) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("only x86-64 has a second table of system calls that this can try")
    # 0x40000000 marks the calls of x32: this is its `getpid`.
    call = "import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39); print('went on')"

    async def act(rig: Rig) -> None:
        rig.run(1, "python3", "-c", call)
        assert (await rig.end_of(1)).signal == signal.SIGSYS
        assert rig.output(1) == ""

    play(act)


def test_a_task_sees_its_own_processes_only_and_signals_no_others(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "600")
        await rig.start_of(1)
        starter = recorded_identity(settings.directory)
        assert starter is not None
        seen = await output_of(rig, 2, "echo /proc/[0-9]*; cat /proc/1/status; kill -9 1 -1; ls /proc/1/fd; true")
        numbers = seen.splitlines()[0].split()
        # The init of a box of bubblewrap has the account of its task, and cannot do more.
        own = [number for number in numbers if number != "/proc/1" or settings.isolation == "sandbox"]
        assert ("/proc/1" not in own, len(own) <= 2) == (True, True)
        await rig.executor.running()
        assert attempt_id(1) not in rig.ends()
        await rig.until(lambda: bool(processes_of(settings, 1)))
        rig.run(3, "sh", "-c", f"kill -9 {starter.pid}; kill -9 {processes_of(settings, 1)[0]}; kill -STOP 1; true")
        await rig.end_of(3)
        assert (attempt_id(1) in rig.ends(), rig.losses) == (False, [])

    play(act)


def test_a_task_reads_nothing_of_another_and_of_the_module(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "echo secret >here; echo ready; sleep 600")
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1) == "ready\n")
        root = root_of(settings)
        places = (root, root / ATTEMPTS, root / SLOTS / "0", settings.directory, "/root", "/home", "/run", "/var/tmp")
        script = "; ".join(f"ls -A {place}" for place in places)
        seen = await output_of(rig, 2, f"{script}; cat {root}/*/*/here {root}/*/*/work/here ../here")
        assert "secret" not in seen
        for name in ("attempts", "starter", "journal", "work"):
            assert name not in [line for line in seen.splitlines() if ":" not in line]
        # Who may list its folder finds its own working directory there alone.
        listed = await output_of(rig, 3, "ls -A /task; true")
        can_list = settings.isolation == "bubblewrap"
        assert [line for line in listed.splitlines() if ":" not in line] == (["work"] if can_list else [])

    play(act)


def test_a_task_has_namespaces_of_its_own(play: Play) -> None:
    links = [Path(f"/proc/self/ns/{kind}") for kind in ("ipc", "mnt", "pid", "uts")]
    own = [str(link.readlink()) for link in links]

    async def act(rig: Rig) -> None:
        rig.run(
            1, "python3", "-c", "import os, sys; [print(os.readlink(link)) for link in sys.argv[1:]]", *map(str, links)
        )
        await rig.end_of(1)
        seen = rig.output(1).splitlines()
        assert [each.partition(":")[0] for each in seen] == ["ipc", "mnt", "pid", "uts"], rig.output(1, "stderr")
        assert not set(seen) & set(own)

    play(act)


def test_a_task_has_a_bounded_number_of_processes(play: Play) -> None:
    async def act(rig: Rig) -> None:
        limit = await output_of(rig, 1, "grep 'Max processes' /proc/self/limits")
        assert limit.split()[2:4] == ["8192", "8192"]

    play(act)


def test_no_task_makes_itself_a_less_likely_victim_of_lack_of_memory(play: Play) -> None:
    lower = "for score in 999 0 -1; do echo $score >/proc/self/oom_score_adj && echo lowered; done 2>/dev/null"

    async def act(rig: Rig) -> None:
        # The second one is the next in the slot of the first one.
        for number in (1, 2):
            seen = await output_of(rig, number, f"{lower}; cat /proc/self/oom_score_adj; echo written >>/dev/stdout")
            assert seen == "1000\nwritten\n"

    play(act)


def test_nothing_that_a_task_leaves_is_found_by_the_next_one_in_its_slot(play: Play) -> None:
    leave = """
        echo bad >/tmp/json.py; mkdir -p /dev/shm/a/b; echo bad >/var/tmp/x; ipcmk -M 4096 -S 1 -Q >/dev/null
        python3 -c 'import os; os.setxattr(".", "user.left", b"x")'; chattr +d . ; touch here
        setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' & (setsid setsid sleep 600 &) ; sleep 0.05
    """
    look = "ls -A /tmp /dev/shm /var/tmp .; ipcs | grep -c 0x; ps ax | grep -c slee[p]; getfattr -d . ; lsattr -d ."

    async def act(rig: Rig) -> None:
        clean = await output_of(rig, 1, look)
        for number in (2, 4, 6):
            await output_of(rig, number, leave)
            rig.executor.perform(DiscardAttempt(attempt=attempt_id(number)))
            assert await output_of(rig, number + 1, look) == clean

    play(act)


_CONNECTION = """
import socket
with socket.create_server(("127.0.0.1", 5555)) as server:
    link = socket.create_connection(("127.0.0.1", 5555))
    server.accept()[0].close()
    link.close()
"""
_PORT = """
import socket
link = socket.socket()
link.bind(("127.0.0.1", 5555))
"""
_QUEUE = """
import ctypes
queue = ctypes.CDLL(None).mq_open(b"/left", {flags}, 0o600, None)
print("a queue" if queue >= 0 else "no queue")
"""
LEFT = {
    "memory": "ipcmk -M 4096",
    "semaphores": "ipcmk -S 1",
    "messages": "ipcmk -Q",
    "queue": f"python3 -c '{_QUEUE.format(flags=0o102)}'",
    "connection": f"python3 -c '{_CONNECTION}'",
    "weight": "echo 19 >/proc/self/autogroup",
    "file in memory": "echo >/dev/shm/left",
    "temporary file": "echo >/tmp/left",
    "link": "ln -s none /var/tmp/left",
    "attribute": """python3 -c 'import os; os.setxattr(".", "user.left", b"x")'""",
    "flag": "chattr +d .",
    "time": "touch -d 2001-01-01 .",
}


def test_nothing_of_one_kind_that_a_task_leaves_is_found_by_the_next_one(play: Play) -> None:
    look = f"""
        ls -A /tmp /dev/shm /var/tmp .; ipcs | grep -c 0x; getfattr -d . ; lsattr -d . ; date -r . +%Y
        python3 -c '{_QUEUE.format(flags=0)}'; python3 -c '{_PORT}'; grep -c : /proc/net/tcp
        read -r _ _ weight </proc/self/autogroup; echo "$weight"
    """

    async def act(rig: Rig) -> None:
        numbers = count(1)
        clean = await output_of(rig, next(numbers), look)
        for what, leave in LEFT.items():
            # The first tasks in a slot change nothing, so everything in it is used again.
            for _ in range(2):
                assert await output_of(rig, next(numbers), look) == clean
            await output_of(rig, next(numbers), leave)
            assert (what, await output_of(rig, next(numbers), look)) == (what, clean)

    play(act)


@only_own
def test_a_slot_has_a_new_network_once_its_task_has_used_it_and_ends_if_it_was_handed_over(
    play: Play,
) -> None:
    async def act(rig: Rig) -> None:
        connection = f"python3 -c '{_CONNECTION}'"
        pair = "python3 -c 'import socket; socket.socketpair()'"
        uses = ("true", f"python3 -c '{_PORT}'", connection, f"{connection}; {pair}", "true")
        # The number of a namespace that has ended is used again, its count of packets is not.
        packets = "awk '/lo:/ {print $3}' /proc/net/dev"
        seen = [
            (await output_of(rig, number, f"echo $$; {packets}; readlink /proc/self/ns/net; {use}; {packets}")).split()
            for number, use in enumerate(uses, 1)
        ]
        # The numbers of processes begin again in a new slot.
        processes, packets_before, networks, packets_after = zip(*seen, strict=True)
        *before, after = map(int, processes)
        assert before == sorted(set(before))
        assert after == before[0]
        assert len(set(networks[:3])) == 1
        assert set(packets_before) == {"0"}
        assert [sent != "0" for sent in packets_after] == [False, False, True, True, False]

    play(act)


def test_a_task_inherits_no_file_but_its_streams(play: Play) -> None:
    async def act(rig: Rig) -> None:
        seen = await output_of(rig, 1, "ls /proc/self/fd | wc -l; readlink /proc/self/fd/*")
        assert seen.splitlines()[0] == "4"
        assert "socket:" not in seen

    play(act)


def test_a_fork_bomb_ends_with_its_task(play: Play, settings: StarterSettings) -> None:
    # Every process forks at each step, and hides from its group: 2^8 processes, which the limit of a task allows.
    bomb = "import os, signal\nfor _ in range(8):\n    os.fork() or os.setsid()\nsignal.pause()"

    async def act(rig: Rig) -> None:
        rig.run(1, "python3", "-c", bomb)
        rig.run(2, "sleep", "600")
        await rig.start_of(2)
        await rig.until(lambda: len(processes_of(settings, 1)) >= 257)
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(1)
        assert len(processes_of(settings, 2)) == 1
        assert attempt_id(2) not in rig.ends()

    play(act)


@only_own
def test_two_tasks_have_two_accounts_and_an_account_is_used_again(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "id -u; sleep 600")
        rig.run(2, "sh", "-c", "id -u; sleep 600")
        await rig.until(lambda: bool(rig.output(1) and rig.output(2)))
        uids = {int(rig.output(number)) for number in (1, 2)}
        assert uids == {settings.task_uids[0], settings.task_uids[0] + 1}
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(1)
        assert int(await output_of(rig, 3, "id -u")) in uids

    play(act)


def test_logs_are_empty_from_the_start_until_the_task_writes(play: Play) -> None:
    async def act(rig: Rig) -> None:
        for number in range(1, 40):
            rig.run(number, "sh", "-c", "exec sleep 0.01")
        while len(rig.ends()) < 39:
            assert {rig.output(number) for number in range(1, 40)} == {""}
            await rig.until(lambda: True)
            await rig.executor.running()

    play(act)
