"""Where tasks start: in their working folder, in one below it, or in one of the machine."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.task_files import InputFile
from tests.contract.executor_rig import BACK_ENDS, Rig, start_of, work_seen
from tests.contract.task_files import LARGE, Files, starter_files

pytestmark = pytest.mark.processes


@pytest.fixture(params=BACK_ENDS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as files:
        yield files


def begin(rig: Rig, number: int, cwd: str, /, *argv: str, inputs: tuple[InputFile, ...] = ()) -> None:
    rig.begin(replace(start_of(number), command=Command(argv=argv, inputs=inputs, cwd=cwd, outputs=("left",))))


@pytest.mark.parametrize("content", [b"small", LARGE], ids=["small", "large"])
def test_a_task_starts_in_a_folder_of_its_inputs_and_leaves_its_outputs_in_its_working_folder(
    files: Files, content: bytes
) -> None:
    given = files.add("project/src/data", content)
    tool = files.add("project/src/tool", b"#!/bin/sh\npwd; ls; : >$HOME/left\n", is_executable=True)

    async def act(rig: Rig) -> None:
        begin(rig, 1, "project/src", "./tool", inputs=(given, tool))
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code, end.text) == ("", 0, "")
        assert rig.output(1) == f"{work_seen(files.settings, 1)}/project/src\ndata\ntool\n"

    files.play(act)


def test_a_task_starts_in_a_folder_of_its_machine(files: Files) -> None:
    async def act(rig: Rig) -> None:
        begin(rig, 1, "/usr/lib", "sh", "-c", "pwd; : >$HOME/left")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code, rig.output(1)) == ("", 0, "/usr/lib\n")
        begin(rig, 2, "", "sh", "-c", "pwd; : >left")
        await rig.end_of(2)
        assert rig.output(2) == f"{work_seen(files.settings, 2)}\n"

    files.play(act)


LONG = "/".join(["x" * 200] * 19)


@pytest.mark.parametrize("cwd", ["/usr/lib/of-nobody", "absent", "/etc/passwd", LONG, f"/{LONG}"])
def test_a_folder_that_is_not_there_ends_the_task_with_the_reason(files: Files, cwd: str) -> None:
    why = "Not a directory" if cwd == "/etc/passwd" else "No such file or directory"
    given = files.add("large", LARGE)
    shown = cwd if len(cwd) < 200 else f"{cwd[:200]}…"

    async def act(rig: Rig) -> None:
        for number, inputs in ((1, ()), (2, (given,))):
            begin(rig, number, cwd, "sh", "-c", "echo ran", inputs=inputs)
            end = await rig.end_of(number)
            assert (end.cause, end.text) == (Cause.NO_FOLDER, f"the task cannot start in {shown}: {why}")
            assert rig.output(number) == ""

    files.play(act)
