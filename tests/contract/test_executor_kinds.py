"""What a file is for an executor: links, empty folders, holes and patterns, as inputs and outputs of real processes."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.model.task_files import InputFile, Output
from tests.contract.executor_rig import Rig
from tests.contract.task_files import LARGE, ROOTS, Files, run, starter_files

pytestmark = pytest.mark.processes


@pytest.fixture(params=ROOTS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as files:
        yield files


def link(name: str, target: str) -> InputFile:
    return InputFile(name=name, sha256=b"", size_bytes=0, link_target=target)


def folder(name: str) -> InputFile:
    return InputFile(name=name, sha256=b"", size_bytes=0, is_folder=True)


def declared(end: AttemptEnded) -> list[str]:
    """Return the declared outputs: links with their targets, and empty folders with a slash."""
    return [_shown(output) for output in end.outputs if output.name.startswith("work/")]


def _shown(output: Output) -> str:
    name = output.name.removeprefix("work/")
    return f"{name} -> {output.link_target}" if output.link_target else f"{name}/" if output.is_folder else name


@pytest.mark.parametrize("content", [b"small", LARGE])
def test_links_and_empty_folders_are_staged(files: Files, content: bytes) -> None:
    async def act(rig: Rig) -> None:
        inputs = (
            link("a-first", "data/deep/in"),
            link("data/deep/up", "../../none"),
            link("data/self", "."),
            files.add("data/deep/in", content),
            folder("none"),
            folder("data/none/at all"),
        )
        script = "readlink a-first data/deep/up data/self; wc -c < a-first; touch data/deep/up/x; find none data/none"
        run(rig, 1, script=script, inputs=inputs)
        end = await rig.end_of(1)
        assert (end.exit_code, end.text) == (0, "")
        assert rig.output(1).split("\n") == [
            "data/deep/in",
            "../../none",
            ".",
            str(len(content)),
            "none",
            "none/x",
            "data/none",
            "data/none/at all",
            "",
        ]

    files.play(act)


def test_a_link_that_leads_outside_fails_the_staging(files: Files) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script="echo ran", inputs=(link("data/bad", "../../x"),))
        end = await rig.end_of(1)
        assert (end.cause, end.text) == (
            Cause.STAGING_FAILED,
            "input 'data/bad' is a link that leads out of the working directory",
        )
        assert rig.output(1) == ""

    files.play(act)


def test_links_inside_folders_and_empty_folders_are_outputs(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = """
            mkdir -p out/none out/pipes other; mkfifo out/pipes/pipe; echo x > out/x
            ln -s x out/to-x; ln -s ../other out/to-other; ln -s nothing out/dangling; ln -s . out/self
            ln -s ../../x out/outside; ln -s /etc out/absolute; ln -s none/../../.. out/tricky
        """
        run(rig, 1, script=script, outputs=("out", "other"))
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == ("", 0)
        assert declared(end) == [
            "out/dangling -> nothing",
            "out/none/",
            "out/pipes/",
            "out/self -> .",
            "out/to-other -> ../other",
            "out/to-x -> x",
            "out/x",
            "other/",
        ]
        for omitted in ("out/absolute (a link to /etc,", "out/outside (", "out/tricky (", "out/pipes/pipe (a pipe)"):
            assert omitted in end.text

    files.play(act)


MATCHES = {
    "*.csv": ["a.csv", "b.csv"],
    "?.csv": ["a.csv", "b.csv"],
    "[!a].csv": ["b.csv"],
    "out/*.csv": ["out/c.csv"],
    "**/*.csv": ["a.csv", "b.csv", "out/c.csv", "out/deep/d.csv"],
    "out/**/d.csv": ["out/deep/d.csv"],
    "*/deep": ["out/deep/d.csv", "out/deep/notes"],
    "out/**": ["out/.hidden", "out/c.csv", "out/deep/d.csv", "out/deep/notes"],
    ".h*": [".hidden"],
    "li*": ["link -> out"],
    "emp*": ["empty/"],
    "odd[1].txt": ["odd[1].txt"],
}


def test_a_pattern_brings_what_it_matches_when_the_task_has_ended(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = """
            mkdir -p out/deep empty .private; touch a.csv b.csv out/c.csv out/deep/d.csv out/deep/notes out/.hidden
            touch .hidden .private/e.csv 'odd[1].txt'; ln -s out link
        """
        brought = {}
        for number, pattern in enumerate(MATCHES, 1):
            run(rig, number, script=script, outputs=(pattern,))
            end = await rig.end_of(number)
            assert (end.cause, end.text) == ("", "")
            brought[pattern] = declared(end)
        assert brought == MATCHES

    files.play(act)


def test_a_pattern_that_matches_nothing_is_a_missing_output(files: Files) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script="mkfifo pipe.csv; echo x > here.csv", outputs=("here*", "pipe*", "*/none", "**/*.txt"))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause) == (0, Cause.OUTPUT_MISSING)
        assert end.text == "missing at the end: pipe*, */none, **/*.txt; omitted: pipe.csv (a pipe)"
        assert declared(end) == ["here.csv"]

    files.play(act)


def test_a_pattern_that_matches_too_many_files_ends_its_task_only(files: Files) -> None:
    async def act(rig: Rig) -> None:
        for number, pattern in enumerate(("*", "many/*", "**/x*"), 1):
            run(rig, number, script="mkdir many; cd many; seq 17000 | sed 's/^/x/' | xargs touch", outputs=(pattern,))
            end = await rig.end_of(number)
            assert (end.exit_code, end.cause) == (0, Cause.TOO_MANY_OUTPUTS)
            assert end.text.startswith("more than 16384 files and folders were searched for its outputs")
        run(rig, 4, script="touch one", outputs=("o*",))
        assert declared(await rig.end_of(4)) == ["one"]

    files.play(act)


def test_a_task_that_closes_its_working_directory_lacks_its_outputs_and_harms_no_other(files: Files) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script="chmod 0 .", outputs=("*.csv", "plain"))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause) == (0, Cause.OUTPUT_MISSING)
        assert end.text == "missing at the end: *.csv, plain"
        run(rig, 2, script="touch one", outputs=("o*",))
        assert declared(await rig.end_of(2)) == ["one"]

    files.play(act)


def test_a_plain_part_of_a_pattern_searches_nothing_else(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = "mkdir out; touch out/a.csv; seq 20000 | sed 's/^/x/' | xargs touch"
        run(rig, 1, script=script, outputs=("out/*.csv",))
        end = await rig.end_of(1)
        assert (declared(end), end.cause) == (["out/a.csv"], "")

    files.play(act)


def test_a_sparse_input_stays_sparse_and_equal(files: Files) -> None:
    async def act(rig: Rig) -> None:
        content = bytes(3 << 20) + b"middle" + bytes(5 << 20)
        one = files.add("sparse", content)
        path = files.path_of(one)
        path.chmod(0o644)
        with path.open("wb") as file:
            file.seek(3 << 20)
            file.write(b"middle")
            file.truncate(len(content))
        if not _has_holes(path):
            pytest.skip("this file system has no holes")
        run(rig, 1, script="sha256sum < sparse | cut -c -64; stat -c %b sparse", inputs=(one,))
        end = await rig.end_of(1)
        assert end.exit_code == 0
        sha256, blocks = rig.output(1).split()
        assert sha256 == one.sha256.hex()
        assert int(blocks) * 512 < 1 << 20

    files.play(act)


def _has_holes(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            return os.lseek(file.fileno(), 0, os.SEEK_DATA) > 0
        except OSError as error:
            return error.errno == errno.ENXIO
