"""Tasks with environments of programs: a folder that is unpacked once and bound in its place."""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.client.environments import packed_venv
from messiahs.client.progress import silent
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.environments import ENVIRONMENT_INPUT, lacking_text
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.task_files import InputFile
from messiahs.executor.os_process.back_end import OsProcessExecutor
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, root_of, start_of
from tests.contract.task_files import Files, starter_files
from tests.environments import environment_of, virtual_environment
from tests.oci_images import Entry, folder, link, programs

pytestmark = pytest.mark.processes

KINDS = ("sandbox", "bubblewrap")
PROGRAM = Entry(name="tree/bin/which-one", content=b"#!/bin/sh\necho brought along\n", mode=0o755)


@pytest.fixture(params=KINDS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as files:
        yield files


def enter(rig: Rig, number: int, archive: InputFile, /, *argv: str, env: tuple[tuple[str, str], ...] = ()) -> AttemptId:
    """Start a command with an environment."""
    command = Command(argv=argv, env=env, inputs=(archive,))
    rig.executor.perform(replace(start_of(number), command=command, environment=archive.sha256.hex()))
    return attempt_id(number)


async def output_in(rig: Rig, number: int, archive: InputFile, script: str, /) -> str:
    enter(rig, number, archive, "sh", "-c", f"exec 2>&1; {script}")
    end = await rig.end_of(number)
    assert (end.cause, end.text) == ("", "")
    return rig.output(number)


def test_a_task_finds_its_environment_in_its_place_and_first_on_its_path(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = virtual_environment(tmp_path / "venv")
    packed = packed_venv(str(made), silent)
    archive = files.add(ENVIRONMENT_INPUT, Path(packed.content.path).read_bytes())
    # What the task sees is what was unpacked.
    made.rename(tmp_path / "elsewhere")

    async def act(rig: Rig) -> None:
        program = "import brought, sys; print(brought.TEXT, sys.prefix)"
        enter(rig, 1, archive, "python", "-c", program)
        end = await rig.end_of(1)
        assert (end.exit_code, end.text, rig.output(1, "stderr")) == (0, "", "")
        assert rig.output(1) == f"of the environment {made}\n"
        seen = await output_in(rig, 2, archive, "echo $VIRTUAL_ENV; echo $PATH; ls; type python")
        virtual, path, found = seen.splitlines()
        assert (virtual, found) == (str(made), f"python is {made}/bin/python")
        assert path.startswith(f"{made}/bin:/")
        enter(rig, 3, archive, "sh", "-c", "echo $PATH", env=(("PATH", "/bin"),))
        await rig.end_of(3)
        assert rig.output(3) == f"{made}/bin:/bin\n"

    files.play(act)


@pytest.mark.parametrize(
    "place", ["/opt/of-tests/e", "/home/nobody-here/e", "/of-tests", "/tmp/of/e", "/var/tmp/e", "/var/of-tests/e"]
)
def test_it_is_shown_wherever_it_belongs_and_hides_nothing_beside_it(files: Files, place: str) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), PROGRAM, path=place))
        above = str(Path(place).parent)
        rig.run(1, "ls", "-A", "/opt")
        await rig.end_of(1)
        script = f"which-one; ls {above}; ls -A /opt | grep -v of-tests; touch /tmp/x /var/tmp/y && echo touched"
        seen = await output_in(rig, 2, archive, script)
        assert seen.startswith("brought along\n")
        assert seen.endswith("touched\n")
        assert Path(place).name in seen.split()
        assert set(rig.output(1).split()) <= set(seen.split())
        rig.run(3, "sh", "-c", f"ls -d {place} /tmp/x")
        await rig.end_of(3)
        assert rig.output(3) == ""

    files.play(act)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to create a folder that no box has of its own")
@pytest.mark.parametrize("files", ["bubblewrap"], indirect=True)
def test_beside_it_a_task_sees_no_more_of_the_machine_than_without_it(files: Files) -> None:
    with tempfile.TemporaryDirectory(dir="/srv") as top:
        Path(top).chmod(0o755)
        secret = Path(top, "modules", "one")
        secret.mkdir(parents=True)
        for place in (Path(top, "data"), secret / "key"):
            place.write_text("text")

        async def act(rig: Rig) -> None:
            beside = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), PROGRAM, path=f"{top}/e"))
            assert await output_in(rig, 1, beside, f"which-one; find {top} -type f | LC_ALL=C sort") == (
                f"brought along\n{top}/data\n{top}/e/bin/which-one\n"
            )
            enter(rig, 2, files.add(ENVIRONMENT_INPUT, environment_of(path=f"{secret}/e")), "true")
            end = await rig.end_of(2)
            assert (end.cause, end.exit_code) == (Cause.NO_PLACE, None)

        shown = replace(files.settings, shown=("/usr", "/etc", top), hidden=(str(secret),))
        play_scene(act, lambda: OsProcessExecutor(shown, boottime_offset_ns=OFFSET_NS))


def test_an_environment_is_unpacked_once_and_found_again_by_the_next_starter(files: Files) -> None:
    archive = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), PROGRAM))

    async def act(rig: Rig) -> None:
        # An attempt that has ended is reported again by the next starter, too.
        stat = "stat -c %i /opt/of-tests/environment/bin/which-one"
        first = len(inodes) + 1
        inodes.extend([await output_in(rig, number, archive, stat) for number in (first, first + 1)])

    inodes: list[str] = []
    files.play(act)
    files.play(act)
    assert len(inodes) == 4
    assert len(set(inodes)) == 1


def test_nobody_can_write_into_an_environment_and_no_other_task_sees_it(files: Files) -> None:
    spoil = (
        "for p in bin/which-one bin lib .; do rm -rf $p; touch $p/new; chmod 777 $p; mv $p other; done; >bin/which-one"
    )

    async def act(rig: Rig) -> None:
        archive = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), folder("tree/lib"), PROGRAM))
        spoiled = f"cd /opt/of-tests/environment; ( {spoil} ) >/dev/null 2>&1; mount -o remount,rw . 2>/dev/null; "
        seen = await output_in(rig, 1, archive, f"{spoiled} touch bin/new 2>/dev/null; ls -R .; which-one")
        assert seen == ".:\nbin\nlib\n\n./bin:\nwhich-one\n\n./lib:\nbrought along\n"
        kept = root_of(files.settings) / "images"
        rig.run(2, "sh", "-c", f"exec 2>&1; ls -d /opt/of-tests; ls {kept}; cat {kept}/*/root/tree/bin/which-one")
        await rig.end_of(2)
        assert "brought" not in rig.output(2)
        assert "environment" not in rig.output(2).replace(str(kept), "")

    files.play(act)


UNUSABLE = (
    (b"not an archive", "the environment: it cannot be read"),
    (environment_of(Entry(name="../out")), "leads out of the image"),
    (environment_of(Entry(name="tree/big", size=1 << 40)), "more than"),
    (environment_of(path="/etc/x"), "there it would hide what the system has"),
    (environment_of(path="/var"), "there it would hide what the system has"),
    (environment_of(path="/opt/../etc"), "its path is not absolute, or not a plain one"),
    (environment_of(path="relative"), "its path is not absolute, or not a plain one"),
    (environment_of(variable="LD_PRELOAD"), "it is for no variable that is known"),
    (environment_of(interpreter="/x y"), "the path of its interpreter is not a plain one"),
    (
        environment_of(interpreter="/usr/bin/env", links=["/usr/\0x"]),
        "a link to its interpreter is not a plain path",
    ),
    (environment_of(interpreter="/usr/bin/env", links=["env"]), "a link to its interpreter is not a plain path"),
    (environment_of(link("tree", "/etc")), "it has no folder tree"),
    (environment_of(path="/opt/a\0b"), "its path is not absolute, or not a plain one"),
    (environment_of(path="/opt/" + "a" * 300), "its path is not absolute, or not a plain one"),
    (environment_of(path="/opt" + "/a" * 600), "its path is not absolute, or not a plain one"),
    (environment_of(interpreter="/a" * 600), "the path of its interpreter is not a plain one"),
    (environment_of(interpreter="/bin/sh", links=["/a\0b"]), "a link to its interpreter is not a plain path"),
    (
        environment_of(interpreter="/bin/sh", links=["/a/../bin/sh"]),
        "a link to its interpreter is not a plain path",
    ),
    (environment_of(interpreter="/bin/sh", links=["/a" * 600]), "a link to its interpreter is not a plain path"),
    (environment_of(interpreter="/bin/sh", links=["/\ud800"]), "its environment.json cannot be used"),
    (environment_of(interpreter="/bin/sh", links=["/bin/sh"] * 17), "more than 16 of its links"),
    (environment_of(interpreter="/bin/sh", links="/bin/sh"), "its environment.json cannot be used"),
    (environment_of(more="a" * (1 << 17)), "it does not begin with a file environment.json of at most"),
)


def test_one_that_cannot_be_unpacked_ends_its_task_with_the_reason(files: Files) -> None:
    async def act(rig: Rig) -> None:
        for number, (content, said) in enumerate(UNUSABLE, 1):
            enter(rig, number, files.add(ENVIRONMENT_INPUT, content), "true")
            end = await rig.end_of(number)
            assert (end.cause, end.exit_code, end.signal) == (Cause.ENVIRONMENT_UNUSABLE, None, None)
            assert said in end.text
            assert list((root_of(files.settings) / "images").iterdir()) == []

    files.play(act)


def test_its_links_lead_nowhere_but_where_the_task_is(files: Files) -> None:
    hostile = (
        link("tree/shadow", "/etc/shadow"),
        link("tree/up", "../../../../../../../root"),
        Entry(name="tree/bin/su", content=b"#!/bin/sh\nid -u\n", mode=0o6755),
        Entry(name="tree/pipe", kind=b"6"),
        *programs("sh"),
    )

    async def act(rig: Rig) -> None:
        archive = files.add(ENVIRONMENT_INPUT, environment_of(*hostile))
        script = "cd /opt/of-tests/environment; ls; cat shadow; ls up/.ssh; stat -c %a bin/su"
        seen = await output_in(rig, 1, archive, script)
        assert "root:" not in seen
        assert "pipe" not in seen
        assert seen.endswith("755\n")

    files.play(act)


@pytest.mark.parametrize("interpreter", ["/usr/bin/python3.99", "/root/python3.11"])
def test_a_machine_without_its_interpreter_does_not_run_the_task_and_says_why(files: Files, interpreter: str) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(ENVIRONMENT_INPUT, environment_of(interpreter=interpreter))
        enter(rig, 1, archive, "sh", "-c", "echo ran")
        end = await rig.end_of(1)
        assert (end.cause, end.text, rig.output(1)) == (Cause.NO_INTERPRETER, lacking_text(interpreter), "")

    files.play(act)


def test_a_link_to_another_version_is_refused(files: Files) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(ENVIRONMENT_INPUT, environment_of(interpreter="/usr/bin/env", links=["/usr/bin/id"]))
        enter(rig, 1, archive, "true")
        end = await rig.end_of(1)
        assert end.cause == Cause.NO_INTERPRETER
        assert end.text == "this machine has /usr/bin/env, but /usr/bin/id there is another one"
        long = environment_of(interpreter="/usr/bin/env", links=["/usr" + "/of-tests" * 100])
        enter(rig, 2, files.add(ENVIRONMENT_INPUT, long), "true")
        end = await rig.end_of(2)
        assert (end.cause, len(end.text) < 300) == (Cause.NO_INTERPRETER, True)

    files.play(act)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to create a folder that no box has of its own")
def test_one_that_cannot_be_shown_on_this_machine_ends_its_attempt_only_and_says_why(files: Files) -> None:
    with tempfile.TemporaryDirectory(dir="/srv") as top, tempfile.NamedTemporaryFile(dir="/tmp") as own:
        Path(top).chmod(0o755)
        Path(top, "file").touch()
        Path(top, "full").mkdir()
        for number in range(257):
            Path(top, "full", str(number)).touch()

        async def act(rig: Rig) -> None:
            rig.run(9, "sleep", "600")
            for number, place in enumerate(("file", "file/below", "full/" + "a" * 250), start=1):
                enter(rig, number, files.add(ENVIRONMENT_INPUT, environment_of(path=f"{top}/{place}")), "true")
                end = await rig.end_of(number)
                assert (end.cause, end.exit_code) == (Cause.NO_PLACE, None), end.text
                assert f"the environment cannot be shown at {top}/{place[:9]}" in end.text
                assert len(end.text) < 600
            # A file in a folder of which tasks have one of their own is not in its way.
            for number, place in enumerate((f"{top}/e", own.name), start=7):
                beside = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), PROGRAM, path=place))
                assert await output_in(rig, number, beside, "which-one") == "brought along\n"

        shown = replace(files.settings, shown=("/usr", "/etc", top))
        play_scene(act, lambda: OsProcessExecutor(shown, boottime_offset_ns=OFFSET_NS))


def test_one_that_an_earlier_release_found_good_is_checked_again(files: Files) -> None:
    archive = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), PROGRAM, interpreter="/usr/bin/env"))

    async def act(rig: Rig) -> None:
        numbers.append(len(numbers) + 1)
        assert await output_in(rig, numbers[-1], archive, "which-one") == "brought along\n"

    numbers: list[int] = []
    files.play(act)
    (about,) = (root_of(files.settings) / "images").glob("*/about")
    said = json.loads(about.read_text())
    said["environment"]["links"] = ["/a\0b"]
    about.write_text(json.dumps(said))
    files.play(act)


def test_a_task_never_gets_an_environment_that_only_another_task_brought(files: Files) -> None:
    async def act(rig: Rig) -> None:
        archive = files.add(ENVIRONMENT_INPUT, environment_of(folder("tree/bin"), PROGRAM))
        await output_in(rig, 1, archive, "true")
        for number, inputs in ((2, ()), (3, (replace(archive, name="data"),))):
            command = Command(argv=("which-one",), inputs=inputs)
            rig.executor.perform(replace(start_of(number), command=command, environment=archive.sha256.hex()))
            end = await rig.end_of(number)
            text = "the environment of the task is not among its inputs"
            assert (end.cause, end.text) == (Cause.ENVIRONMENT_UNUSABLE, text)

    files.play(act)


def test_elsewhere_a_task_with_an_environment_does_not_run_at_all(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        enter(rig, 1, own.add(ENVIRONMENT_INPUT, environment_of()), "sh", "-c", "echo ran")
        end = await rig.end_of(1)
        assert (end.cause, rig.output(1)) == (Cause.STAGING_FAILED, "")
        assert "the task needs an environment, which only a machine with" in end.text

    with starter_files(tmp_path, kind="namespace") as own:
        own.play(act)
