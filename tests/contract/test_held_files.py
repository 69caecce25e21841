"""What a task hands to a process outside of it: that has the files open as long as it likes, and gets nothing else."""

import array
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt, EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.model.task_limits import TaskLimits
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.starter.capabilities import NET_ADMIN
from tests.contract.escape_rig import MAKES, contained, executor_of, image_for, output_of, parent_of
from tests.contract.executor_rig import Rig, attempt_folder, attempt_id, play_scene, processes_of, root_of

pytestmark = pytest.mark.processes

_BEGIN = """
import array, os, socket, sys, time
open("here", "x").close()
while not os.path.exists("socket"):
    time.sleep(0.01)
"""
_END = """
os.unlink("socket")
os.unlink("here")
"""
_HAND_OVER = """
link = socket.socket(socket.AF_UNIX)
link.connect("socket")
files = [os.open(place, os.O_RDONLY) for place in ("/proc/self/fd/1", "/proc/self/fd/2", *sys.argv[1:])]
link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
"""
_LOGS = 2
"""The first ones of what is handed over are the logs, and the others folders."""
_WRITABLE = (".", "/tmp", "/dev/shm", "/var/tmp")
"""Folders in which a task in a sandbox can write."""


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


async def handed(
    rig: Rig, settings: StarterSettings, script: str, /, *places: str, kind: socket.SocketKind = socket.SOCK_STREAM
) -> list[int]:
    """Return the open files that the first task sends to a socket, which the host has put into its folder."""
    rig.run(1, "python3", "-c", f"{_BEGIN}{script}{_END}", *places)
    await rig.until(lambda: any(_marks(settings)))
    (mark,) = _marks(settings)
    with _socket_in(mark.parent, kind) as server:
        assert (await rig.end_of(1)).exit_code == 0, rig.output(1, "stderr")
        with server.accept()[0] if kind == socket.SOCK_STREAM else server as link:
            _, extra, _, _ = link.recvmsg(1, socket.CMSG_SPACE(16 * 4))
    return [file for _, _, data in extra for file in array.array("i", data)]


def _socket_in(work: Path, kind: socket.SocketKind) -> socket.socket:
    """Return a socket in a folder, to which every account may connect as soon as it is there."""
    server = socket.socket(socket.AF_UNIX, kind)
    folder = os.open(work, os.O_PATH)
    # The path of the folder may be longer than that of a socket.
    server.bind(f"/proc/self/fd/{folder}/draft")
    os.close(folder)
    (work / "draft").chmod(0o666)
    if kind == socket.SOCK_STREAM:
        server.listen()
    (work / "draft").rename(work / "socket")
    return server


def _marks(settings: StarterSettings) -> list[Path]:
    return list(root_of(settings).glob("*/*/work/here"))


_HAND_OVER_SOCKETS = """
link = {link}
files = [socket.socket().detach()]
link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))], 0, "socket")
"""
_LINKS = ("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]")
_SERVE = """
import socket, time
server = socket.create_server(("127.0.0.1", 5555))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("link", _LINKS)
@pytest.mark.parametrize("settings", MAKES, indirect=True)
def test_who_holds_a_socket_of_a_task_does_not_reach_the_next_ones(settings: StarterSettings, link: str) -> None:
    async def act(rig: Rig) -> None:
        (held,) = await handed(rig, settings, _HAND_OVER_SOCKETS.format(link=link), kind=socket.SOCK_DGRAM)
        rig.run(2, "python3", "-c", _SERVE)
        await rig.start_of(2)
        await rig.until(lambda: rig.output(2) == "ready\n")
        with socket.socket(fileno=held) as taken, pytest.raises(ConnectionRefusedError):
            taken.connect(("127.0.0.1", 5555))
        rig.executor.perform(EndAttempt(attempt=attempt_id(2), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(2)

    chosen = replace(settings, network="loopback")
    play_scene(act, lambda: executor_of(chosen), image=image_for(settings))


_ALARMED = """
import signal, socket
signal.signal(signal.SIGALRM, lambda number, frame: None)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
made = 0
while made < 200:
    try:
        socket.socket(socket.AF_UNIX).close()
    except InterruptedError:
        continue
    made += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print("made all")
"""


@pytest.mark.parametrize("settings", ["sandbox"], indirect=True)
def test_a_task_that_signals_interrupt_all_the_time_makes_sockets(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        assert await output_of(rig, 1, f"python3 -c '{_ALARMED}'") == "made all\n"
        assert await output_of(rig, 2, "echo next") == "next\n"

    play_scene(act, lambda: executor_of(settings))


@pytest.mark.parametrize(("network", "has_it"), [("loopback", True), ("none", False), ("host", False)])
@pytest.mark.parametrize("settings", ["sandbox"], indirect=True)
def test_only_who_makes_networks_anew_for_tasks_may_change_networks(
    settings: StarterSettings, network: str, *, has_it: bool
) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "600")
        # An attempt counts as started when its slot has been told; its process follows.
        await rig.until(lambda: len(processes_of(settings, 1)) == 1)
        (task,) = processes_of(settings, 1)
        assert bool(permitted_to(parent_of(task)) & 1 << NET_ADMIN) == has_it
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(1)

    play_scene(act, lambda: executor_of(replace(settings, network=network)))


def permitted_to(process: int) -> int:
    """Return the capabilities that a process can have, whichever account it has just now."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapPrm:"))


def names_in(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


@pytest.mark.parametrize("settings", MAKES, indirect=True)
def test_who_holds_files_of_a_task_sees_nothing_of_the_next_ones(settings: StarterSettings) -> None:
    keep = f"for place in {' '.join(_WRITABLE)}; do echo secret >$place/secret; done; echo secret"

    async def act(rig: Rig) -> None:
        held = await handed(rig, settings, _HAND_OVER, *_WRITABLE)
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        for number in range(2, 12):
            assert await output_of(rig, number, keep) == "secret\n"
            assert [os.read(log, 1) for log in held[:_LOGS]] == [b"", b""]
            assert [names_in(folder) for folder in held[_LOGS:]] == [[]] * len(_WRITABLE)
            rig.executor.perform(DiscardAttempt(attempt=attempt_id(number)))
        for file in held:
            os.close(file)

    play_scene(act, lambda: executor_of(settings), image=image_for(settings))


@pytest.mark.parametrize("settings", ["namespace"], indirect=True)
def test_processes_of_one_account_get_folders_again_that_a_task_left_as_they_were(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        is_kept = []
        # A folder that is as new as its first use is not used again.
        for number in range(1, 100, 2):
            assert await output_of(rig, number, "exit") == ""
            log = os.open(attempt_folder(settings, number) / "stdout", os.O_RDONLY)
            rig.executor.perform(DiscardAttempt(attempt=attempt_id(number)))
            assert await output_of(rig, number + 1, "exit") == ""
            is_kept.append(os.fstat(log).st_nlink == 1)
            os.close(log)
        assert any(is_kept)

    play_scene(act, lambda: executor_of(settings))


@pytest.mark.parametrize("settings", MAKES, indirect=True)
def test_who_holds_a_folder_of_a_task_reaches_nothing_of_the_next_one_through_it(settings: StarterSettings) -> None:
    work = "chmod 755 .; for place in . /tmp /dev/shm; do echo secret >$place/secret; done; echo ready; exec sleep 600"

    async def act(rig: Rig) -> None:
        # Such a descriptor needs no permission to read the folder.
        hand_over = _HAND_OVER.replace("O_RDONLY", "O_PATH")
        root, system, devices, task = (await handed(rig, settings, hand_over, "/", "/usr", "/dev", "/task"))[_LOGS:]
        rig.run(2, "sh", "-c", work)
        await rig.start_of(2)
        await rig.until(lambda: rig.output(2) == "ready\n")
        places = ((root, "tmp"), (root, "task/work"), (system, "../tmp"), (devices, "shm"), (task, "work"))
        assert [reached(folder, name) for folder, name in places] == [[]] * len(places)
        rig.executor.perform(EndAttempt(attempt=attempt_id(2), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(2)

    play_scene(act, lambda: executor_of(settings), image=image_for(settings))


def reached(folder: int, name: str) -> list[str]:
    """Return what can be listed at a path within an open folder."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    except OSError:
        return []
    try:
        return names_in(opened)
    finally:
        os.close(opened)


_HIDES = """
import ctypes, os, time
if {is_child}:
    if os.fork():
        time.sleep(600)
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
with open("unseen", "w+b") as file:
    os.unlink("unseen")
    file.write(bytes(24 << 20))
    time.sleep(600)
"""


@pytest.mark.parametrize("is_child", [False, True])
@pytest.mark.parametrize("settings", ["bubblewrap"], indirect=True)
def test_a_process_in_a_box_that_hides_what_it_has_open_ends_its_task_which_is_told(
    settings: StarterSettings, *, is_child: bool
) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "python3", "-c", _HIDES.format(is_child=is_child), limits=TaskLimits(disk_bytes=16 << 20))
        end = await rig.end_of(1)
        assert end.cause == "disk_limit"
        # A starter of root sees it all the same.
        told = "its process `python3` hides what it has open (by PR_SET_DUMPABLE, as ssh-agent does"
        assert (told if os.geteuid() else "the task used 24.") in end.text

    play_scene(act, lambda: executor_of(settings))
