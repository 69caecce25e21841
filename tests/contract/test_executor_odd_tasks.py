"""A problem at the start of one task ends that task; the starter and all other tasks continue."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.executor.linux.processes import identity_of
from messiahs.executor.protocol.identity import recorded_identity
from tests.contract.executor_rig import Rig, attempt_id
from tests.contract.task_files import LARGE, Files, run, starter_files

pytestmark = pytest.mark.processes

LONG = 2
"""The task that must continue."""
REPORTS = {
    "cut": b'{"cause":"staging_failed","exit_code":nu',
    "no text": b"\0\1\2",
    "not in UTF-8": b'{"cause":"staging_failed","exit_code":null,"text":"\xff"}',
    "of another shape": b'{"cause":3}',
    "nested deeply": b'{"nested":' + b"[" * 4_000,
    "with a number that no exit code is": b'{"cause":"not_found","exit_code":%d,"text":""}' % 10**30,
}


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path) as files:
        yield files


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_an_unreadable_report_ends_its_own_task(files: Files, report: bytes) -> None:
    async def act(rig: Rig) -> None:
        starter = starter_of(files)
        run(rig, 1, script="true", inputs=(files.add_absent("data", LARGE),))
        await rig.until(lambda: is_amid_its_inputs(starter))
        (process,) = children_of(starter)
        run(rig, LONG, script="exec sleep 600")
        await rig.start_of(LONG)
        say(process, report)
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == ("spawn_failed", None)
        assert end.text.startswith("the report of its process cannot be read: ")
        assert identity_of(process) is None
        await assert_that_others_go_on(files, rig, starter=starter)

    files.play(act)


def test_a_path_of_an_input_that_is_too_deep_is_reported_and_the_task_never_runs(files: Files) -> None:
    async def act(rig: Rig) -> None:
        starter = starter_of(files)
        run(rig, LONG, script="exec sleep 600")
        await rig.start_of(LONG)
        for number, content in ((1, LARGE), (3, b"small")):
            run(rig, number, script="true", inputs=(files.add("a/" * 2_000 + "data", content),))
            end = await rig.end_of(number)
            assert (end.cause, end.exit_code, bool(end.text)) == ("spawn_failed", None, True)
        await assert_that_others_go_on(files, rig, starter=starter)

    files.play(act)


async def assert_that_others_go_on(files: Files, rig: Rig, *, starter: int) -> None:
    """Check that the long task runs, that the next one starts, and that the starter is still the same."""
    run(rig, 9, script="true", inputs=(files.add("data", LARGE + b"!"),))
    assert (await rig.end_of(9)).exit_code == 0
    assert attempt_id(LONG) not in rig.ends()
    assert (starter_of(files), rig.losses) == (starter, [])


def say(process: int, report: bytes) -> None:
    """Write to the pipe on which a process reports to the starter, as another task of the account could."""
    Path(f"/proc/{process}/fd/3").write_bytes(report)


def is_amid_its_inputs(starter: int) -> bool:
    """Return whether the only child of the starter has nothing open but its streams and the pipe for its report."""
    processes = children_of(starter)
    return len(processes) == 1 and descriptors_of(processes[0]) == {"0", "1", "2", "3"}


def children_of(process: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def descriptors_of(process: int) -> set[str]:
    return {entry.name for entry in Path(f"/proc/{process}/fd").iterdir()}


def starter_of(files: Files) -> int:
    identity = recorded_identity(files.settings.directory)
    assert identity is not None
    return identity.pid
