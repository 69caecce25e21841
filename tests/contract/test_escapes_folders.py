"""Folders that a task in a sandbox sees: the machine read-only, and bounded ones of its own."""

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.starter.sandbox.images import IMAGES
from tests.contract.escape_rig import MAKES, contained, executor_of, image_for, output_of
from tests.contract.executor_rig import Rig, play_scene, root_of

pytestmark = pytest.mark.processes

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders elsewhere than in /tmp")
"""For what tasks see that is not the system's: below /tmp they have their own folders."""


@pytest.fixture(params=MAKES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


@pytest.fixture
def play(settings: StarterSettings) -> Play:
    return lambda act: play_scene(act, lambda: executor_of(settings), image=image_for(settings))


def test_a_task_writes_to_its_folder_and_to_temporary_ones_only(play: Play, settings: StarterSettings) -> None:
    script = "find / -xdev -writable -type d 2>/dev/null; for d in /etc /usr /var/log /dev /task /run /sys /proc; do"
    own = ["/task/work"] if settings.isolation == "bubblewrap" else ["/task", "/var/tmp"]
    devices = [f"/dev/{name}" for name in ("full", "null", "pts", "random", "tty", "urandom", "zero")]

    async def act(rig: Rig) -> None:
        seen = await output_of(rig, 1, f"{script} touch $d/x && echo wrote $d; done; true")
        assert "wrote" not in seen
        assert {line for line in seen.splitlines() if line.startswith("/")} <= {"/task/work", "/tmp"}
        mounts = [line.split() for line in (await output_of(rig, 2, "cat /proc/self/mountinfo")).splitlines()]
        writable = sorted({place for _, _, _, _, place, flags, *_ in mounts if "rw" in flags.split(",")})
        assert writable == sorted([*own, "/dev/shm", "/tmp", *devices]), writable
        assert await output_of(rig, 3, "touch /tmp/x /dev/shm/x /var/tmp/y here && echo wrote") == "wrote\n"

    play(act)


def test_folders_of_users_and_services_are_empty(play: Play) -> None:
    async def act(rig: Rig) -> None:
        assert await output_of(rig, 1, "for d in /home /root /run; do ls -A $d 2>/dev/null; done; true") == ""

    play(act)


def test_a_task_cannot_fill_the_machine_from_its_temporary_folders(play: Play) -> None:
    script = "import os; print([os.statvfs(f).f_blocks * os.statvfs(f).f_frsize for f in ('/tmp', '/dev/shm')])"

    async def act(rig: Rig) -> None:
        assert await output_of(rig, 1, f'python3 -c "{script}"') == f"{[1 << 30, 1 << 30]}\n"

    play(act)


def test_a_task_has_a_bounded_number_of_temporary_files(play: Play, settings: StarterSettings) -> None:
    script = "import os; print(*[os.statvfs(f).f_files for f in ('/tmp', '/var/tmp', '/dev/shm')])"
    # Bubblewrap cannot choose it: the kernel allows a file for every second page of memory.
    most = os.sysconf("SC_PHYS_PAGES") // 2 if settings.isolation == "bubblewrap" else 65_536

    async def act(rig: Rig) -> None:
        numbers = [int(number) for number in (await output_of(rig, 1, f'python3 -c "{script}"')).split()]
        assert (len(numbers), min(numbers) > 0, max(numbers) <= most) == (3, True, True)

    play(act)


@only_root
def test_a_folder_that_every_account_may_change_is_read_only_for_tasks(settings: StarterSettings) -> None:
    with tempfile.TemporaryDirectory(dir="/srv") as folder:
        image = image_for(settings)
        place = folder if image is None else "/etc"

        async def act(rig: Rig) -> None:
            await output_of(rig, 1, "true")
            # It is unpacked now.
            open_to_all = Path(folder) if image is None else next(root_of(settings).glob(f"{IMAGES}/*/**/etc"))
            open_to_all.chmod(0o777)
            seen = await output_of(rig, 2, f"stat -c %a {place}; touch {place}/x; touch {place} && echo touched")
            assert seen.splitlines()[0] == "777"
            assert [line.rpartition(": ")[2] for line in seen.splitlines()[1:]] == ["Read-only file system"] * 2

        chosen = replace(settings, shown=("/usr", "/etc", folder))
        play_scene(act, lambda: executor_of(chosen), image=image)


@only_root
@pytest.mark.parametrize("settings", ["sandbox", "bubblewrap"], indirect=True)
def test_a_task_sees_of_the_machine_what_the_site_shows(settings: StarterSettings) -> None:
    with tempfile.TemporaryDirectory(dir="/srv") as folder:
        Path(folder).chmod(0o755)
        Path(folder, "data").write_text("of the site")

        async def act(rig: Rig) -> None:
            assert await output_of(rig, 1, f"cat {folder}/data; ls /srv; echo x > {folder}/data") == (
                f"of the site{Path(folder).name}\nsh: 1: cannot create {folder}/data: Read-only file system\n"
            )

        play_scene(act, lambda: executor_of(replace(settings, shown=("/usr", "/etc", folder))))
