"""Starters that contain tasks, one of each make, and scripts in them: what the suites of escapes share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.model.images import IMAGE_INPUT
from messiahs.core.model.task_files import InputFile
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.starter.sandbox.outbound import why_no_outbound
from tests.contract.executor_rig import OFFSET_NS, Rig, starter_settings
from tests.contract.task_files import Files, starter_files
from tests.oci_images import image_of_this_machine

OUTBOUND = "outbound-bubblewrap"
MAKES = ("sandbox", "bubblewrap", OUTBOUND, "image")
"""Ways of containing tasks; in the third they open connections, and in the last one they run in an image."""


@contextmanager
def contained(make: str, tmp_path: Path) -> Iterator[StarterSettings]:
    """Return a place for a starter of a make; afterwards nothing of it remains."""
    if make == OUTBOUND:
        if problem := why_no_outbound():
            pytest.skip(problem)
        with starter_settings(tmp_path, kind="bubblewrap") as settings:
            yield replace(settings, network="outbound")
    elif make == "image":
        with starter_files(tmp_path, kind="sandbox") as files:
            yield files.settings
    else:
        with starter_settings(tmp_path, kind=make) as settings:
            yield settings


def image_for(settings: StarterSettings) -> InputFile | None:
    """Return the image in which tasks run: one with the programs of these tests, where files can be brought."""
    return None if settings.files is None else Files(settings.files, settings).add(IMAGE_INPUT, image_of_this_machine())


def executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


async def output_of(rig: Rig, number: int, script: str, /) -> str:
    """Run a script and return what it wrote."""
    rig.run(number, "sh", "-c", f"exec 2>&1; {script}")
    await rig.end_of(number)
    return rig.output(number)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
