"""Tasks in images of containers: a sandbox whose root is an unpacked image."""

import os
import signal
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from messiahs.config.disk import available_bytes
from messiahs.core.interface.actions import EndAttempt, ResumeAttempt, SuspendAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_files import InputFile
from messiahs.executor.contract import AttemptState
from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, root_of, start_of
from tests.contract.task_files import LARGE, Files, starter_files
from tests.live.disks import fill
from tests.oci_images import Entry, folder, image_of, layer_of, link, programs

pytestmark = pytest.mark.processes

MIB = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind="sandbox") as files:
        yield files


@cache
def image() -> bytes:
    """Return an image with a few programs, whose names and links a machine does not have."""
    return image_of(
        layer_of(folder("etc"), Entry(name="etc/passwd", content=b"alone:x:77:77::/:/bin/sh\n"), folder("home/alone")),
        layer_of(
            *programs("sh", "ls", "cat", "id", "sleep", "touch", "env", "stat"),
            Entry(name="only/here", content=b"in the image\n", mode=0o600),
            Entry(name="top", content=b"at the top\n"),
            link("shortcut", "/only"),
        ),
        env=["PATH=/bin", "COLOR=blue", "HOME=/root", "MESSIAHS_TASK_ID=other"],
    )


def enter(
    rig: Rig,
    number: int,
    archive: InputFile,
    /,
    *argv: str,
    inputs: tuple[InputFile, ...] = (),
    limit_ns: int | None = None,
) -> AttemptId:
    """Start a command in an image."""
    command = Command(argv=argv, env=(("OWN", "yes"),), inputs=(*inputs, archive))
    rig.executor.perform(replace(start_of(number, limit_ns=limit_ns), command=command, image=archive.sha256.hex()))
    return attempt_id(number)


async def output_in(rig: Rig, number: int, archive: InputFile, script: str, /) -> str:
    enter(rig, number, archive, "sh", "-c", f"exec 2>&1; {script}")
    end = await rig.end_of(number)
    assert (end.cause, end.text) == ("", "")
    return rig.output(number)


def test_a_task_sees_the_image_as_its_root_and_its_own_folder(files: Files) -> None:
    async def act(rig: Rig) -> None:
        archive, given = files.add(IMAGE_INPUT, image()), files.add("data", LARGE)
        enter(rig, 1, archive, "sh", "-c", "ls /; ls; pwd; cat /only/here /top /shortcut/here", inputs=(given,))
        end = await rig.end_of(1)
        assert (end.exit_code, end.text, rig.output(1, "stderr")) == (0, "", "")
        root, own = rig.output(1).split("data\n")
        assert set(root.split()) >= {"bin", "dev", "etc", "home", "only", "proc", "shortcut", "task", "tmp", "top"}
        assert not set(root.split()) & {"boot", "opt", "root", "srv", "sys"}
        assert own == "/task/work\nin the image\nat the top\nin the image\n"

    files.play(act)


def test_its_variables_are_those_of_the_image_below_its_own(files: Files) -> None:
    async def act(rig: Rig) -> None:
        seen = await output_in(rig, 1, files.add(IMAGE_INPUT, image()), "env; id -un; cat /etc/passwd")
        found = dict(line.split("=", 1) for line in seen.splitlines() if "=" in line)
        assert (found["PATH"], found["COLOR"], found["OWN"], found["HOME"]) == ("/bin", "blue", "yes", "/task/work")
        assert found["MESSIAHS_TASK_ID"] == str(attempt_id(1).task)
        assert "alone:x:77:77" in seen
        assert "\ntask:x:" in seen

    files.play(act)


def test_nothing_of_the_image_can_be_written_to_and_the_next_task_finds_temporary_folders_empty(files: Files) -> None:
    script = (
        "for d in / /only /bin /etc /home/alone /dev /var; do touch $d/x 2>/dev/null && echo wrote $d; done; touch here"
    )

    async def act(rig: Rig) -> None:
        archive = files.add(IMAGE_INPUT, image())
        assert await output_in(rig, 1, archive, f"{script}; touch /tmp/x /var/tmp/y /dev/shm/z; ls") == "here\n"
        assert (
            await output_in(rig, 2, archive, "ls /tmp /var/tmp /dev/shm | cat; ls")
            == "/dev/shm:\n\n/tmp:\n\n/var/tmp:\n"
        )

    files.play(act)


def test_an_image_is_unpacked_once_and_found_again_by_the_next_starter(files: Files) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(IMAGE_INPUT, image())
        first = await output_in(rig, 1, archive, "stat -c %i /only/here")
        assert await output_in(rig, 2, archive, "stat -c %i /only/here") == first
        inodes.append(first)

    inodes: list[str] = []
    files.play(act)
    files.play(act)
    assert len(set(inodes)) == 1


def test_many_tasks_wait_for_one_image_and_others_run_meanwhile(files: Files) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(IMAGE_INPUT, image())
        for number in range(1, 9):
            enter(rig, number, archive, "sh", "-c", "cat /top")
        rig.run(9, "true")
        for number in range(1, 10):
            assert (await rig.end_of(number)).exit_code == 0
        assert {rig.output(number) for number in range(1, 9)} == {"at the top\n"}

    files.play(act)


def test_an_image_runs_where_all_accounts_are_kept_by_idle_slots(files: Files) -> None:
    first = files.settings.task_uids[1]
    files.limit_accounts(first)

    async def act(rig: Rig) -> None:
        archive = files.add(IMAGE_INPUT, image())
        rig.run(1, "true")
        await rig.end_of(1)
        assert await output_in(rig, 2, archive, "id -u") == f"{first}\n"
        rig.run(3, "id", "-u")
        await rig.end_of(3)
        assert rig.output(3) == f"{first}\n"

    files.play(act)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not an image", "the image: it is not a tar file"),
        (image_of(layer_of(Entry(name="../out"))), "leads out of the image"),
        (image_of(layer_of(Entry(name="whole/one"), Entry(name="whole/n" + "n" * 255))), "File name too long: '/root/"),
        (image_of(layer_of(folder("a"), Entry(name=".wh..."))), "hides no name"),
        (image_of(layer_of(Entry(name="big", size=1 << 40, kind=tarfile.REGTYPE))), "more than"),
    ],
)
def test_an_image_that_cannot_be_unpacked_ends_its_task_with_the_reason(
    files: Files, content: bytes, said: str
) -> None:
    async def act(rig: Rig) -> None:
        enter(rig, 1, files.add(IMAGE_INPUT, content), "true")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code, end.signal) == (Cause.IMAGE_UNUSABLE, None, None)
        assert said in end.text
        images = root_of(files.settings) / "images"
        assert list(images.iterdir()) == []
        good = files.add(IMAGE_INPUT, image())
        assert await output_in(rig, 2, good, "cat /top") == "at the top\n"
        assert [one.name for one in images.iterdir()] == [good.sha256.hex()]

    files.play(act)


def test_an_image_for_which_the_disk_has_no_room_leaves_the_last_twentieth_and_other_tasks_alone(
    tmp_path: Path,
) -> None:
    # A tmpfs has no holes in files that were written, and an image of zeros is a small archive.
    large = image_of(layer_of(*programs("sh"), Entry(name="large", content=bytes(90 * MIB))))

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "head -c 20M /dev/zero >mine; echo there; exec sleep 600")
        await rig.until(lambda: rig.output(1) == "there\n")
        enter(rig, 2, small.add(IMAGE_INPUT, large), "sh", "-c", "true")
        end = await rig.end_of(2)
        assert (end.cause, end.text) == (Cause.STAGING_FAILED, "the image: the disk has no room for it")
        assert list((root_of(small.settings) / "images").iterdir()) == []
        assert available_bytes(small.settings.fallback) > 256 * MIB // 20
        assert await output_in(rig, 3, small.add(IMAGE_INPUT, image()), "cat /top") == "at the top\n"
        assert len(rig.ends()) == 2

    disk = ("-t", "tmpfs", "-o", "size=256m,mode=711", "tmpfs")
    with starter_files(tmp_path, kind="sandbox", disk=disk) as small:
        fill(small.settings.fallback, leave_bytes=100 * MIB, name="files")
        small.play(act)


def test_a_task_never_gets_an_image_that_only_another_task_brought(files: Files) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(IMAGE_INPUT, image())
        await output_in(rig, 1, archive, "true")
        for number, inputs in ((2, ()), (3, (replace(archive, name="data"),)), (4, (files.add(IMAGE_INPUT, b"x"),))):
            command = Command(argv=("sh", "-c", "cat /top"), inputs=inputs)
            rig.executor.perform(replace(start_of(number), command=command, image=archive.sha256.hex()))
            end = await rig.end_of(number)
            assert (end.cause, end.text) == (Cause.IMAGE_UNUSABLE, "the image of the task is not among its inputs")

    files.play(act)


def test_a_task_that_waits_for_its_image_can_be_suspended_and_killed(files: Files) -> None:
    async def act(rig: Rig) -> None:
        waits = files.add_absent(IMAGE_INPUT, image())
        killed = enter(rig, 1, waits, "true", limit_ns=SECOND // 10)
        suspended = enter(rig, 2, waits, "cat", "/top")
        await rig.start_of(2)
        rig.executor.perform(SuspendAttempt(attempt=suspended))
        rig.executor.perform(EndAttempt(attempt=killed, grace_ns=20 * SECOND, cause=Cause.KILLED))
        end = await rig.end_of(1)
        assert (end.signal, end.cause) == (signal.SIGTERM, Cause.KILLED)
        with files.path_of(waits).open("wb"):
            pass
        assert suspended in {one.attempt for one in await rig.executor.running() if one.state is AttemptState.SUSPENDED}
        rig.executor.perform(ResumeAttempt(attempt=suspended))
        assert (await rig.end_of(2)).cause == Cause.IMAGE_UNUSABLE

    files.play(act)


@pytest.mark.parametrize("kind", ["namespace", "bubblewrap"])
def test_elsewhere_a_task_with_an_image_does_not_run_at_all(tmp_path: Path, kind: str) -> None:
    async def act(rig: Rig) -> None:
        enter(rig, 1, own.add(IMAGE_INPUT, image()), "sh", "-c", "echo ran")
        end = await rig.end_of(1)
        assert (end.cause, rig.output(1)) == (Cause.STAGING_FAILED, "")
        assert "only a machine with `isolation: sandbox`" in end.text

    with starter_files(tmp_path, kind=kind) as own:
        own.play(act)


def test_a_program_that_the_image_lacks_is_not_found_though_the_machine_has_it(files: Files) -> None:
    async def act(rig: Rig) -> None:
        enter(rig, 1, files.add(IMAGE_INPUT, image()), "python3")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == (Cause.NOT_FOUND, 127)
        assert end.text == "'python3' was not found on PATH=/bin (its sandbox shows its image and its inputs)"

    files.play(act)


def test_no_link_in_the_root_of_an_image_stands_in_for_what_a_sandbox_has(files: Files) -> None:
    places = ("dev", "proc", "task", "tmp", "etc", "var")
    hostile = image_of(
        layer_of(
            *programs("sh", "cat", "id", "ls", "touch"), *(link(name, "/../../../../../../root") for name in places)
        ),
        layer_of(link("mine", "../../../../etc"), Entry(name="up/.wh..wh..opq"), Entry(name="su", mode=0o4755)),
    )

    async def act(rig: Rig) -> None:
        script = "for d in dev proc task tmp etc var; do test -L /$d && echo link $d; done; cat /etc/passwd; ls /mine"
        seen = await output_in(rig, 1, files.add(IMAGE_INPUT, hostile), f"id -u; {script}; touch /tmp/x /var/tmp/x")
        own, _, rest = seen.partition("\n")
        assert rest == f"task:x:{own}:{own}::/task/work:/bin/sh\ngroup\nhosts\npasswd\nresolv.conf\n"

    files.play(act)


_PLACES = (
    (".draft", "draft", "etc", "tmp", "dev", "proc", "sys", "home", "run", "task", "var", "mine"),
    ("etc/passwd", "etc/group", "etc/resolv.conf", "etc/.draft", "dev/null", "proc/self", "task/draft", "var/tmp"),
)
"""Where an image has links: in its root, and below folders of it."""


@pytest.mark.parametrize("kind", ["folder", "file", "nothing", "relative"])
def test_root_writes_nothing_on_the_machine_through_a_link_of_an_image(files: Files, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside if kind == "folder" else outside / "file"
    if kind == "file":
        target.write_text("of root")
        target.chmod(0o600)
    leads_to = f"../../../../../../../../../..{target}" if kind == "relative" else str(target)
    before = _listing(outside)
    files.executor = OsProcessExecutor(replace(files.settings, network="host"), boottime_offset_ns=OFFSET_NS)

    async def act(rig: Rig) -> None:
        for number, places in enumerate(_PLACES, 1):
            hostile = image_of(layer_of(*programs("sh", "id"), *(link(place, leads_to) for place in places)))
            assert await output_in(rig, number, files.add(IMAGE_INPUT, hostile), "id -un") == "task\n"
            assert _listing(outside) == before

    files.play(act)


@pytest.mark.parametrize("entry", [folder(".draft"), Entry(name=".draft", content=b"x"), link(".draft", "etc/passwd")])
def test_a_task_sees_what_its_image_has_whatever_its_name_is(files: Files, entry: Entry) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(IMAGE_INPUT, image_of(layer_of(*programs("sh", "id", "ls"), entry)))
        seen = await output_in(rig, 1, archive, "id -un; ls -d /.draft")
        assert seen == "task\n/.draft\n"

    files.play(act)


def _listing(folder: Path) -> list[tuple[str, int, int, bytes]]:
    found = [(one, one.lstat()) for one in sorted(folder.rglob("*"))]
    return [(one.name, about.st_mode, about.st_mtime_ns, one.read_bytes()) for one, about in found]


def test_what_was_unpacked_belongs_to_the_daemons_account_and_tasks_cannot_reach_it(files: Files) -> None:
    async def act(rig: Rig) -> None:
        await output_in(rig, 1, files.add(IMAGE_INPUT, image()), "true")
        images = root_of(files.settings) / "images"
        (kept,) = images.iterdir()
        found = [kept, *kept.rglob("*")]
        assert {one.lstat().st_uid for one in found} == {os.geteuid()}
        assert images.stat().st_mode & 0o777 == 0o700
        rig.run(2, "ls", str(images))
        assert (await rig.end_of(2)).exit_code != 0

    files.play(act)
