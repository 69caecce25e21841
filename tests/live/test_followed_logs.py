"""Lines of tasks that run are shown when they are written; those of members of an array are not mixed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from threading import Thread

import pytest

from tests.live.conftest import Federation, shared_folder
from tests.waiting import eventually

SCRIPT = """
wait_for() { until test -e $1; do sleep 0.05; done; }
cd %s
printf 'half {}'
touch began.{}
wait_for go.{}
echo ' whole {}'
wait_for end
printf 'last {}'
"""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder that tasks share with the test."""
    return shared_folder(tmp_path_factory)


@contextmanager
def lines_of(following: "Popen[str]") -> Iterator[list[str]]:
    """Collect the lines of a command while it runs, and wait for its end."""
    lines: list[str] = []
    with following:
        reading = Thread(target=_read, args=(following, lines))
        reading.start()
        yield lines
        reading.join()
    assert following.returncode == 0


def _read(following: "Popen[str]", lines: list[str]) -> None:
    for line in following.stdout or ():
        lines += (line.removesuffix("\n"),)


@pytest.mark.parametrize("side", ["left", "right"])
def test_members_are_followed_line_by_line_while_they_run(pair: Federation, folder: Path, side: str) -> None:
    script = SCRIPT % folder
    array = pair.submit("--array", "1-2", "--require", f'$side eq "{side}"', "--", "sh", "-c", script)
    with lines_of(pair.start("logs", array, "--follow")) as lines:
        eventually(lambda: (folder / "began.1").exists() and (folder / "began.2").exists())
        expected = []
        for member in (2, 1):
            (folder / f"go.{member}").touch()
            expected.append(f"{array}.{member}: half {member} whole {member}")
            eventually(lambda: lines == expected)
        assert pair.status(array)["counts"] == {"running": 2}
        (folder / "end").touch()
    assert sorted(lines[2:]) == [f"{array}.{member}: last {member}" for member in (1, 2)]
