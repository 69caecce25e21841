"""The device files of counted things: a task in a sandbox finds those of its own things, and no others."""

import stat
from collections.abc import Iterator
from dataclasses import replace
from os import makedev
from pathlib import Path

import pytest

from messiahs.config.device_files import DeviceFile
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.counted import Counted
from messiahs.core.model.environments import ENVIRONMENT_INPUT
from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.escape_rig import MAKES, contained, executor_of, image_for, output_of
from tests.contract.executor_rig import Rig, play_scene, start_of, starter_settings
from tests.contract.task_files import starter_files
from tests.environments import environment_of
from tests.fake_devices import device_folder, make_device

pytestmark = pytest.mark.processes

_READ = "test $(head -c 3 {device} | wc -c) = 3 && echo was read"


@pytest.fixture
def folder() -> Iterator[Path]:
    with device_folder() as folder:
        yield folder


@pytest.fixture(params=MAKES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


def with_gpus(settings: StarterSettings, *files: tuple[Path, ...]) -> StarterSettings:
    """Return the settings of a machine with GPUs, each with its device files, and a licence."""
    devices = {number: tuple(map(str, paths)) for number, paths in enumerate(files)}
    return replace(settings, counted=("gpus", "licences"), devices={"gpus": devices})


def run_with(rig: Rig, number: int, script: str, /, *gpus: int) -> None:
    """Start a script with GPUs."""
    assigned = (Counted(name="gpus", numbers=gpus),) if gpus else ()
    action = replace(start_of(number), command=Command(argv=("sh", "-c", script)), assigned=assigned)
    rig.begin(action)


async def said(rig: Rig, number: int, script: str, /, *gpus: int) -> str:
    """Run a script with GPUs, and return what it wrote."""
    run_with(rig, number, f"exec 2>&1; {script}", *gpus)
    end = await rig.end_of(number)
    return rig.output(number) or end.text


def test_a_task_finds_the_devices_of_its_own_things_and_the_next_one_in_the_slot_none(
    settings: StarterSettings, folder: Path
) -> None:
    first, second = make_device(folder / "gpu0"), make_device(folder / "gpu1")
    shared = make_device(folder / "control")
    first_uid = settings.task_uids[0]
    look = f"ls {folder} /dev; {_READ.format(device=first)}; {_READ.format(device=second)}"

    async def act(rig: Rig) -> None:
        bare = await said(rig, 1, "ls /dev")
        assert folder.name not in bare
        mine = await said(rig, 2, look, 0)
        assert f"{folder}:\ncontrol\ngpu0\n" in mine, mine
        assert f"\n{folder.name}\n" in mine
        assert mine.count("was read") == 1
        assert await said(rig, 3, "ls /dev") == bare
        theirs = await said(rig, 4, look, 1)
        assert f"{folder}:\ncontrol\ngpu1\n" in theirs, theirs
        both = await said(rig, 5, look, 0, 1)
        assert both.count("was read") == 2, both
        assert await said(rig, 6, "ls /dev") == bare

    # One account, so that they share a slot if any can.
    made = replace(with_gpus(settings, (first, shared), (second, shared)), task_uids=(first_uid, first_uid))
    play_scene(act, lambda: executor_of(made), image=image_for(settings))


def test_nothing_else_of_dev_can_be_changed_by_a_task_with_a_device(settings: StarterSettings, folder: Path) -> None:
    device = make_device(folder / "gpu0")
    attempts = (f"touch {folder}/x", "touch /dev/x", f"ln -s /dev/null {folder}/x")

    async def act(rig: Rig) -> None:
        done = await said(rig, 1, "; ".join(f"{each} && echo changed" for each in attempts), 0)
        assert "changed" not in done, done
        assert done.count("Read-only file system") == len(attempts), done

    play_scene(act, lambda: executor_of(with_gpus(settings, (device,))), image=image_for(settings))


def test_a_link_is_shown_with_the_device_to_which_it_leads(settings: StarterSettings, folder: Path) -> None:
    device = make_device(folder / "gpu0")
    link = folder / "by-path" / "gpu"
    link.parent.mkdir()
    link.symlink_to("../gpu0")

    async def act(rig: Rig) -> None:
        both = await said(rig, 1, f"{_READ.format(device=link)}; {_READ.format(device=device)}; readlink {link}", 0)
        assert both.count("was read") == 2, both
        assert both.endswith(f"{device}\n")

    play_scene(act, lambda: executor_of(with_gpus(settings, (link,))), image=image_for(settings))


def test_a_task_does_not_start_without_a_device_of_its_things_nor_with_one_that_is_refused(
    settings: StarterSettings, folder: Path
) -> None:
    log = make_device(folder / "gpu1", numbers=makedev(1, 11))
    disk = make_device(folder / "gpu2", numbers=makedev(7, 0), kind=stat.S_IFBLK)
    link = folder / "gpu3"
    link.symlink_to("/dev/kmsg")
    files = ((folder / "gpu0",), (log,), (disk,), (link,), (folder,), (folder / "gpu5",))
    problems = (
        f"{folder}/gpu0: No such file or directory",
        "gives access to the memory, processors or log of the host",
        "is not a character device",
        f"{link} leads to /dev/kmsg, which gives access",
        "is not a character device",
    )

    async def act(rig: Rig) -> None:
        for number, problem in enumerate(problems):
            run_with(rig, number + 1, "echo started", number)
            end = await rig.end_of(number + 1)
            assert end.cause == Cause.SPAWN_FAILED
            assert problem in end.text, end
        # The others of the machine run on, and so does this GPU when it is there.
        assert await output_of(rig, 10, "echo hello") == "hello\n"
        make_device(folder / "gpu5")
        assert await said(rig, 11, "echo started", 5) == "started\n"

    play_scene(act, lambda: executor_of(with_gpus(settings, *files)), image=image_for(settings))


def test_names_that_every_sandbox_has_are_no_hindrance(settings: StarterSettings) -> None:
    names = ("full", "null", "random", "urandom", "zero")
    files = tuple((Path("/dev", name),) for name in (*names, "stdin", "pts"))

    async def act(rig: Rig) -> None:
        for number, name in enumerate(names):
            assert await said(rig, number + 1, f"test -c /dev/{name} && echo is there", number) == "is there\n"
        for number, problem in ((5, "/dev/stdin leads to open files of the program that looks at it"), (6, "a folder")):
            run_with(rig, number + 1, "echo started", number)
            end = await rig.end_of(number + 1)
            assert (end.cause, problem in end.text) == (Cause.SPAWN_FAILED, True), end

    play_scene(act, lambda: executor_of(with_gpus(settings, *files)), image=image_for(settings))


def test_a_device_that_every_sandbox_has_and_that_is_a_link_here_needs_none() -> None:
    assert not DeviceFile("/dev/random", "/dev/urandom", 0o666).needs_link
    assert DeviceFile("/dev/gpu", "/dev/urandom", 0o666).needs_link


def test_programs_count_the_gpus_that_they_find_from_0_on(settings: StarterSettings, folder: Path) -> None:
    files = tuple((make_device(folder / f"gpu{number}"),) for number in range(3))
    tell = 'echo "$MESSIAHS_GPUS|$CUDA_VISIBLE_DEVICES|$MESSIAHS_LICENCES"'

    async def act(rig: Rig) -> None:
        assert await said(rig, 1, tell, 2) == "2|0|\n"
        assert await said(rig, 2, tell, 0, 2) == "0,2|0,1|\n"
        assert await said(rig, 3, tell) == "||\n"

    play_scene(act, lambda: executor_of(with_gpus(settings, *files)), image=image_for(settings))


@pytest.mark.parametrize("kind", ["sandbox", "bubblewrap"])
def test_a_task_with_an_environment_has_its_devices_too(tmp_path: Path, folder: Path, kind: str) -> None:
    device = make_device(folder / "gpu0")
    with starter_files(tmp_path, kind=kind) as files:
        tree = environment_of(path="/opt/of-tests/e")
        archive = files.add(ENVIRONMENT_INPUT, tree)
        command = Command(argv=("sh", "-c", f"echo $VIRTUAL_ENV; {_READ.format(device=device)}"), inputs=(archive,))
        assigned = (Counted(name="gpus", numbers=(0,)),)

        async def act(rig: Rig) -> None:
            start = replace(start_of(1), command=command, environment=archive.sha256.hex(), assigned=assigned)
            rig.executor.perform(start)
            end = await rig.end_of(1)
            assert (end.text, rig.output(1)) == ("", "/opt/of-tests/e\nwas read\n")

        play_scene(act, lambda: executor_of(with_gpus(files.settings, (device,))))


def test_without_a_sandbox_tasks_see_all_devices_and_their_programs_go_by_the_numbers(
    tmp_path: Path, folder: Path
) -> None:
    files = tuple((make_device(folder / f"gpu{number}"),) for number in range(2))

    async def act(rig: Rig) -> None:
        told = await said(rig, 1, f"ls {folder}; echo $MESSIAHS_GPUS $CUDA_VISIBLE_DEVICES", 1)
        assert told == "gpu0\ngpu1\n1 1\n"

    with starter_settings(tmp_path) as settings:
        play_scene(act, lambda: executor_of(with_gpus(settings, *files)))
